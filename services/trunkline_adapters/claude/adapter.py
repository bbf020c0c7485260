"""The Claude Code adapter: finds the CLI and starts sessions of it."""

import asyncio
import os
import platform
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from trunkline_adapters.claude import history, launch
from trunkline_adapters.claude.session import ClaudeSession
from trunkline_adapters.claude.translate import ClaudeTranslator
from trunkline_agentkit import Context, Installed, Start, find_program, load_manifest, refuse_options
from trunkline_agentkit.history import HistoryFile, Line
from trunkline_wire import TrunklineError
from trunkline_wire.session import Capabilities

CAPABILITIES: Final = Capabilities(
    streaming=True,
    interrupt=True,
    resume=True,
    fork=True,
    rewind=True,
    model_switching=True,
    mode_switching=True,
    thinking=True,
    slash_commands=True,
    mcp=True,
    structured_output=True,
    image_input=True,
    file_checkpointing=True,
    cost_tracking=True,
    permissions=True,
    questions=True,
    plans=True,
    steering=True,
    queueing=True,
    compaction=True,
    native_protocol=True,
    options=(
        "model",
        "mode",
        "thinking",
        "system_prompt",
        "append_system_prompt",
        "allowed_tools",
        "disallowed_tools",
        "mcp_servers",
        "agents",
        "budget_usd",
        "max_turns",
        "output_schema",
        "resume_native",
        "native",
    ),
)
PATH_VARIABLE: Final = "TRUNKLINE_CLAUDE_PATH"
_VERSION_DEADLINE: Final = 20.0


class ClaudeAdapter:
    """`source` is the environment in which the CLI is looked up (the worker's by default)."""

    name = "claude"
    capabilities = CAPABILITIES

    def __init__(self, source: Mapping[str, str] | None = None) -> None:
        self.manifest = load_manifest("trunkline_adapters.claude")
        self._source = source

    def translator(self, context: Context) -> ClaudeTranslator:
        return ClaudeTranslator(context, CAPABILITIES)

    def histories(self, source: Mapping[str, str] | None = None) -> list[HistoryFile]:
        return history.histories(self._source if source is None else source)

    def history_lines(self, file: HistoryFile) -> Iterator[Line]:
        return history.history_lines(file)

    def history_translator(self, context: Context) -> history.ClaudeHistory:
        return history.ClaudeHistory(context, CAPABILITIES)

    async def create(self, start: Start) -> ClaudeSession:
        return await self._start(start)

    async def resume(self, start: Start) -> ClaudeSession:
        if start.fork_at is not None:
            raise TrunklineError(
                "unsupported", "Claude Code forks a session only at its end: leave `at` out", capability="fork"
            )
        return await self._start(start)

    async def probe(self) -> Installed:
        path = self.program()
        return Installed(path=path, version=await _version(path))

    async def close(self) -> None:
        pass

    def program(self) -> str:
        """The CLI's path: `TRUNKLINE_CLAUDE_PATH`, PATH, or the binary of an npm package beside a directory of PATH.

        Raises TrunklineError `agent_not_found`, saying how to install it.
        """
        source = os.environ if self._source is None else self._source
        if wanted := source.get(PATH_VARIABLE):
            if (found := shutil.which(wanted, path=source.get("PATH", os.defpath))) is None:
                raise TrunklineError(
                    "agent_not_found", f"{PATH_VARIABLE} is {wanted!r}, which is no program: correct it"
                )
            return found
        try:
            return find_program(self.manifest, source)
        except TrunklineError:
            # With `npm install --ignore-scripts` the package's own launcher is missing, and the binary is there.
            if (binary := _platform_binary(source)) is not None:
                return binary
            raise

    async def _start(self, start: Start) -> ClaudeSession:
        refuse_options(self, start.options)
        launch.check(start.options)
        environment = launch.environment(start)
        start = msgspec.structs.replace(start, environment=environment)
        files = await asyncio.to_thread(launch.write_files, start)
        named = [word for name, path in files.items() for word in (name, str(path))]
        try:
            process = await start.launch([self.program(), *launch.arguments(start), *named], environment=environment)
        except BaseException:
            launch.remove_files(files.values())
            raise
        resumed = (start.native_session or start.options.resume_native) is not None
        translator = ClaudeTranslator(start.context, CAPABILITIES, resumed=resumed)
        session = ClaudeSession(process, translator, launch.initialize(start), list(files.values()))
        await session.open(start.options.thinking)
        return session


def _platform_binary(source: Mapping[str, str]) -> str | None:
    machine = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}.get(platform.machine().lower())
    system = {"Linux": "linux", "Darwin": "darwin", "Windows": "win32"}.get(platform.system())
    packages = [f"claude-code-{system}-{machine}", f"claude-code-{system}-{machine}-musl"]
    for directory in source.get("PATH", os.defpath).split(os.pathsep):
        here = Path(directory)
        # npm's prefixes: <prefix>/bin beside <prefix>/lib/node_modules, and node_modules/.bin inside a project.
        for modules in (here.parent / "lib" / "node_modules", here.parent):
            for root in (modules, modules / "@anthropic-ai" / "claude-code" / "node_modules"):
                for package in packages:
                    candidate = root / "@anthropic-ai" / package / "claude"
                    if os.access(candidate, os.X_OK) and candidate.is_file():
                        return str(candidate)
    return None


async def _version(path: str) -> str | None:
    process = await asyncio.create_subprocess_exec(
        path,
        "--version",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={"PATH": os.environ.get("PATH", os.defpath), "HOME": str(Path.home()), "DISABLE_AUTOUPDATER": "1"},
    )
    try:
        async with asyncio.timeout(_VERSION_DEADLINE):
            output, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return None
    words = output.decode(errors="replace").split()
    return words[0] if words and process.returncode == 0 else None

"""The Codex adapter: finds the CLI or a running server and starts sessions of it."""

import asyncio
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import msgspec

from trunkline_adapters.codex import drift, exec_launch, launch, rollout
from trunkline_adapters.codex.exec_session import ExecSession
from trunkline_adapters.codex.link import Link, ProcessLink, SocketLink
from trunkline_adapters.codex.session import CodexSession
from trunkline_adapters.codex.translate import CodexTranslator
from trunkline_agentkit import (
    Context,
    Installed,
    Start,
    find_program,
    load_manifest,
    program_output,
    program_version,
    refuse_options,
)
from trunkline_agentkit.history import HistoryFile, Line
from trunkline_agentkit.own_terminal import OwnTerminal
from trunkline_wire import TrunklineError
from trunkline_wire.session import Capabilities, SessionOptions

CAPABILITIES: Final = Capabilities(
    streaming=True,
    interrupt=True,
    resume=True,
    fork=True,
    model_switching=True,
    mode_switching=True,
    thinking=True,
    slash_commands=True,
    mcp=True,
    structured_output=True,
    image_input=True,
    permissions=True,
    questions=True,
    plans=True,
    steering=True,
    compaction=True,
    terminal=True,
    native_protocol=True,
    options=(
        "model",
        "mode",
        "thinking",
        "system_prompt",
        "append_system_prompt",
        "mcp_servers",
        "output_schema",
        "resume_native",
        "native",
    ),
)


class CodexAdapter:
    """`source` is the environment in which the CLI is looked up (the worker's by default)."""

    name = "codex"
    capabilities = CAPABILITIES

    def __init__(self, source: Mapping[str, str] | None = None) -> None:
        self.manifest = load_manifest("trunkline_adapters.codex")
        self._source = source
        self._serves: dict[tuple[str, int], bool] = {}
        """Whether a program (by path and time of change) has an app-server."""

    def outlives(self, options: SessionOptions) -> bool:
        return "server" in options.native

    def translator(self, context: Context) -> CodexTranslator:
        return CodexTranslator(context, CAPABILITIES)

    @property
    def history_agents(self) -> tuple[str, ...]:
        return (self.name,)

    def histories(self, agent: str | None = None) -> list[HistoryFile]:
        del agent  # there is but one
        return rollout.histories(os.environ if self._source is None else self._source)

    def history_lines(self, file: HistoryFile) -> Iterator[Line]:
        return rollout.history_lines(file)

    def history_translator(self, context: Context) -> rollout.CodexHistory:
        return rollout.CodexHistory(context)

    async def create(self, start: Start) -> CodexSession | ExecSession:
        return await self._start(start)

    async def resume(self, start: Start) -> CodexSession | ExecSession:
        return await self._start(start)

    async def terminal(self, start: Start) -> OwnTerminal:
        return OwnTerminal(profile=self.name, command=(self.program(), *launch.terminal_arguments(start)))

    async def probe(self) -> Installed:
        path = self.program()
        return Installed(path=path, version=await program_version(path, self._source))

    async def drift(self) -> list[str]:
        """What the installed Codex's protocol has that was not reviewed, and what it lacks, by the schema that it generates.

        Raises TrunklineError `agent_not_found`, `agent_failed` where it generates none.
        """
        path = self.program()
        with tempfile.TemporaryDirectory(prefix="trunkline-") as folder:
            await program_output(
                path, "app-server", "generate-json-schema", "--experimental", "--out", folder, source=self._source
            )
            names = await asyncio.to_thread(_names_in, Path(folder))
        return drift.lines(names)

    async def close(self) -> None:
        pass

    def program(self) -> str:
        """The CLI's path. Raises TrunklineError `agent_not_found`, saying how to install it."""
        return find_program(self.manifest, self._source)

    async def _start(self, start: Start) -> CodexSession | ExecSession:
        refuse_options(self, start.options)
        launch.check(start.options)
        address = start.options.native.get("server")
        if address is not None:
            token_file = start.options.native.get("token_file")
            link = SocketLink(address, token_file)
            return await self._open(start, link, join=launch.join(address, token_file))
        path = self.program()
        if start.options.native.get("interface") == "exec" or not await self._has_server(path):
            exec_launch.check(start)
            return ExecSession(start, path)
        process = await start.launch([path, "app-server"])
        return await self._open(start, ProcessLink(process))

    async def _open(self, start: Start, link: Link, *, join: str | None = None) -> CodexSession:
        # On a server that runs its terminal joins the session, and takes nothing over.
        able = msgspec.structs.replace(CAPABILITIES, terminal=join is None)
        translator = CodexTranslator(start.context, able, join=join)
        session = CodexSession(start, link, translator, _own_version())
        await session.open()
        return session

    async def _has_server(self, path: str) -> bool:
        key = (path, (await asyncio.to_thread(os.stat, path)).st_mtime_ns)
        if key not in self._serves:
            # A Codex without it takes the word for a prompt, and shows its own help.
            self._serves[key] = "generate-json-schema" in await program_output(
                path, "app-server", "--help", source=self._source
            )
        return self._serves[key]


def _own_version() -> str:
    try:
        return version("trunkline")
    except PackageNotFoundError:
        return "0"


def _names_in(folder: Path) -> drift.Names:
    try:
        files = {name: json.loads((folder / name).read_bytes()) for name in [*drift.FILES.values(), drift.BUNDLE]}
        return drift.names_of(files)
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise TrunklineError("agent_failed", "this Codex does not describe its protocol in a known form") from error

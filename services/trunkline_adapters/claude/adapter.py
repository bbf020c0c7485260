"""The Claude Code adapter: finds the CLI and starts sessions of it."""

import asyncio
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from trunkline_adapters.claude import history, hooks, launch
from trunkline_adapters.claude.link import Link, SdkUrlLink, takes_any_host
from trunkline_adapters.claude.session import ClaudeSession
from trunkline_adapters.claude.team_mail import TeamMail
from trunkline_adapters.claude.team_watch import ClaudeTeamFiles
from trunkline_adapters.claude.translate import ClaudeTranslator
from trunkline_agentkit import (
    AgentProcess,
    Context,
    Installed,
    Start,
    find_program,
    load_manifest,
    program_version,
    refuse_options,
    unsupported,
)
from trunkline_agentkit.fields import Obj
from trunkline_agentkit.history import HistoryFile, Line
from trunkline_agentkit.hooks import Hook, HookEndpoint
from trunkline_agentkit.own_terminal import OwnTerminal
from trunkline_wire import TrunklineError
from trunkline_wire.session import Capabilities, SessionOptions

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
    terminal=True,
    native_protocol=True,
    hold=("child", "detached"),
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


class ClaudeAdapter:
    """`source` is the environment in which the CLI is looked up (the worker's by default)."""

    name = "claude"
    capabilities = CAPABILITIES

    def __init__(self, source: Mapping[str, str] | None = None) -> None:
        self.manifest = load_manifest("trunkline_adapters.claude")
        self._source = source
        self._versions: dict[tuple[str, int], str | None] = {}
        """The version of a program, by path and time of change."""

    def translator(self, context: Context) -> ClaudeTranslator:
        return ClaudeTranslator(context, CAPABILITIES)

    def outlives(self, options: SessionOptions) -> bool:
        return options.hold == "detached"

    @property
    def history_agents(self) -> tuple[str, ...]:
        return (self.name,)

    def histories(self, agent: str | None = None) -> list[HistoryFile]:
        del agent  # there is but one
        return history.histories(self._environment)

    def history_lines(self, file: HistoryFile) -> Iterator[Line]:
        return history.history_lines(file)

    def history_translator(self, context: Context) -> history.ClaudeHistory:
        return history.ClaudeHistory(context, CAPABILITIES)

    @property
    def _environment(self) -> Mapping[str, str]:
        return os.environ if self._source is None else self._source

    def hook_settings(self) -> Path:
        return hooks.settings_file(self._environment)

    def with_hooks(self, settings: Obj, endpoint: HookEndpoint) -> Obj:
        return hooks.with_hooks(settings, endpoint)

    def without_hooks(self, settings: Obj) -> Obj:
        return hooks.without_hooks(settings)

    def hooks_in(self, settings: Obj) -> list[str]:
        return hooks.installed(settings)

    def hook_hindrances(self, settings: Obj, endpoint: HookEndpoint) -> list[str]:
        return hooks.hindrances(settings, endpoint)

    def read_hook(self, body: Obj) -> Hook | None:
        return hooks.read_hook(body)

    def team_files(self) -> ClaudeTeamFiles:
        return ClaudeTeamFiles(hooks.configuration(self._environment))

    async def create(self, start: Start) -> ClaudeSession:
        return await self._start(start)

    async def resume(self, start: Start) -> ClaudeSession:
        if start.fork_at is not None:
            raise TrunklineError(
                "unsupported", "Claude Code forks a session only at its end: leave `at` out", capability="fork"
            )
        return await self._start(start)

    async def terminal(self, start: Start) -> OwnTerminal:
        environment = launch.environment(start)
        files = await asyncio.to_thread(launch.write_files, start)
        named = [word for name, path in files.items() for word in (name, str(path))]
        command = (self.program(), *launch.terminal_arguments(start), *named)
        return OwnTerminal(profile=self.name, command=command, environment=environment)

    async def probe(self) -> Installed:
        path = self.program()
        return Installed(path=path, version=await program_version(path, self._source))

    async def close(self) -> None:
        pass

    def program(self) -> str:
        """The CLI's path. Raises TrunklineError `agent_not_found`, saying how to install it."""
        return find_program(self.manifest, self._source)

    async def _start(self, start: Start) -> ClaudeSession:
        refuse_options(self, start.options)
        launch.check(start.options)
        environment = launch.environment(start)
        start = msgspec.structs.replace(start, environment=environment)
        files = await asyncio.to_thread(launch.write_files, start)
        named = [word for name, path in files.items() for word in (name, str(path))]
        try:
            path = self.program()
            version = await self._version_of(path)
            link, notice = await _connect(start, path, version, [*launch.arguments(start), *named])
        except BaseException:
            launch.remove_files(files.values())
            raise
        resumed = (start.native_session or start.options.resume_native) is not None
        translator = ClaudeTranslator(start.context, CAPABILITIES, resumed=resumed)
        session = ClaudeSession(
            link,
            translator,
            launch.initialize(start, old=takes_any_host(version)),
            list(files.values()),
            mail=TeamMail(hooks.configuration(environment), link.pid),
            said=await link.said() if isinstance(link, AgentProcess) else (),
            survivor=start.survivor,
        )
        if start.survivor is not None:
            return session
        if notice is not None:
            session.notify(notice)
        await session.open(start.options.thinking)
        return session

    async def _version_of(self, path: str) -> str | None:
        key = (path, (await asyncio.to_thread(os.stat, path)).st_mtime_ns)
        if key not in self._versions:
            self._versions[key] = await program_version(path, self._source)
        return self._versions[key]


async def _connect(start: Start, path: str, version: str | None, arguments: list[str]) -> tuple[Link, str | None]:
    """Starts the CLI, and tells what its user should know of the way to it."""
    wanted = start.options.native.get("transport")
    detached = start.options.hold == "detached"
    if detached and wanted == "sdk-url":
        raise unsupported("hold", "a detached agent speaks over stdio: leave the native option 'transport' out")
    if detached:
        return await start.launch([path, *arguments], environment=start.environment), None
    if wanted == "stdio" or not takes_any_host(version):
        notice = f"Claude Code {version or 'of this version'} takes --sdk-url for its maker's hosts alone: it runs over stdio"
        process = await start.launch([path, *arguments], environment=start.environment)
        return process, notice if wanted == "sdk-url" else None
    link = await SdkUrlLink.listen(start.session)
    try:
        process = await start.launch(
            [path, "--sdk-url", link.url, *arguments], environment=link.environment(start.environment)
        )
    except BaseException:
        await link.stop()
        raise
    link.attach(process)
    return link, None

"""The ACP adapter: finds an agent's program, by the profile of its name or as a command, and starts sessions of it."""

import asyncio
import datetime as dt
import os
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from trunkline_adapters.acp import gemini_history, gemini_leftovers, launch
from trunkline_adapters.acp.profiles import PROFILES, Profile
from trunkline_adapters.acp.session import AcpSession
from trunkline_adapters.acp.translate import AcpTranslator
from trunkline_agentkit import Context, Installed, Start, load_manifest, refuse_options, unsupported
from trunkline_agentkit.agents import Agent
from trunkline_agentkit.history import HistoryFile, Line
from trunkline_agentkit.own_terminal import OwnTerminal
from trunkline_agentkit.profiles import profiled_program
from trunkline_wire import TrunklineError
from trunkline_wire.session import Capabilities

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
    image_input=True,
    cost_tracking=True,
    permissions=True,
    questions=True,
    plans=True,
    queueing=True,
    compaction=True,
    terminal=True,
    native_protocol=True,
    options=("model", "mode", "thinking", "mcp_servers", "resume_native", "native"),
)
"""What ACP agents can do at best; each says itself in `session.initialized` what it can."""


class AcpAdapter:
    """`source` is the environment in which programs and variables are looked up (the worker's by default)."""

    name = "acp"
    capabilities = CAPABILITIES

    def __init__(self, source: Mapping[str, str] | None = None) -> None:
        self.manifest = load_manifest("trunkline_adapters.acp")
        self._given = source

    @property
    def _source(self) -> Mapping[str, str]:
        return os.environ if self._given is None else self._given

    def translator(self, context: Context) -> AcpTranslator:
        return AcpTranslator(context)

    async def create(self, start: Start) -> AcpSession:
        return await self._start(start)

    async def resume(self, start: Start) -> AcpSession:
        if start.fork_at is not None:
            raise TrunklineError(
                "unsupported", "ACP agents copy a session only as a whole: leave `at` out", capability="fork"
            )
        return await self._start(start)

    async def terminal(self, start: Start) -> OwnTerminal:
        chosen = launch.choose(start, self._source)
        if start.agent is None or chosen.terminal is None:
            raise unsupported("terminal", f"{chosen.title} has no terminal that takes up a session of its protocol")
        arguments = launch.terminal_arguments(start, chosen.terminal)
        if start.survivor is None:
            await _tidy(start, chosen)
            if chosen.load_later:
                await asyncio.sleep(launch.until_loadable(start.native_since, dt.datetime.now(dt.UTC)))
        path = profiled_program(self.manifest, start.agent, chosen, self._source)
        environment = launch.environment(start, chosen, self._source)
        return OwnTerminal(profile=start.agent, command=(path, *arguments), environment=environment)

    async def probe(self) -> Installed:
        """The first agent that is installed, of those with a profile."""
        return PROFILES.probe(self.manifest, self._source)

    async def agents(self) -> list[Agent]:
        """One a profile."""
        return PROFILES.agents(self.manifest, self._source)

    @property
    def history_agents(self) -> tuple[str, ...]:
        return tuple(name for name, one in sorted(PROFILES.all(self._source).items()) if one.history is not None)

    def histories(self, agent: str | None = None) -> list[HistoryFile]:
        return [
            msgspec.structs.replace(file, agent=name)
            for name in self.history_agents
            if agent in (None, name)
            for file in gemini_history.histories(self._source)
        ]

    def history_lines(self, file: HistoryFile) -> Iterator[Line]:
        return gemini_history.history_lines(file)

    def history_translator(self, context: Context) -> gemini_history.GeminiHistory:
        return gemini_history.GeminiHistory(context)

    async def close(self) -> None:
        pass

    async def _start(self, start: Start) -> AcpSession:
        refuse_options(self, start.options)
        launch.check(start.options)
        chosen = launch.choose(start, self._source)
        path = profiled_program(self.manifest, start.agent, chosen, self._source)
        argv = [path, *chosen.command[1:]]
        start = msgspec.structs.replace(start, environment=launch.environment(start, chosen, self._source))
        await _tidy(start, chosen)
        process = await start.launch(argv, environment=start.environment)
        session = AcpSession(process, AcpTranslator(start.context, chosen), chosen, start, argv)
        await session.open()
        return session


async def _tidy(start: Start, chosen: Profile) -> None:
    native = start.native_session or start.options.resume_native
    if chosen.history is not None and native is not None:
        await asyncio.to_thread(gemini_leftovers.remove, start.environment, native)

"""The pty adapter: finds a program by the profile of its name, or takes any command, and runs it in a terminal."""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from trunkline_adapters.pty import cast, launch, tmux
from trunkline_adapters.pty.link import BridgeLink, TmuxLink
from trunkline_adapters.pty.log import LogReader
from trunkline_adapters.pty.profiles import PROFILES, Profile
from trunkline_adapters.pty.session import PtySession
from trunkline_adapters.pty.translate import PtyTranslator
from trunkline_agentkit import Context, Installed, Manifest, Start, find_program, load_manifest, refuse_options
from trunkline_agentkit.agents import Agent
from trunkline_agentkit.profiles import profiled_program
from trunkline_agentkit.recorder import Recorded, read_recording
from trunkline_wire import TrunklineError
from trunkline_wire.session import Capabilities, SessionOptions

CAPABILITIES: Final = Capabilities(
    interrupt=True,
    permissions=True,
    terminal=True,
    heuristic=("turns", "messages", "interrupt", "permissions"),
    hold=("child", "detached", "tmux"),
    options=("model", "native"),
)
"""What terminal programs can do at best; each session says in `session.initialized` what its profile knows of."""


_TMUX: Final = Manifest(
    name="tmux", title="tmux", protocol="control mode", program="tmux", install="install tmux 3.2 or later"
)


class PtyAdapter:
    """`source` is the environment in which programs and variables are looked up (the worker's by default)."""

    name = "pty"
    capabilities = CAPABILITIES

    def __init__(self, source: Mapping[str, str] | None = None) -> None:
        self.manifest = load_manifest("trunkline_adapters.pty")
        self._given = source

    @property
    def _source(self) -> Mapping[str, str]:
        return os.environ if self._given is None else self._given

    def translator(self, context: Context) -> PtyTranslator:
        return PtyTranslator(context, source=self._source)

    def recorded(self, path: Path) -> list[Recorded]:
        """An asciinema recording, or one of the kit's."""
        with path.open("rb") as file:
            if cast.is_cast(file.readline()):
                file.seek(0)
                return list(cast.recorded(file))
        return read_recording(path)

    def outlives(self, options: SessionOptions) -> bool:
        return options.hold in {"detached", "tmux"}

    async def create(self, start: Start) -> PtySession:
        refuse_options(self, start.options)
        source = self._source
        chosen = launch.choose(start, source)
        if start.agent is not None and start.agent.startswith(tmux.ATTACHED):
            return await self._look_at(start, tmux.users(self._tmux(), start.agent.removeprefix(tmux.ATTACHED), source))
        path = profiled_program(self.manifest, start.agent, chosen, source)
        argv = launch.arguments(path, chosen, start.options.model)
        environment = launch.environment(start, chosen, source)
        if start.options.hold == "tmux":
            server = tmux.held(self._tmux(), start.session, start.environment)
            await server.end()
            await server.start(argv, start.cwd, environment, launch.size(start.options.native, tmux.SIZE))
            return await self._attach(start, chosen, server)
        columns, rows = launch.size(start.options.native)
        process = await start.launch(launch.bridged(argv, columns, rows), environment=environment)
        translator = PtyTranslator(start.context, chosen, source)
        said = None if start.survivor is None else await process.said()
        return PtySession(start, chosen, BridgeLink(process), translator, log=_log(chosen, environment), said=said)

    async def resume(self, start: Start) -> PtySession:
        """Takes up what is held; anything else begins anew, for a terminal's program keeps nothing.

        `native_session` is of another adapter's agent, whose own terminal the program is.
        """
        if start.survivor is None:
            return await self.create(start)
        if start.options.hold == "detached":
            return await self.create(msgspec.structs.replace(start, native_session=None))
        server = tmux.held(self._tmux(), start.session, start.environment)
        if not await server.runs():
            raise TrunklineError(
                "agent_failed", "the program that tmux held has ended: send a prompt to start it again"
            )
        return await self._attach(start, launch.choose(start, self._source), server)

    async def _attach(self, start: Start, chosen: Profile, server: tmux.Server) -> PtySession:
        """A client of a server of ours; it ends with the worker, and the server does not."""
        try:
            process = await start.launch(server.client())
        except BaseException:
            if start.survivor is None:
                await server.end()
            raise
        native = None if start.native_session == server.attach else start.native_session
        translator = PtyTranslator(start.context, chosen, self._source, attach=server.attach, native=native)
        if start.survivor is not None:
            translator.adopt(start.survivor)
        log = _log(chosen, launch.environment(start, chosen, self._source))
        return PtySession(start, chosen, TmuxLink(process, server), translator, log=log)

    async def _look_at(self, start: Start, server: tmux.Server) -> PtySession:
        if server.session not in await tmux.sessions(server.program, self._source):
            raise TrunklineError("agent_not_found", f"there is no tmux session {server.session!r} here")
        writable = start.options.native.get("writable") is True
        process = await start.launch(server.client(writable=writable))
        translator = PtyTranslator(start.context, None, self._source, attach=server.attach, writable=writable)
        return PtySession(start, translator.profile, TmuxLink(process, server), translator, writable=writable)

    def _tmux(self) -> str:
        """Raises TrunklineError `agent_not_found`."""
        return find_program(_TMUX, self._source)

    async def probe(self) -> Installed:
        """The first program that is installed, of those with a profile."""
        return PROFILES.probe(self.manifest, self._source)

    async def agents(self) -> list[Agent]:
        """One a profile, and the user's own tmux sessions as `tmux:NAME`."""
        found = PROFILES.agents(self.manifest, self._source)
        with contextlib.suppress(TrunklineError):
            program = self._tmux()
            for name in await tmux.sessions(program, self._source):
                known = f"{tmux.ATTACHED}{name}"
                found.append(Agent(name=known, title=f"tmux session {name}", profile=known, path=program))
        return found

    async def close(self) -> None:
        pass


def _log(chosen: Profile, environment: Mapping[str, str]) -> LogReader | None:
    return LogReader(chosen.log, environment) if chosen.log is not None else None

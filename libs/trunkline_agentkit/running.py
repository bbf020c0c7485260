"""One agent process of an owner: started, followed, ended."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace

from trunkline_agentkit.agent_process import AgentProcess, Exit, Registration
from trunkline_agentkit.environment import build_environment, temporary_directory
from trunkline_agentkit.held import Held, end_held, start_held, take_up
from trunkline_agentkit.intake import Intake
from trunkline_agentkit.memory import Memory
from trunkline_agentkit.own_terminal import OpensTerminals, in_terminal
from trunkline_agentkit.place import Place
from trunkline_agentkit.process import start_process
from trunkline_agentkit.protocol import Abandonable, Adopting, BackendAdapter, BackendSession, Start, unsupported
from trunkline_agentkit.recorder import Recorder
from trunkline_agentkit.registry import load
from trunkline_agentkit.settings import OwnerSettings
from trunkline_agentkit.survivor import Survivor
from trunkline_wire import TrunklineError
from trunkline_wire.ids import uuid7_hex

_LAST_WORDS: Final = 5.0
"""Seconds that the rest of an ended agent's output may take to be read."""


class Running:
    """`stopping` says why it was told to end; None: it lives, or died by itself. `ready` is set once it has said that it is
    (`initialized`), `gone` once all is written down,
    `caught_up` once the log has what an adopted agent said meanwhile. `lasting`: it needs no worker to run on; `abandoned`:
    it does so.
    """

    def __init__(self, start: Start, session: BackendSession, intake: Intake, *, lasting: bool) -> None:
        self.start = start
        self.session = session
        self.intake = intake
        self.lasting = lasting
        self.ready = asyncio.Event()
        self.stopping: str | None = None
        self.exit: Exit | None = None
        self.gone = asyncio.Event()
        self.caught_up = asyncio.Event()
        self.abandoned = False
        self.reading: asyncio.Task[None] | None = None
        self.following: asyncio.Task[None] | None = None

    @property
    def incarnation(self) -> str:
        return self.start.incarnation

    @property
    def initialized(self) -> bool:
        return self.ready.is_set()

    async def stop(self, reason: str, *, grace: float) -> Exit | None:
        """Ends the agent and waits until what it left open is written; the first reason stands."""
        self.stopping = self.stopping or reason
        await self.session.close(grace)
        await self._until_gone()
        return self.exit

    async def abandon(self, reason: str) -> bool:
        """Lets go of an agent that needs no worker to run on, and leaves in the log what it has open; False for any other."""
        if not self.lasting or not isinstance(self.session, Abandonable):
            return False
        self.stopping = self.stopping or reason
        self.abandoned = True
        await self.session.abandon()
        await self._until_gone()
        return True

    async def _until_gone(self) -> None:
        try:
            async with asyncio.timeout(_LAST_WORDS):
                await self.gone.wait()
        except TimeoutError:
            # The process is gone, and still its adapter waits for output.
            if self.reading is not None:
                self.reading.cancel()
            await self.gone.wait()


class Starter:
    """Starts agents of one session with everything a host supplies: environment, lock, registration, recording.

    While the session is handed over to its terminal, that is what it starts; `find` gives the adapter of a name. `present` is
    the adapter of what was started last.
    """

    def __init__(
        self,
        adapter: BackendAdapter,
        place: Place,
        memory: Memory,
        settings: OwnerSettings,
        *,
        find: Callable[[str], BackendAdapter] = load,
    ) -> None:
        self._adapter = self.present = adapter
        self._find = find
        self._place = place
        self._memory = memory
        self._settings = settings
        self._processes: list[AgentProcess] = []

    def kill(self) -> None:
        """SIGKILL to the process groups of the latest start, now."""
        for process in self._processes:
            process.kill()

    @property
    def held(self) -> Held | None:
        """Where the session's agent is held that goes on without its worker; None where none shall."""
        if self._memory.options.hold != "detached" or self._memory.session.interface == "terminal":
            return None  # tmux holds what runs in a terminal
        return Held(
            session=self._place.session,
            directory=self._place.path / "hold",
            epoch=self._memory.session.epoch,
            patience=self._settings.held_for,
        )

    async def end_held(self) -> None:
        """Ends an agent that goes on without its worker, and that nobody takes up."""
        if self.held is not None:
            await end_held(self.held)

    async def start(self, intake: Callable[[Start], Intake], *, anew: bool = False) -> Running:
        """Takes up the native session, forks that of the parent, or creates one; with `anew` always creates one.

        Raises TrunklineError with what keeps the agent from starting; then no process is left.
        """
        state, options = self._memory.session, self._memory.options
        # A native session in which nothing was ever said may never have been kept by the agent.
        native = (state.native_session if state.turns else None) or options.resume_native
        if anew or not self._adapter.capabilities.resume:
            native = None
        since = self._memory.native_since if native == state.native_session else None
        if state.interface == "terminal":
            return await self._open_terminal(
                replace(await self._prepare(uuid7_hex(), None), native_session=native, native_since=since), intake
            )
        start = replace(
            await self._prepare(uuid7_hex(), None),
            native_session=native,
            native_since=since,
            fork=state.turns == 0 and native is not None and state.parent is not None,
            fork_at=state.forked_at,
        )
        return await self._begin(self._adapter, start, intake)

    async def adopt(self, survivor: Survivor, intake: Callable[[Start], Intake]) -> Running:
        """Takes up an agent that outlived its worker, as the incarnation that it is. Raises what `start` raises."""
        start = await self._prepare(survivor.session.incarnation or "", survivor)
        native = survivor.session.native_session
        start = replace(start, native_session=native)
        if survivor.session.interface == "terminal":
            return await self._open_terminal(start, intake)
        return await self._begin(self._adapter, start, intake)

    async def _open_terminal(self, start: Start, intake: Callable[[Start], Intake]) -> Running:
        adapter = self._adapter
        if not isinstance(adapter, OpensTerminals):
            raise unsupported("terminal", f"{adapter.manifest.title} has no terminal of its own")
        terminal = await adapter.terminal(start)
        return await self._begin(self._find(terminal.by), in_terminal(start, terminal), intake)

    async def _prepare(self, incarnation: str, survivor: Survivor | None) -> Start:
        state, options = self._memory.session, self._memory.options
        cwd = state.cwd or "/"
        environment = build_environment(
            self._adapter.manifest,
            options.environment,
            session=state.session,
            incarnation=incarnation,
            temporary=await asyncio.to_thread(temporary_directory, state.session),
        )
        self._processes = list[AgentProcess]()
        return Start(
            session=state.session,
            cwd=cwd,
            incarnation=incarnation,
            environment=environment,
            launch=partial(self._launch, self._processes, cwd, environment, incarnation, survivor),
            recorder=partial(self._open_recorder, incarnation),
            options=options,
            agent=state.agent,
            title=state.title,
            survivor=survivor,
        )

    async def _begin(self, adapter: BackendAdapter, start: Start, intake: Callable[[Start], Intake]) -> Running:
        processes, self.present = self._processes, adapter
        await self._place.change(incarnation=start.incarnation, agent=None)
        try:
            new = start.native_session is None and start.survivor is None
            session = await (adapter.create if new else adapter.resume)(start)
        except BaseException as error:
            for process in processes:
                await process.close(grace=0)
            if isinstance(error, TrunklineError) or not isinstance(error, Exception):
                raise
            raise TrunklineError(
                "agent_failed", f"the adapter {adapter.name!r} could not start its agent: {error}"
            ) from error
        lasting = isinstance(adapter, Adopting) and adapter.outlives(start.options)
        return Running(start, session, intake(start), lasting=lasting)

    async def _launch(
        self,
        processes: list[AgentProcess],
        directory: str,
        complete: Mapping[str, str],
        incarnation: str,
        survivor: Survivor | None,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> AgentProcess:
        recorder = await self._open_recorder(incarnation)
        try:
            if self.held is not None:
                process = await self._launch_held(
                    self.held, survivor, argv, cwd or directory, environment or complete, recorder
                )
            else:
                process = await start_process(
                    argv,
                    cwd=cwd or directory,
                    environment=environment or complete,
                    inherit=(self._place.lock_descriptor,),
                    recorder=recorder,
                    register=partial(self._register, any(one.running for one in processes)),
                )
        except BaseException:
            if recorder is not None:
                recorder.close()
            raise
        # Some agents are a process a turn: the list must not grow with them.
        processes[:] = [*(one for one in processes if one.running), process]
        return process

    async def _launch_held(
        self,
        held: Held,
        survivor: Survivor | None,
        argv: Sequence[str],
        cwd: str,
        environment: Mapping[str, str],
        recorder: Recorder | None,
    ) -> AgentProcess:
        if survivor is None:
            return await start_held(
                argv, held, cwd=cwd, environment=environment, recorder=recorder, register=self._register_held
            )
        record = self._place.record
        if record is None or record.held is None:
            raise TrunklineError("agent_failed", "nothing is known of an agent that goes on by itself")
        return await take_up(held, record.held, recorder)

    async def _open_recorder(self, incarnation: str) -> Recorder | None:  # bound by partial
        if not self._settings.record_native:
            return None
        recorder = await asyncio.to_thread(Recorder, self._place.native_log)
        recorder.note("meta", {"session": self._place.session, "incarnation": incarnation})
        return recorder

    async def _register(self, further: bool, registration: Registration) -> None:  # bound by partial
        # Of several processes the first is the agent; the others are found by their marks.
        if not further:
            await self._place.change(agent=registration)

    async def _register_held(self, registration: Registration) -> None:
        # Not as the agent, which is ended with its worker.
        await self._place.change(held=registration)

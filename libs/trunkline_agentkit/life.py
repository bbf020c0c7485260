"""The life of a session's agent: started when it is needed, followed while it runs, settled when it is gone."""

import asyncio
import contextvars
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final

import msgspec

from trunkline_agentkit.agent_process import Exit
from trunkline_agentkit.endings import died, leftovers
from trunkline_agentkit.intake import Cause, Intake, Lines
from trunkline_agentkit.memory import MAX_STARTS, NO_START
from trunkline_agentkit.meters import AgentMeter
from trunkline_agentkit.pen import Pen
from trunkline_agentkit.protocol import BackendAdapter, BackendSession, Start, Witness
from trunkline_agentkit.redact import redact
from trunkline_agentkit.rules import OUTCOME_UNKNOWN
from trunkline_agentkit.running import Running, Starter
from trunkline_agentkit.settings import OwnerSettings
from trunkline_agentkit.spans import TurnSpans
from trunkline_agentkit.survivor import Survivor
from trunkline_bus import metrics
from trunkline_bus.writer import SessionWriter
from trunkline_wire import AgentRef, ErrorInfo, Event, Source, TrunklineError
from trunkline_wire.session import Capabilities, SessionInitialized, SessionResumed, SessionStatus
from trunkline_wire.turn import MessageUser, TurnCompleted, TurnStarted
from trunkline_wire.work import CommandFailed, CommandFinished, ErrorRaised, NativeMessage

log = logging.getLogger(__name__)

_STDERR_SHOWN: Final = 4_000
_ENDING_GRACE: Final = 2.0
"""Seconds that an agent which has closed its output may take to leave."""


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt that the agent was given and that no turn has begun for. `headers` carry the trace it belongs to."""

    sent: bool
    """To an idle agent; otherwise it waits in the agent's own queue."""
    source: Source | None = None
    headers: Mapping[str, str] | None = None


async def _nothing() -> None:
    """What follows from an agent's end, where nothing does."""


class AgentLife:
    """`agent` is the one that runs. `crashed` is called when it has ended too often before it was ready, `ended` when its end is
    written, before anybody is told.
    """

    def __init__(
        self,
        pen: Pen,
        writer: SessionWriter,
        adapter: BackendAdapter,
        starter: Starter,
        settings: OwnerSettings,
        crashed: Callable[[Exit | None], None],
        *,
        ended: Callable[[], Awaitable[None]] = _nothing,
    ) -> None:
        self._pen = pen
        self._writer = writer
        self._adapter = adapter
        self._starter = starter
        self._settings = settings
        self._crashed = crashed
        self._ended = ended
        self._lines = Lines()
        self._spans = TurnSpans(adapter.name, pen.memory.session.session)
        self._meter = AgentMeter(adapter.name, pen.memory.session)
        self._starting = asyncio.Lock()
        self._expected: dict[str, Expected] = {}
        self._changed = asyncio.Event()
        self._retired = False
        self.on_agent: Callable[[BackendSession | None], None] = lambda _: None
        """Is told of each agent that begins to run, and with None that it is gone."""
        self.agent: Running | None = None
        self.active = asyncio.get_running_loop().time()
        """Loop time of the last sign of life: of the agent, or of someone who wants something of it."""

    @property
    def capabilities(self) -> Capabilities:
        return self._pen.memory.session.capabilities or self._adapter.capabilities

    @property
    def awaited(self) -> bool:
        """Whether a prompt is with the agent that no turn has begun for."""
        return any(expected.sent for expected in self._expected.values())

    @property
    def busy(self) -> bool:
        return self.awaited or self._pen.memory.session.turn is not None

    def touch(self) -> None:
        """Notes a sign of life."""
        self.active = self._now()

    async def idle(self) -> None:
        """Waits until no turn runs and no prompt is on its way."""
        while self.busy:
            self._changed.clear()
            await self._changed.wait()

    def retire(self) -> None:
        """From now on no agent is started."""
        self._retired = True

    async def ensure(self) -> Running:
        """The running agent; starts one if there is none. Raises TrunklineError with what keeps it from starting."""
        async with self._starting:
            if self._retired:
                raise TrunklineError("session_closed", "the session is being closed: `resume` reopens it")
            if self.agent is not None and self.agent.stopping is not None:
                await self.agent.gone.wait()
            if self.agent is None:
                self.agent = await self._start()
            return self.agent

    def expect(self, command: str, expected: "Expected") -> None:
        """Notes that a prompt is going to the agent: the turn that it causes gets its source."""
        self._expected[command] = expected
        if expected.sent:
            self._meter.prompted()

    def forget(self, command: str) -> None:
        self._expected.pop(command, None)

    async def stop(self, reason: str, *, grace: float) -> Exit | None:
        """Ends the agent, if one runs, and waits until the log has what it left open. Returns how it ended."""
        async with self._starting:
            agent = self.agent
            return None if agent is None else await agent.stop(reason, grace=grace)

    async def replace_agent(self, reason: str, write: Callable[[], Awaitable[None]], *, grace: float) -> None:
        """Ends the agent, and has `write` say in the log what the next one is to be: none starts in between."""
        async with self._starting:
            if self._retired:
                raise TrunklineError("session_closed", "the session is being closed: `resume` reopens it")
            if self.agent is not None:
                await self.agent.stop(reason, grace=grace)
            await write()

    async def abandon(self, reason: str) -> bool:
        """Lets go of an agent that needs no worker to run on; False where none does."""
        async with self._starting:
            return self.agent is not None and await self.agent.abandon(reason)

    @property
    def lasting(self) -> bool:
        """Whether the agent that runs needs no worker to run on."""
        return self.agent is not None and self.agent.lasting

    async def end_held(self) -> None:
        """Ends an agent that goes on without its worker, and that nobody takes up."""
        await self._starter.end_held()

    def received(self, command: str) -> bool | None:
        """Whether the agent was given this command's prompt before it was taken up; None where nobody can tell."""
        agent = self.agent
        return agent.session.received(command) if agent is not None and isinstance(agent.session, Witness) else None

    def kill(self) -> None:
        """SIGKILL to the agent, also to one that is only starting."""
        self._starter.kill()

    async def _start(self) -> Running:
        memory = self._pen.memory
        if memory.starts >= MAX_STARTS:
            self._crashed(None)
            raise TrunklineError("crash_loop", f"the agent ended {memory.starts} times before it was ready")
        self._pen.write(SessionStatus(status="starting"))
        try:
            agent = await self._begin()
        except TrunklineError as error:
            metrics.AGENT_STARTS.labels(self._adapter.name, error.code).inc()
            recoverable = error.code in NO_START
            self._pen.write(
                ErrorRaised(code=error.code, message=error.message, details=error.details, recoverable=recoverable)
            )
            self._pen.write(SessionStatus(status="stopped", reason=error.code))
            if memory.starts >= MAX_STARTS:
                self._crashed(None)
            raise
        metrics.AGENT_STARTS.labels(self._adapter.name, "ok").inc()
        self._follow_from_now(agent)
        return agent

    def _follow_from_now(self, agent: Running) -> None:
        metrics.AGENTS.labels(self._adapter.name).inc()
        self.touch()
        self.on_agent(agent.session)
        name = self._pen.memory.session.session
        # An agent outlives the prompt that started it, and is no part of that prompt's trace.
        apart = contextvars.Context()
        agent.reading = asyncio.create_task(self._read(agent), name=f"output of {name}", context=apart)
        agent.following = asyncio.create_task(
            self._follow(agent, agent.reading), name=f"agent of {name}", context=apart
        )

    async def adopt(self, survivor: Survivor) -> None:
        """Takes up an agent that outlived its worker, and waits until the log has what it said meanwhile.

        Raises TrunklineError with what keeps it from that.
        """
        async with self._starting:
            agent = await self._starter.adopt(survivor, partial(self._intake, survivor=survivor))
            agent.ready.set()
            self.agent = agent
            self._expect_what_was_sent(survivor)
            metrics.AGENT_STARTS.labels(self._adapter.name, "adopted").inc()
            self._follow_from_now(agent)
        await agent.caught_up.wait()
        if agent.gone.is_set():
            raise TrunklineError("agent_failed", "the agent ended before it was taken up")

    def _expect_what_was_sent(self, survivor: Survivor) -> None:
        """Prompts that the agent has and no turn has begun for; what it has queued or taken into a turn is done."""
        memory = self._pen.memory
        for command in survivor.prompts:
            record = memory.commands.commands.get(command)
            done = command in memory.caused or (record is not None and record.outcome is not None)
            if done or not self.received(command):
                continue
            if command in memory.queued or command in survivor.steered:
                self.outcome(command)
            else:
                self._expected[command] = Expected(sent=True)

    async def _begin(self) -> Running:
        """Starts the agent. One that lost this very session goes on in a new one of its own: the log still has it all."""
        try:
            return await self._starter.start(self._intake)
        except TrunklineError as error:
            if error.code != "history_lost" or not self._pen.memory.session.turns:
                raise
            message = f"{error.message}: it goes on without what was said before"
            self._pen.write(ErrorRaised(code=error.code, message=message, details=error.details))
            return await self._starter.start(self._intake, anew=True)

    def _intake(self, start: Start, survivor: Survivor | None = None) -> Intake:
        return Intake(
            self._pen,
            start.context,
            self._starter.present.manifest,
            self._lines,
            cause_of=self._cause_of,
            on_event=self._on_event,
            spans=self._spans,
            meter=self._meter,
            survivor=survivor,
        )

    async def _read(self, agent: Running) -> None:
        async for native in agent.session.messages():
            await self._writer.room()
            self.touch()
            if self._pen.memory.session.condition == "stalled":
                self._pen.write(SessionStatus())
            agent.intake.take(native)

    async def _follow(self, agent: Running, reading: asyncio.Task[None]) -> None:
        """Waits until the agent's output ends, then settles its end. Ends only with the agent."""
        await asyncio.wait({reading})
        fault = None if reading.cancelled() else reading.exception()
        if fault is not None and self._writer.error is None:
            log.error("agent_unreadable", extra={"session": self._pen.memory.session.session}, exc_info=fault)
        agent.exit = await self._end(agent, 0 if fault is not None else _ENDING_GRACE)
        try:
            if self._writer.error is None and not agent.abandoned:
                self._settle(agent, agent.exit, failed=agent.exit.code != 0 or fault is not None)
                await self._ended()
        except Exception:
            log.exception("agent_unsettled", extra={"session": self._pen.memory.session.session})
        finally:
            metrics.AGENTS.labels(self._adapter.name).dec()
            self.agent = None
            self.on_agent(None)
            self._expected.clear()
            self._spans.end()
            self._meter.ended()
            self._changed.set()
            agent.caught_up.set()
            agent.gone.set()
        if agent.stopping is None and not agent.initialized and self._pen.memory.starts >= MAX_STARTS:
            self._crashed(agent.exit)

    async def _end(self, agent: Running, grace: float) -> Exit:
        """Closes the agent. One whose adapter fails at that is killed, and what it left open gets its end all the same."""
        try:
            return await agent.session.close(grace)
        except Exception:
            log.exception("agent_not_closed", extra={"session": self._pen.memory.session.session})
            self.kill()
            return Exit(code=None, signal=None, stderr_tail="")

    def _settle(self, agent: Running, exit: Exit, *, failed: bool) -> None:
        """Writes what follows from an agent's end: nothing it began stays open."""
        state = self._pen.memory.session
        turn = state.turn.id if state.turn is not None else None
        died_open = state.turn is not None or self.awaited or not agent.initialized
        failure: ErrorInfo | None = None
        if agent.stopping is None and (failed or died_open):
            error = died(exit, redact(exit.stderr_tail[-_STDERR_SHOWN:], agent.start.environment))
            failure = ErrorInfo(code=error.code, message=error.message)
            self._pen.write(error, turn=turn)
        queued = dict(self._pen.memory.queued)
        for ending in leftovers(state, asks=state.open_asks, queued=queued, error=failure):
            self._pen.end(ending)
        for command, expected in self._expected.items():
            if expected.sent:
                self.outcome(command, OUTCOME_UNKNOWN if agent.initialized else failure or OUTCOME_UNKNOWN)
        self._pen.write(SessionStatus(status="stopped", reason=agent.stopping or "ended"))
        metrics.AGENT_ENDS.labels(self._adapter.name, agent.stopping or ("failed" if failed else "ended")).inc()

    def outcome(self, command: str, error: ErrorInfo | None = None, *, result: object = None, how: str = "") -> None:
        """Writes a command's outcome, unless it has one; the first prompt of the options is no command."""
        record = self._pen.memory.commands.commands.get(command)
        if record is None or record.outcome is not None:
            return
        if error is not None:
            self._pen.write(CommandFailed(command=command, error=error), cause=command)
        else:
            emulated = how == "emulated" or (record.verb or "") in self._adapter.manifest.emulated
            self._pen.write(
                CommandFinished(command=command, how="emulated" if emulated else "native", result=result), cause=command
            )
        metrics.COMMANDS.labels(record.verb or "?", "failed" if error is not None else "finished").inc()

    def _cause_of(self, cause: str | None, data: TurnStarted) -> Cause:
        if cause is None and data.trigger == "prompt":
            cause = next((command for command, expected in self._expected.items() if expected.sent), None)
        if cause in self._expected:
            expected = self._expected[cause]
            return Cause(command=cause, source=expected.source, headers=expected.headers)
        return Cause(command=cause)

    def _on_event(self, event: Event) -> None:
        match event.data:
            case SessionInitialized() as data:
                if self.agent is not None:
                    self.agent.ready.set()
                state = self._pen.memory.session
                name = self._starter.present.name
                self._writer.use_agent(AgentRef(adapter=name, agent=state.agent, version=data.version or state.version))
            case SessionResumed(how="adopted") if self.agent is not None:
                self.agent.caught_up.set()
            case TurnStarted() if event.cause in self._expected:
                self._expected.pop(event.cause)
                self.outcome(event.cause)
            case MessageUser(command=str(command)) if command in self._expected:
                # Taken into a running turn, or dropped by the agent: no turn of its own will come.
                self._expected.pop(command)
                self.outcome(command)
                self._changed.set()
            case TurnCompleted() if event.lane is None:
                metrics.TURNS.labels(self._adapter.name, event.data.outcome).inc()
                self._changed.set()
            case NativeMessage(known=False) as data:
                version = self._pen.memory.session.version or "?"
                metrics.NATIVE_UNKNOWN.labels(self._adapter.name, version, metrics.DRIFTS(data.kind)).inc()
            case _:
                pass

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()

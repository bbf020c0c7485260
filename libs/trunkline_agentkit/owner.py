"""The owner of one session: reads its commands and decisions, runs its agent, writes what happens.

Rules are elsewhere and pure (`rules`, `endings`, `memory`, the folds); here the parts meet, and here the end is decided.

A command is accepted in the log before it has an effect, and gets its outcome after it: a prompt that an idle agent was
given is finished when its turn begins, one that was queued or folded into a turn when the agent has taken it, any other
verb when the agent has done it.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Final, Literal

from trunkline_agentkit.answers import Answers
from trunkline_agentkit.directory import find_survivor, fold_log
from trunkline_agentkit.effects import Effects
from trunkline_agentkit.endings import leftovers
from trunkline_agentkit.environment import remove_temporary_directory
from trunkline_agentkit.hooks import Hook
from trunkline_agentkit.interfaces import Interfaces, TerminalTalk
from trunkline_agentkit.life import AgentLife
from trunkline_agentkit.memory import Memory
from trunkline_agentkit.orders import Orders
from trunkline_agentkit.pen import Pen
from trunkline_agentkit.place import Place
from trunkline_agentkit.process import Exit
from trunkline_agentkit.protocol import BackendAdapter, Interruptible, Terminal
from trunkline_agentkit.redact import redact
from trunkline_agentkit.registry import load
from trunkline_agentkit.running import Starter
from trunkline_agentkit.settings import OwnerSettings
from trunkline_agentkit.survivor import incarnation_of
from trunkline_agentkit.team_files import UnseenTeam
from trunkline_agentkit.terminal import TerminalHost
from trunkline_bus import metrics
from trunkline_bus.blobs import Blobs
from trunkline_bus.clock import ServerClock
from trunkline_bus.connection import Bus
from trunkline_bus.writer import SessionWriter
from trunkline_fold.asks import AsksState
from trunkline_wire import ErrorInfo, Spawn, TrunklineError
from trunkline_wire.session import SessionClosed, SessionStatus
from trunkline_wire.work import ErrorRaised, HookFired

log = logging.getLogger(__name__)

End = Literal["closed", "idle", "stopping", "fenced", "failed"]
"""Why an owner let go: `fenced` without a last word, `failed` with as much of one as the log took, the others in order."""

_ADOPTED_WITHIN: Final = 15.0
"""Seconds in which an agent that outlived its worker has to be taken up; later it counts as gone."""

_ON_PURPOSE: Final = frozenset({"detached", "tmux"})
_LAST_FLUSH: Final = 5.0
_SHOWN: Final = 4_000


class SessionOwner:
    """Made when the session is created or claimed, with the folds of its log up to there. `run()` is its whole life."""

    def __init__(
        self,
        bus: Bus,
        writer: SessionWriter,
        *,
        memory: Memory,
        asks: AsksState,
        adapter: BackendAdapter,
        place: Place,
        settings: OwnerSettings,
        spawn: Callable[[Spawn], Awaitable[None]],
        clock: ServerClock,
        find: Callable[[str], BackendAdapter] = load,
    ) -> None:
        self._bus = bus
        self._writer = writer
        self._memory = memory
        self._host = memory.session.host
        """Of this owner: the folds end with its own claim."""
        self._place = place
        self._settings = settings
        self._end: asyncio.Future[End] = asyncio.get_running_loop().create_future()
        self._pen = Pen(writer, memory)
        starter = Starter(adapter, place, memory, settings, find=find)
        self._talk = TerminalTalk(bus, self._pen, writer, adapter)
        self._life = AgentLife(
            self._pen, writer, adapter, starter, settings, self._crash_loop, ended=self._talk.catch_up
        )
        interfaces = Interfaces(self._pen, writer, self._life, adapter, settings)
        effects = Effects(
            self._pen,
            writer,
            self._life,
            settings,
            Blobs(bus),
            spawn=spawn,
            close=self._close,
            release=lambda: self.finish("idle"),
            hand_over=interfaces.hand_over,
        )
        self._orders = Orders(
            bus, self._pen, writer, self._life, effects, effect_within=settings.effect_within, clock=clock
        )
        self._answers = Answers(bus, self._pen, writer, self._life, asks)
        self._terminal: TerminalHost | None = None
        if adapter.capabilities.terminal:
            life = self._life
            self._terminal = TerminalHost(bus, self.session, ensure=life.ensure, touch=life.touch)
            life.on_agent = self._terminal.use

    @property
    def session(self) -> str:
        return self._memory.session.session

    @property
    def cmd_seq(self) -> int:
        """The sequence in COMMANDS up to which the session's commands were read."""
        return self._orders.cmd_seq

    @property
    def unfinished(self) -> bool:
        """Whether accepted commands are without an outcome."""
        return bool(self._memory.commands.open)

    @property
    def busy(self) -> bool:
        """Whether a turn runs."""
        return self._life.busy

    @property
    def status(self) -> str:
        """The session's status, as its fold says."""
        return self._memory.session.status

    @property
    def closed(self) -> bool:
        return self._memory.session.closed is not None

    @property
    def native_session(self) -> str | None:
        return self._memory.session.native_session

    @property
    def team_in_files(self) -> bool:
        """Whether files alone tell what members of its agent's team do: those of a terminal, or that its stream is silent about."""
        agent = self._life.agent
        if agent is None:
            return False
        return isinstance(agent.session, Terminal) or (
            isinstance(agent.session, UnseenTeam) and agent.session.has_unseen_team
        )

    async def team_changed(self) -> None:
        """The files of its agent's team are other than before. Raises TrunklineError `agent_failed` where they can't be read."""
        agent = self._life.agent
        if agent is not None and isinstance(agent.session, UnseenTeam) and agent.session.has_unseen_team:
            await agent.session.team_changed()

    async def note_hook(self, hook: Hook) -> bool:
        """Writes the call of a hook into the log; False once the session's end is written. Raises TrunklineError with what stopped the writer."""
        await self._writer.room()
        state = self._memory.session
        if state.closed is not None or self._end.done():
            return False
        self._life.touch()
        turn = state.turn.id if state.turn is not None else None
        self._pen.write(HookFired(hook_event=hook.event, hook=hook.id, input=hook.input), turn=turn)
        return True

    def finish(self, end: End) -> None:
        """Asks the owner to let go; the first reason stands."""
        if not self._end.done():
            self._end.set_result(end)

    async def run(self) -> End:
        """Owns the session until it is closed, idle, taken over or told to `finish`; then no process of it is left."""
        end: End = "failed"
        try:
            await self._take_up()
            end = await self._work()
        except Exception:
            log.exception("owner_failed", extra={"session": self.session})
        finally:
            await self._leave(end)
        return self._ended(end)

    def _ended(self, end: End) -> End:
        """What an end comes to, given what became of the writer."""
        error = self._writer.error
        if error is None:
            return end
        return "fenced" if error.code == "fenced" else "failed"

    async def _work(self) -> End:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(work)
                for work in (self._orders.run(), self._answers.run(), self._watch_clock(), self._watch_writer())
            ]
            if self._terminal is not None:
                tasks.append(group.create_task(self._terminal.run()))
            end = await self._end
            for task in tasks:
                task.cancel()
        return end

    async def _take_up(self) -> None:
        """Takes up the agent if it outlived its worker, and ends what one left open that did not."""
        adopting = incarnation_of(self._memory.session) is not None  # the claim names it
        if adopting and await self._adopt():
            return
        await self._life.end_held()
        state = self._memory.session
        # With a claim that names no agent its asks have ended.
        asks = state.open_asks if adopting else ()
        for ending in leftovers(state, asks=asks, queued=dict(self._memory.queued)):
            self._pen.end(ending)
        if state.initialized and state.closed is None and state.condition != "stopped":
            self._pen.write(SessionStatus(status="stopped", reason="worker_lost"))
        await self._talk.catch_up()

    async def _adopt(self) -> bool:
        try:
            async with asyncio.timeout(_ADOPTED_WITHIN):
                until = self._writer.claim_sequence
                await self._life.adopt(await find_survivor(self._bus, self.session, until=until))
        except (TrunklineError, TimeoutError) as error:
            log.warning("agent_not_adopted", extra={"session": self.session, "error": str(error)})
            await self._life.stop("worker_lost", grace=0)
            return False
        return True

    async def _watch_writer(self) -> None:
        await self._writer.wait_stopped()
        self.finish("fenced")

    async def _watch_clock(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._settings.tick)
            if self._writer.at_limit:
                await self._make_way()
            state, silent = self._memory.session, loop.time() - self._life.active
            if self._at_rest() and silent > self._settings.idle_after:
                self.finish("idle")
            elif (
                state.turn is not None
                and not state.open_tools
                and not state.open_asks
                and state.condition is None
                and silent > self._settings.stalled_after
            ):
                metrics.AGENT_STALLS.labels(state.adapter or "?").inc()
                self._pen.write(
                    SessionStatus(status="stalled", reason=f"silent for {silent:.0f} s"), turn=state.turn.id
                )

    async def _make_way(self) -> None:
        """Interrupts the running turn: the rest of the log is for the ends of what has begun."""
        state, agent = self._memory.session, self._life.agent
        if state.turn is None or agent is None or state.condition == "interrupting":
            return
        message = "The log is almost full: running turns are interrupted until there is room."
        self._pen.write(ErrorRaised(code="log_full", message=message), turn=state.turn.id)
        self._pen.write(SessionStatus(status="interrupting", reason="log_full"), turn=state.turn.id)
        try:
            if isinstance(agent.session, Interruptible):
                async with asyncio.timeout(self._settings.effect_within):
                    await agent.session.interrupt(cancel_queued=True)
                return
        except (TrunklineError, TimeoutError):
            log.warning("interrupt_failed", extra={"session": self.session}, exc_info=True)
        await self._life.stop("log_full", grace=0)

    def _at_rest(self) -> bool:
        state = self._memory.session
        busy_tasks = self._life.agent is not None and any(task.status in {"pending", "running"} for task in state.tasks)
        return not (self._life.busy or state.open_asks or busy_tasks or self._orders.waiting)

    def _crash_loop(self, exit: Exit | None) -> None:
        """Closes a session whose agent does not come up; `resume` reopens it."""
        if self._memory.session.closed is None and self._writer.error is None:
            self._write_end("crash_loop", exit, spare=None)
            self.finish("closed")

    async def _close(self, command: str, reason: str, exit: Exit | None) -> None:
        self._write_end(reason, exit, spare=command)
        await self._writer.flush()
        self.finish("closed")

    def _write_end(self, reason: str, exit: Exit | None, *, spare: str | None) -> None:
        """The outcomes of all open commands, then `session.closed`, then the outcome of `spare`, the command that closes."""
        closed = ErrorInfo(code="session_closed", message=f"the session was closed ({reason}) before this was done")
        for record in self._memory.commands.open:
            if record.command != spare:
                self._life.outcome(record.command, closed)
        last_error = redact(exit.stderr_tail[-_SHOWN:]) if exit is not None and exit.code != 0 else ""
        self._pen.write(
            SessionClosed(
                reason=reason,
                exit_code=exit.code if exit is not None else None,
                signal=exit.signal if exit is not None else None,
                last_error=last_error or None,
                cmd_seq=self._orders.cmd_seq,
            ),
            cause=spare,
        )
        if spare is not None:
            self._life.outcome(spare)

    async def _leave(self, end: End) -> None:
        """Stops the agent, stores what is queued, frees the session on this host.

        Where the log did not take it all, a command has no outcome yet, or the agent runs on, the record goes on naming this
        worker: then somebody has to look again.
        """
        fenced = self._ended(end) == "fenced"
        if (end == "fenced" or self._writer.error is not None) and not (fenced and self._life.lasting):
            self._life.kill()
        abandoned = False
        try:
            open = self._life.busy or bool(self._memory.session.open_asks)
            # What could not be taken up from its own history has nothing but its process; what is held, is on purpose.
            keeps = open or not self._life.capabilities.resume or self._memory.options.hold in _ON_PURPOSE
            if fenced or (end == "stopping" and keeps):
                abandoned = await self._life.abandon(end)
            if not abandoned:
                await self._life.stop(end, grace=self._settings.close_grace if end == "idle" else 0)
        except TrunklineError:
            log.exception("agent_left_over", extra={"session": self.session})
            self._life.kill()
        await self._writer.close(within=_LAST_FLUSH)
        match self._ended(end):
            case "fenced":
                await self._hand_over()
            case "failed":
                await self._place.change(agent=None)
            case "stopping" if abandoned or self.unfinished:
                log.info("session_left_open", extra={"session": self.session, "agent_runs": abandoned})
                await self._place.change(agent=None)
            case _:
                await self._place.change(worker=None, agent=None, cmd_seq=self._orders.cmd_seq, closed=self.closed)
        self._place.unlock()
        if self.closed:
            await asyncio.to_thread(remove_temporary_directory, self.session)
        log.info("session_released", extra={"session": self.session, "end": end})

    async def _hand_over(self) -> None:
        """Writes down what the new owner has made of the session, so that this host does not claim it back."""
        cmd_seq, closed, here = self._orders.cmd_seq, self.closed, True
        with contextlib.suppress(TrunklineError, TimeoutError):
            async with asyncio.timeout(_LAST_FLUSH):
                memory = (await fold_log(self._bus, self.session)).memory
                cmd_seq, closed = memory.commands.cmd_seq, memory.session.closed is not None
                here = memory.session.host == self._host
        if here:
            await self._place.change(worker=None, agent=None, cmd_seq=cmd_seq, closed=closed)
        else:
            await asyncio.to_thread(self._place.remove)

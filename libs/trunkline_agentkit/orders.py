"""The commands of one session: read in order, judged, accepted in the log, and only then done.

Prompts and what else the agent takes one after the other wait in one lane, other verbs that change it in a second; an
interruption, a steer, a close or a kill waits for nothing.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable
from typing import Any, Final, cast

import msgspec

from trunkline_agentkit import rules
from trunkline_agentkit.effects import Effects
from trunkline_agentkit.life import AgentLife
from trunkline_agentkit.pen import Pen
from trunkline_agentkit.spans import carried
from trunkline_bus import direct, metrics
from trunkline_bus.clock import ServerClock
from trunkline_bus.connection import Bus
from trunkline_bus.dead_letters import bury
from trunkline_bus.reader import Reader
from trunkline_bus.stored import Stored
from trunkline_bus.writer import SessionWriter
from trunkline_fold.commands import CommandRecord
from trunkline_wire import (
    Command,
    ErrorInfo,
    Source,
    TrunklineError,
    decode_command,
    decode_json,
    make_command,
    subjects,
    timestamp,
)
from trunkline_wire.blocks import TextBlock
from trunkline_wire.commands import Prompt
from trunkline_wire.work import CommandAccepted, CommandRejected

log = logging.getLogger(__name__)

_AT_ONCE: Final = frozenset({"interrupt", "steer", "close", "kill"})
_GATEWAY: Final = "gateway"


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """An accepted command on its way to its effect. `headers` are those of its message."""

    command: Command
    source: Source | None = None
    headers: dict[str, str] | None = None


class Orders:
    """`cmd_seq` is the sequence in COMMANDS up to which everything was read."""

    def __init__(
        self,
        bus: Bus,
        pen: Pen,
        writer: SessionWriter,
        life: AgentLife,
        effects: Effects,
        *,
        effect_within: float,
        clock: ServerClock,
    ) -> None:
        self._bus = bus
        self._pen = pen
        self._writer = writer
        self._life = life
        self._effects = effects
        self._effect_within = effect_within
        self._clock = clock
        self._waiting: asyncio.Queue[Job] = asyncio.Queue()
        self._control: asyncio.Queue[Job] = asyncio.Queue()
        self._group: asyncio.TaskGroup | None = None
        self.cmd_seq = pen.memory.commands.cmd_seq

    @property
    def waiting(self) -> bool:
        """Whether accepted commands wait for their effect."""
        return not (self._waiting.empty() and self._control.empty())

    async def run(self) -> None:
        """Reads and does commands until it is cancelled."""
        async with asyncio.TaskGroup() as self._group:
            await self._take_up()
            self._group.create_task(self._lane(self._waiting, None))
            self._group.create_task(self._lane(self._control, self._effect_within))
            await self._read()

    async def _read(self) -> None:
        session = self._pen.memory.session.session
        after = await self._position(session)
        async with Reader(self._bus, subjects.COMMANDS, [subjects.session_commands(session)], after=after) as reader:
            async for stored in reader:
                with carried(stored.headers):
                    self._on_stored(stored)

    async def _position(self, session: str) -> int:
        """Where to read on: behind the last command of the log, unless COMMANDS no longer holds that one."""
        after = self._pen.memory.commands.cmd_seq
        if after == 0:
            return 0
        if await went_back(self._bus, session, after):
            log.warning("commands_regressed", extra={"session": session, "cmd_seq": after})
            return 0
        return after

    async def _take_up(self) -> None:
        """Settles what the last owner accepted and left open, and hands over the options' first prompt."""
        memory = self._pen.memory
        for record in memory.commands.open:
            seen = record.command in memory.caused
            handed_over = record.command in memory.handed_over
            closed = memory.session.closed is not None
            match rules.remainder(record, handed_over=handed_over, seen=seen, closed=closed):
                case "done":
                    self._life.outcome(record.command)
                case "unknown":
                    await self._find_out(record)
                case "again":
                    await self._again(record)
        state = memory.session
        first = first_prompt_id(state.session)
        had = first in memory.handed_over and self._life.received(first) is not False
        if state.options.prompt and state.turns == 0 and not had and state.closed is None:
            prompt = Prompt(content=[TextBlock(text=state.options.prompt)])
            command = make_command(prompt, id=first, session=state.session, time=state.created or timestamp())
            self._waiting.put_nowait(Job(command=command))

    async def _find_out(self, record: CommandRecord) -> None:
        """A prompt that was perhaps given to the agent: one that goes on by itself may tell."""
        match self._life.received(record.command) if record.verb == "prompt" else None:
            case True:
                pass  # its turn is still to come
            case False:
                await self._again(record)
            case None:
                self._life.outcome(record.command, rules.OUTCOME_UNKNOWN)

    async def _again(self, record: CommandRecord) -> None:
        stored = await direct.at(self._bus, subjects.COMMANDS, record.cmd_seq)
        command = None
        if stored is not None:
            with contextlib.suppress(TrunklineError):
                command = decode_command(stored.raw)
        if stored is None or command is None or command.id != record.command:
            self._life.outcome(record.command, rules.OUTCOME_UNKNOWN)
        else:
            self._dispatch(Job(command=command, source=_source(stored, command), headers=stored.headers))

    def _on_stored(self, stored: Stored) -> None:
        self.cmd_seq = max(self.cmd_seq, stored.sequence)
        try:
            command = decode_command(stored.raw)
        except TrunklineError as error:
            self._refuse_unreadable(stored, error)
            return
        memory = self._pen.memory
        source = _source(stored, command)
        verdict = rules.judge(
            command,
            stored.time,
            self._clock.now(),
            session=memory.session,
            commands=memory.commands,
            capabilities=self._life.capabilities,
            busy=self._life.awaited,
            full=self._writer.condition is not None and self._writer.condition.code == "log_full",
        )
        match verdict:
            case rules.Repeat():
                log.info("command_repeated", extra={"session": command.session, "verb": command.verb})
            case rules.Refuse(error):
                self._reject(command.id, command.verb, stored.sequence, error, source)
            case rules.Accept():
                accepted = CommandAccepted(command=command.id, verb=command.verb, cmd_seq=stored.sequence)
                self._pen.write(accepted, cause=command.id, source=source)
                if command.verb == "resume":
                    self._effects.reopen(command, source)  # before the next command is judged
                self._dispatch(Job(command=command, source=source, headers=stored.headers))

    def _refuse_unreadable(self, stored: Stored, error: TrunklineError) -> None:
        """What is no command gets an outcome where it has an id; where it has none, a dead letter."""
        identifier = _field(stored.raw, "id")
        if identifier is not None:
            if identifier not in self._pen.memory.commands.commands:
                self._reject(identifier, _field(stored.raw, "verb"), stored.sequence, ErrorInfo.of(error), None)
            return
        self._start(bury(self._bus, "adapters", stored, error))

    def _reject(self, command: str, verb: str | None, sequence: int, error: ErrorInfo, source: Source | None) -> None:
        data = CommandRejected(command=command, verb=verb, cmd_seq=sequence, error=error)
        self._pen.write(data, cause=command, source=source)
        metrics.COMMANDS.labels(verb if verb in rules.VERBS else "?", "rejected").inc()

    def _dispatch(self, job: Job) -> None:
        self._life.touch()
        if job.command.verb in _AT_ONCE:
            self._start(self._do(job, None if job.command.verb in {"close", "kill"} else self._effect_within))
        elif job.command.verb in rules.ONE_BY_ONE:
            self._waiting.put_nowait(job)
        else:
            self._control.put_nowait(job)

    def _start(self, work: Awaitable[Any]) -> None:
        if self._group is not None:
            self._group.create_task(_run(work))

    async def _lane(self, queue: asyncio.Queue[Job], within: float | None) -> None:
        while True:
            await self._do(await queue.get(), within)

    async def _do(self, job: Job, within: float | None) -> None:
        """The effect and its outcome; an error of the agent is an outcome, an error of the log ends the owner."""
        with carried(job.headers):
            await self._do_in_trace(job, within)

    async def _do_in_trace(self, job: Job, within: float | None) -> None:
        command = job.command
        await self._writer.flush()  # accepted is in the log before anything happens
        try:
            async with asyncio.timeout(within):
                await self._effects.perform(command, job.source, job.headers)
        except TimeoutError:
            error = ErrorInfo(code="timeout", message=f"the agent did not do {command.verb!r} within {within:.0f} s")
            self._life.outcome(command.id, error)
        except TrunklineError as error:
            if self._writer.error is not None:
                raise
            self._life.outcome(command.id, ErrorInfo.of(error))
        except Exception as error:
            log.exception("effect_failed", extra={"verb": command.verb, "session": command.session})
            self._life.outcome(command.id, ErrorInfo(code="internal", message=f"{command.verb!r} failed: {error!r}"))


async def _run(work: Awaitable[Any]) -> None:
    await work


def first_prompt_id(session: str) -> str:
    """The id of the prompt in a session's options: no command, but it acts like one, and only once."""
    return f"cmd_{session.removeprefix('ses_')}"


def _source(stored: Stored, command: Command) -> Source:
    """Who sent it: the name in the subject, which the server enforces; the payload counts only from the gateway."""
    user = stored.subject.rpartition(".")[2]
    if user == _GATEWAY and command.source is not None:
        return command.source
    return Source(actor=user, via="nats", route=command.source.route if command.source is not None else None)


def _field(raw: bytes, name: str) -> str | None:
    try:
        value = decode_json(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if not isinstance(value, dict):
        return None
    found = cast("dict[str, Any]", value).get(name)
    return found if isinstance(found, str) and found else None


async def went_back(bus: Bus, session: str, cmd_seq: int) -> bool:
    """Whether COMMANDS no longer is what was read up to `cmd_seq`: an older copy was put in its place."""
    if cmd_seq == 0:
        return False
    there = await direct.at(bus, subjects.COMMANDS, cmd_seq)
    if there is not None:
        return there.session != session
    return await direct.end(bus, subjects.COMMANDS) < cmd_seq

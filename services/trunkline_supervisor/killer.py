"""Makes `kill` certain: a worker that hangs can't ignore it.

The worker is given a few seconds; then the agent's process group and everything that bears the session's mark is ended,
the session is claimed (so that nothing of its former owner follows, neither an event nor an agent), and what was left open
gets its end. The worker itself lives, for its other sessions: what it has of this one it gives up when it goes on.
"""

import asyncio
import logging
from pathlib import Path

from trunkline_agentkit.death import HELD
from trunkline_agentkit.endings import leftovers
from trunkline_agentkit.environment import SESSION_MARK
from trunkline_agentkit.memory import Memory
from trunkline_agentkit.pen import Pen
from trunkline_agentkit.place import Place, Record
from trunkline_agentkit.rules import OUTCOME_UNKNOWN
from trunkline_agentkit.sweep import end_family, end_group
from trunkline_bus import direct
from trunkline_bus.connection import Bus
from trunkline_bus.reader import Reader, read, read_session
from trunkline_bus.writer import SessionWriter
from trunkline_wire import AgentRef, Command, ErrorInfo, TrunklineError, decode_command, subjects
from trunkline_wire.commands import Kill
from trunkline_wire.session import SessionClosed
from trunkline_wire.work import CommandAccepted, CommandFailed, CommandFinished, CommandRejected

log = logging.getLogger(__name__)

WORKER = "supervisor"
CLOSED = ErrorInfo(code="session_closed", message="the session was killed before this command was read")


class Killer:
    """`run` watches COMMANDS until cancelled. `grace` is how many seconds the worker has; sessions of other hosts are theirs."""

    def __init__(self, bus: Bus, home: Path, host: str, grace: float) -> None:
        self._bus = bus
        self._home = home
        self._host = host
        self._grace = grace

    async def run(self) -> None:
        async with (
            asyncio.TaskGroup() as group,
            Reader.new(self._bus, subjects.COMMANDS, [subjects.ALL_COMMANDS]) as reader,
        ):
            async for stored in reader:
                try:
                    command = decode_command(stored.raw)
                except TrunklineError:
                    continue  # the owner says what is wrong with it
                if isinstance(command.args, Kill) and stored.session == command.session:
                    group.create_task(self._watch(command, stored.sequence))

    async def _watch(self, command: Command, sequence: int) -> None:
        place = Place(self._home, command.session)
        record = await asyncio.to_thread(lambda: place.record)
        if record is None or await self._closes(command.session):
            return
        try:
            await self._enforce(command, sequence)
        except TrunklineError as error:
            log.exception("kill_failed", extra={"session": command.session, "code": error.code})

    async def _closes(self, session: str) -> bool:
        """Whether the owner closes the session in time."""
        after = await direct.end(self._bus, subjects.EVENTS)
        facts = subjects.event(session, "agent.fact")
        try:
            async with asyncio.timeout(self._grace), Reader(self._bus, subjects.EVENTS, [facts], after=after) as reader:
                async for stored in reader:
                    if stored.type == SessionClosed.TYPE:
                        return True
        except TimeoutError:
            pass
        return False

    async def _enforce(self, command: Command, sequence: int) -> None:
        session = command.session
        record = await asyncio.to_thread(lambda: Place(self._home, session).record)
        memory = await self._remember(session)
        if memory.session.closed is not None or record is None:
            return
        log.warning("kill_enforced", extra={"session": session, "worker": memory.session.worker})
        await self._end_agent(record)
        agent = AgentRef(adapter=record.adapter)
        writer = await SessionWriter.claim(
            self._bus, session, worker=WORKER, host=self._host, agent=agent, despite_flapping=True
        )
        try:
            await self._end_agent(record)  # what it started until it was fenced
            # What the owner still wrote before the claim counts, too.
            pen = Pen(writer, await self._remember(session))
            await self._close(pen, command, sequence)
            await writer.flush()
        finally:
            await writer.close()

    async def _end_agent(self, record: Record) -> None:
        marks = {SESSION_MARK: record.session}
        if record.agent is not None:
            # The agent's holder sees its end, and ends what the marks do not show.
            await end_group(record.agent.pgid, record.agent.started, marks)
        await end_family(marks)
        # What outlives its worker on purpose ends with its session all the same.
        await end_family({SESSION_MARK: f"{HELD}{record.session}"})

    async def _close(self, pen: Pen, command: Command, sequence: int) -> None:
        memory = pen.memory
        for ending in leftovers(memory.session, queued=dict(memory.queued)):
            pen.end(ending)
        for one in memory.commands.open:
            if one.command != command.id:
                pen.write(CommandFailed(command=one.command, error=OUTCOME_UNKNOWN), cause=one.command)
        read_up_to = memory.commands.cmd_seq
        pattern = subjects.session_commands(command.session)
        for stored in await read(self._bus, subjects.COMMANDS, [pattern], after=read_up_to, until=sequence - 1):
            try:
                unread = decode_command(stored.raw)
            except TrunklineError:
                continue
            if unread.id not in memory.commands.commands:
                rejected = CommandRejected(command=unread.id, cmd_seq=stored.sequence, verb=unread.verb, error=CLOSED)
                pen.write(rejected, cause=unread.id)
        if command.id not in memory.commands.commands:
            pen.write(CommandAccepted(command=command.id, verb=command.verb, cmd_seq=sequence), cause=command.id)
        reason = command.args.reason if isinstance(command.args, Kill) else None
        closed = SessionClosed(reason=reason or "killed", cmd_seq=max(sequence, memory.commands.cmd_seq))
        pen.write(closed, cause=command.id)
        pen.write(CommandFinished(command=command.id), cause=command.id)

    async def _remember(self, session: str) -> Memory:
        memory = Memory(session)
        for stored in await read_session(self._bus, session):
            memory.fold(stored.event(), stored.sequence)
        return memory

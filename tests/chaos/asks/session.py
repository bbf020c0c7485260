"""A session whose agent asks, withdraws and keeps a record of what it was told; whose owner may be replaced."""

import asyncio
import contextlib
from typing import Any, cast

from trunkline_agentkit.answers import Answers
from trunkline_agentkit.life import AgentLife
from trunkline_agentkit.memory import Memory
from trunkline_agentkit.pen import Pen
from trunkline_bus.connection import Bus
from trunkline_bus.reader import read_session
from trunkline_bus.writer import SessionWriter
from trunkline_fold.asks import AsksState, fold_asks
from trunkline_wire import AgentRef, TrunklineError
from trunkline_wire.asks import AskDecided, AskOption, AskWithdrawn, PermissionRequested
from trunkline_wire.ids import ask_id, new_session_id
from trunkline_wire.session import SessionCreated

AGENT = AgentRef(adapter="demo")
OPTIONS = [
    AskOption(id="once", name="Allow once", kind="allow_once"),
    AskOption(id="never", name="Never", kind="reject_always"),
]


class Intake:
    turn: str | None = None


class Agent:
    """The agent's side: `record` is all it was ever told, as (ask, decision)."""

    def __init__(self, incarnation: str) -> None:
        self.incarnation = incarnation
        self.waiting: set[str] = set()
        self.record: list[tuple[str, AskDecided]] = []
        self.intake = Intake()

    @property
    def session(self) -> "Agent":
        return self

    async def decide(self, ask: str, decision: AskDecided) -> None:
        if ask not in self.waiting:
            raise TrunklineError("unknown_ask", f"the agent does not wait for {ask!r}")
        self.waiting.discard(ask)
        self.record.append((ask, decision))

    async def pending(self) -> set[str] | None:
        return set(self.waiting)


class Life:
    """What `Answers` needs of an agent's life."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    def touch(self) -> None:
        pass


class Owner:
    """An owner at work: the product's own delivery of answers, and an agent."""

    def __init__(self, bus: Bus, writer: SessionWriter, asks: AsksState, agent: Agent) -> None:
        self.writer = writer
        self.agent = agent
        self._pen = Pen(writer, Memory(writer.session))
        life = cast(AgentLife, cast(object, Life(agent)))
        self._answers = Answers(bus, self._pen, writer, life, asks)
        self._task = asyncio.create_task(self._run())

    @property
    def alive(self) -> bool:
        return self.writer.error is None

    @property
    def fault(self) -> BaseException | None:
        return self._task.exception() if self._task.done() and not self._task.cancelled() else None

    def write(self, data: Any) -> None:
        """Append unless the session has another owner now."""
        with contextlib.suppress(TrunklineError):
            self._pen.write(data)

    async def flush(self) -> bool:
        """Whether all that was written is in the log."""
        try:
            await self.writer.flush()
        except TrunklineError:
            return False
        return True

    async def end(self) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        await self.writer.close()

    async def _run(self) -> None:
        """Deliver until the writer knows that another one owns the session."""
        async with asyncio.TaskGroup() as group:
            delivering = group.create_task(self._answers.run())
            await self.writer.wait_stopped()
            delivering.cancel()


class Session:
    """The owners of one session, the last one in office."""

    def __init__(self, bus: Bus, writer: SessionWriter) -> None:
        self.id = writer.session
        self._bus = bus
        self.owners = [Owner(bus, writer, AsksState(), Agent("inc1"))]

    @classmethod
    async def open(cls, bus: Bus) -> "Session":
        created = SessionCreated(adapter="demo", cwd="/src", host="h", workspace="ws")
        return cls(bus, await SessionWriter.create(bus, created, session=new_session_id(), worker="w1", agent=AGENT))

    @property
    def owner(self) -> Owner:
        return self.owners[-1]

    @property
    def told(self) -> list[tuple[str, str, AskDecided]]:
        """What the agents were told: (incarnation, ask, decision)."""
        return [(one.agent.incarnation, ask, given) for one in self.owners for ask, given in one.agent.record]

    async def ask(self, number: int, command: str) -> str | None:
        """The ask's id once it is in the log; None where another owner is in office by then."""
        owner = self.owner
        ask = ask_id(self.id, owner.agent.incarnation, str(number))
        owner.agent.waiting.add(ask)
        request = PermissionRequested(
            ask=ask,
            name="Bash",
            incarnation=owner.agent.incarnation,
            kind="execute",
            input={"command": command},
            options=OPTIONS,
        )
        owner.write(request)
        return ask if await owner.flush() else None

    def withdraw(self, ask: str) -> None:
        """The agent gives up an ask that it still waits for."""
        for owner in self.owners:
            if ask in owner.agent.waiting:
                owner.agent.waiting.discard(ask)
                owner.write(AskWithdrawn(ask=ask, why="cancelled"))

    async def take_over(self) -> None:
        """Another worker claims the session, with an agent of its own: the former owner has yet to notice."""
        number = len(self.owners) + 1
        writer = await SessionWriter.claim(self._bus, self.id, worker=f"w{number}", host="h", agent=AGENT)
        asks = AsksState()
        for stored in await read_session(self._bus, self.id, until=writer.claim_sequence):
            asks = fold_asks(asks, stored.event(), stored.sequence)
        self.owners.append(Owner(self._bus, writer, asks, Agent(f"inc{number}")))

    async def close(self) -> None:
        for owner in self.owners:
            await owner.end()

"""A session that asks, people who answer, and what the log then says."""

import time
from typing import Any, Self

from trunkline_bus.connection import Bus
from trunkline_bus.reader import read_session
from trunkline_bus.writer import SessionWriter
from trunkline_fold.asks import AsksState, fold_asks
from trunkline_testkit import eventually
from trunkline_wire import AgentRef, Answer, Event, Source, encode, subjects, timestamp
from trunkline_wire.asks import AnswerRejected, AskOption, AskWithdrawn, PermissionRequested
from trunkline_wire.events import PERMISSION_EVENTS
from trunkline_wire.ids import ask_id, new_command_id, new_session_id
from trunkline_wire.session import SessionCreated

AGENT = AgentRef(adapter="demo")
INCARNATION = "one"
OPTIONS = [
    AskOption(id="once", name="Allow once", kind="allow_once"),
    AskOption(id="never", name="Never", kind="reject_always"),
]


class Stage:
    """One session on the log. `number` makes ask ids that the test knows beforehand."""

    def __init__(self, bus: Bus, writer: SessionWriter) -> None:
        self.bus = bus
        self.writer = writer
        self.session = writer.session

    @classmethod
    async def open(cls, bus: Bus) -> Self:
        created = SessionCreated(adapter="demo", cwd="/src", host="h", workspace="ws")
        writer = await SessionWriter.create(bus, created, session=new_session_id(), worker="w", agent=AGENT)
        return cls(bus, writer)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.writer.close()

    def id_of(self, number: int) -> str:
        return ask_id(self.session, INCARNATION, str(number))

    async def ask(self, number: int, *, name: str = "Bash", command: str = "ls", **fields: Any) -> str:
        """Ask for a permission; the ask's id once it is stored."""
        ask = self.id_of(number)
        self.writer.append(
            PermissionRequested(
                ask=ask, name=name, incarnation=INCARNATION, kind="execute", input={"command": command}, **fields
            )
        )
        await self.writer.flush()
        return ask

    async def withdraw(self, ask: str) -> None:
        self.writer.append(AskWithdrawn(ask=ask, why="cancelled"))
        await self.writer.flush()

    async def answer(self, ask: str, behaviour: Any, actor: str = "ann", **fields: Any) -> str:
        """Answer as the gateway would for `actor`; the answer's id."""
        id_ = fields.pop("id", None) or new_command_id()
        given = Answer(
            id=id_,
            session=self.session,
            ask=ask,
            behaviour=behaviour,
            time=timestamp(),
            source=fields.pop("source", None) or Source(actor=actor, via="web"),
            **fields,
        )
        await self.bus.js_cmd.publish(subjects.answer(self.session, "gateway"), encode(given))
        return id_

    async def said(self) -> list[Event]:
        """The events on the session's permission subject, in order."""
        events = [stored.event() for stored in await read_session(self.bus, self.session)]
        return [event for event in events if isinstance(event.data, PERMISSION_EVENTS)]

    async def until_said(self, count: int, timeout: float = 10.0) -> list[Event]:  # noqa: ASYNC109
        """Those events once there are `count` of them."""

        async def enough() -> list[Event] | None:
            found = await self.said()
            return found if len(found) >= count else None

        return await eventually(enough, timeout)

    async def state(self) -> AsksState:
        """The fold of the session from zero: the oracle of what happened."""
        state = AsksState()
        for stored in await read_session(self.bus, self.session):
            state = fold_asks(state, stored.event(), stored.sequence)
        return state

    async def ended(self, *asks: str, timeout: float = 15.0) -> AsksState:  # noqa: ASYNC109
        """The fold once all of `asks` have an end."""

        async def over() -> AsksState | None:
            state = await self.state()
            return state if all(ask in state.asks and state.asks[ask].status != "open" for ask in asks) else None

        return await eventually(over, timeout)


def rejections(events: list[Event]) -> dict[str, str]:
    """Code by answer id."""
    return {event.data.answer: event.data.error.code for event in events if isinstance(event.data, AnswerRejected)}


def seconds(begin: float) -> float:
    return time.monotonic() - begin

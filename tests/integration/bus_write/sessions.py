"""Sessions for tests: made, claimed, and read back from the log."""

from trunkline_bus.connection import Bus
from trunkline_bus.reader import read_session
from trunkline_bus.writer import SessionWriter
from trunkline_wire import AgentRef, Event
from trunkline_wire.ids import new_session_id
from trunkline_wire.session import SessionCreated
from trunkline_wire.turn import MessageSystem

AGENT = AgentRef(adapter="demo")


def created(spawn: str | None = None) -> SessionCreated:
    return SessionCreated(adapter="demo", cwd="/", host="host-a", workspace="ws", spawn=spawn)


async def new_writer(bus: Bus, session: str | None = None) -> SessionWriter:
    return await SessionWriter.create(bus, created(), session=session or new_session_id(), worker="one", agent=AGENT)


async def claim(bus: Bus, session: str, *, worker: str = "two", host: str = "host-a") -> SessionWriter:
    return await SessionWriter.claim(bus, session, worker=worker, host=host, agent=AGENT)


def note(text: str) -> MessageSystem:
    return MessageSystem(text=text)


async def events(bus: Bus, session: str) -> list[Event]:
    return [stored.event() for stored in await read_session(bus, session)]


async def texts(bus: Bus, session: str) -> list[str]:
    """The texts of the session's notes, in the order of the log."""
    found = [event.data for event in await events(bus, session)]
    return [str(data.text) for data in found if isinstance(data, MessageSystem)]


def unbroken(found: list[Event]) -> bool:
    """Whether seq counts 1, 2, 3 … and epochs never go back."""
    epochs = [event.epoch or 0 for event in found]
    return [event.seq for event in found] == list(range(1, len(found) + 1)) and epochs == sorted(epochs)

"""Events as a stream would hold them."""

from typing import Any

from trunkline_bus.stored import Stored
from trunkline_wire import Data, Event, encode, make_event, subjects
from trunkline_wire.events import is_ask

SESSION = "ses_" + "1" * 32
OTHER = "ses_" + "2" * 32
TIME = "2026-11-27T21:20:10.000000Z"


def stored(event: Event, sequence: int) -> Stored:
    subject = subjects.event(event.session, "agent.ask" if is_ask(event.data) else "agent.fact")
    return Stored("EVENTS", sequence, subject, event.type, event.id, None, encode(event), sequence * 1000)


def event_of(data: Data, session: str = SESSION, **fields: Any) -> Event:
    return make_event(data, session=session, time=TIME, **fields)

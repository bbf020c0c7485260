"""Asks with their whole story, read from the log: no cap of the folds leaves one out."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from trunkline_bus import direct
from trunkline_bus.connection import Bus
from trunkline_bus.reader import read, read_session
from trunkline_bus.stored import Stored
from trunkline_fold.asks import MAX_ENDED, Ask, AsksState, fold_asks
from trunkline_fold.stories import Story, ask_of, tell
from trunkline_gateway.directory import Directory
from trunkline_wire import Event, subjects
from trunkline_wire.asks import AskDelivered
from trunkline_wire.events import AGENT_ASKS, PERMISSION_EVENTS
from trunkline_wire.session import SessionClaimed, SessionCreated, SessionErased

_TOLD: Final = frozenset(
    kind.TYPE for kind in (*AGENT_ASKS, *PERMISSION_EVENTS, AskDelivered, SessionClaimed, SessionCreated, SessionErased)
)


async def all_records(bus: Bus, directory: Directory, session: str) -> list[Ask]:
    """Every ask of a session, also those that the directory has forgotten since they ended."""
    state = directory.asks_of(session)
    if len(state.ended) < MAX_ENDED:
        return list(state.asks.values())
    state, found = AsksState(), dict[str, Ask]()
    for event, sequence in await _read_all(bus, session):
        state = fold_asks(state, event, sequence)
        about = ask_of(event.data)
        if about is not None and about in state.asks:
            found[about] = state.asks[about]
        elif isinstance(event.data, SessionClaimed):
            found |= state.asks
        elif isinstance(event.data, SessionErased):
            found.clear()
    return list(found.values())


async def _read_all(bus: Bus, session: str) -> list[tuple[Event, int]]:
    return [(one.event(), one.sequence) for one in await read_session(bus, session) if one.type in _TOLD]


async def stories(bus: Bus, directory: Directory, records: Sequence[Ask]) -> list[Story]:
    """The stories of some asks, in the order given."""
    wanted = {record.ask for record in records}
    events: defaultdict[str, list[tuple[int, Event]]] = defaultdict(list)
    for session in dict.fromkeys(record.session for record in records):
        for stored in await _about_asks(bus, directory, session):
            _sort_in(events, wanted, stored)
    missing = [
        record.delivered_sequence
        for record in records
        if record.delivered_sequence is not None
        and all(sequence != record.delivered_sequence for sequence, _ in events[record.ask])
    ]
    for stored in await direct.get(bus, subjects.EVENTS, missing):
        _sort_in(events, wanted, stored)
    return [tell(record, [event for _, event in events[record.ask]]) for record in records]


async def _about_asks(bus: Bus, directory: Directory, session: str) -> list[Stored]:
    if len(directory.asks_of(session).ended) >= MAX_ENDED:
        return [one for one in await read_session(bus, session) if one.type in _TOLD]
    filters = [subjects.event(session, "agent.ask"), subjects.event(session, "permission")]
    return await read(bus, subjects.EVENTS, filters)


def _sort_in(events: defaultdict[str, list[tuple[int, Event]]], wanted: set[str], stored: Stored) -> None:
    event = stored.event()
    about = ask_of(event.data)
    if about is not None and about in wanted:
        events[about].append((stored.sequence, event))


async def whole(bus: Bus, records: Sequence[Ask]) -> dict[str, Stored]:
    """The requests of some asks as they were stored, with inputs that the folds no longer keep, by ask."""
    by_sequence = {record.sequence: record.ask for record in records}
    found = await direct.get(bus, subjects.EVENTS, by_sequence)
    return {by_sequence[stored.sequence]: stored for stored in found}

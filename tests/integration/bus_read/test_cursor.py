"""Cursors against a real log: each way in which what follows can't be given is said by its reason."""

import pytest
from msgspec.structs import replace

from trunkline_bus import cursor as cursors
from trunkline_bus import direct
from trunkline_bus.connection import Bus
from trunkline_bus.cursor import Cursor, verify
from trunkline_wire import subjects
from trunkline_wire.ids import new_event_id, new_session_id

from .writing import fill, put

EVENTS = subjects.EVENTS


async def cursor_at(bus: Bus, sequence: int, scope: str = "s") -> Cursor:
    stored = await direct.at(bus, EVENTS, sequence)
    assert stored is not None
    assert stored.id is not None
    return Cursor(log=bus.log_id, positions={EVENTS: sequence}, ids={EVENTS: stored.id}, scope=scope)


async def reason(bus: Bus, cursor: Cursor, scope: str | None = "s", filters: list[str] | None = None) -> str | None:
    gap = await verify(bus, cursor, scope=scope, filters=filters)
    return gap.reason if gap is not None else None


async def test_a_cursor_of_this_log_is_good_wherever_it_stands(bus: Bus) -> None:
    session = new_session_id()
    await fill(bus, subjects.event(session, "agent.fact"), [b"x"] * 5)
    for sequence in (1, 3, 5):
        assert await reason(bus, await cursor_at(bus, sequence)) is None
    assert await reason(bus, Cursor(log=bus.log_id, positions={EVENTS: 0}, scope="s")) is None


async def test_the_ways_in_which_one_is_not(bus: Bus) -> None:
    session = new_session_id()
    await fill(bus, subjects.event(session, "agent.fact"), [b"x"] * 5)
    good = await cursor_at(bus, 3)
    assert await reason(bus, good, scope="other") == "scope_changed"
    assert await reason(bus, replace(good, log="another")) == "log_diverged"
    assert await reason(bus, replace(good, positions={EVENTS: 6})) == "log_diverged"
    assert await reason(bus, replace(good, ids={EVENTS: new_event_id()})) == "log_diverged"
    assert await reason(bus, replace(good, positions={"GONE": 1})) == "log_diverged"


async def test_an_idle_clients_cursor_moves_on_with_an_event_of_its_own_as_anchor(bus: Bus) -> None:
    mine, other = new_session_id(), new_session_id()
    await put(bus, subjects.event(mine, "agent.fact"), b"1")
    await fill(bus, subjects.event(other, "agent.fact"), [b"x"] * 4)
    moved = replace(await cursor_at(bus, 1), positions={EVENTS: 5}, anchors={EVENTS: 1})
    assert await reason(bus, moved) is None
    assert await reason(bus, replace(moved, ids={EVENTS: new_event_id()})) == "log_diverged"


async def test_an_erased_event_is_said(bus: Bus) -> None:
    erased, kept = new_session_id(), new_session_id()
    await fill(bus, subjects.event(erased, "agent.fact"), [b"secret"] * 3)
    await fill(bus, subjects.event(kept, "agent.fact"), [b"x"] * 3)
    there, elsewhere = await cursor_at(bus, 2), await cursor_at(bus, 5)
    await bus.js.purge_stream(EVENTS, subject=subjects.session_events(erased))
    assert await reason(bus, there) == "erased"
    assert await reason(bus, elsewhere) is None


async def test_too_far_counts_what_the_filters_match(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cursors, "TOO_FAR", 10)
    mine, other = new_session_id(), new_session_id()
    await put(bus, subjects.event(mine, "agent.fact"), b"1")
    await fill(bus, subjects.event(other, "agent.fact"), [b"x"] * 30)
    await fill(bus, subjects.event(mine, "agent.fact"), [b"x"] * 10)
    cursor = await cursor_at(bus, 1)
    assert await reason(bus, cursor) == "too_far"
    assert await reason(bus, cursor, filters=[subjects.session_events(mine)]) is None
    await put(bus, subjects.event(mine, "agent.ask"), b"x")
    gap = await verify(bus, cursor, filters=[subjects.session_events(mine)])
    assert gap is not None
    assert (gap.reason, gap.details["behind"]) == ("too_far", 11)


async def test_a_log_made_anew_is_another_log(bus: Bus) -> None:
    from trunkline_bus import topology

    await fill(bus, subjects.event(new_session_id(), "agent.fact"), [b"x"] * 3)
    cursor = await cursor_at(bus, 3)
    await bus.js.delete_stream(EVENTS)
    await topology.apply(bus.js, max_bytes=64 * 1024 * 1024)
    await fill(bus, subjects.event(new_session_id(), "agent.fact"), [b"x"] * 3)
    assert await reason(bus, cursor) == "log_diverged"

"""Replicas that share the partitions: each document kept once, parts handed on, other cuts taken up where one left off."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator

import pytest

from trunkline_bus import direct, mirror, topology
from trunkline_bus.connection import Bus
from trunkline_bus.parts import WHOLE, Part, cut
from trunkline_bus.places import Place, joined, lags, read_place
from trunkline_bus.reader import read
from trunkline_bus.views import Edition
from trunkline_fold.state import VERSION
from trunkline_projector.app import Histories, Projector
from trunkline_projector.histories import PagesView
from trunkline_projector.sessions import SessionsView
from trunkline_testkit import eventually
from trunkline_wire import TrunklineError, subjects
from trunkline_wire.ids import new_session_id, partition

from .stage import assert_replay_equals_live, documents, live

EDITION = Edition(version=2, generation=0, log="a")


def place(position: int, **fields: object) -> Place:
    return Place(edition=EDITION, position=position, id=f"at {position}", **fields)  # pyright: ignore[reportArgumentType]


def test_a_part_stands_where_the_one_furthest_behind_of_its_partitions_does() -> None:
    places = [(WHOLE, place(10)), (Part(0, 31), place(40)), (Part(32, 63), place(25))]
    assert joined(EDITION, places).position == 25
    assert joined(EDITION, places, Part(0, 15)).id == "at 40"
    assert joined(EDITION, places, Part(16, 47)).position == 25
    assert joined(EDITION, places[1:2]).position == 0, "nobody knows of the other half"
    other = Edition(version=2, generation=1, log="a")
    assert joined(other, places).position == 0, "of another edition nothing is true"


def test_what_stands_still_goes_to_the_part_that_it_belongs_to() -> None:
    session = new_session_id()
    mine = Part(partition(session), partition(session))
    places = [(WHOLE, place(10, frozen=[session], revision=7))]
    assert joined(EDITION, places, mine).frozen == [session]
    assert joined(EDITION, places, mine).revision == 7
    assert all(not joined(EDITION, places, part).frozen for part in cut(64) if part != mine)


def test_partitions_are_cut_evenly_or_not_at_all() -> None:
    assert cut(1) == [WHOLE]
    assert [part.name for part in cut(4)] == ["0-15", "16-31", "32-47", "48-63"]
    assert sorted(n for part in cut(16) for n in part.partitions) == list(range(64))
    assert Part(3, 4).filters == ("trunk.ev.3.>", "trunk.ev.4.>")
    with pytest.raises(TrunklineError, match="can't be cut in 3"):
        cut(3)


@contextlib.asynccontextmanager
async def replica(bus: Bus, name: str, parts: int = 8) -> AsyncGenerator[Projector]:
    """Of another machine than this, as the others see it."""
    projector = Projector(bus, parts, holder={"node": name, "pid": 1})
    task = asyncio.create_task(projector.run())
    try:
        yield projector
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def stored(bus: Bus) -> None:
    """Wait until everything that the log holds now is stored, by whoever keeps it."""
    last = {one.session: one.sequence for one in await read(bus, subjects.EVENTS, [subjects.ALL_EVENTS])}

    async def all_there() -> bool:
        for view in (SessionsView, PagesView):
            used = await mirror.edition(bus, view.bucket)
            shown = await documents(bus, view) if used is not None else {}
            if any(b'{"cursor":%d,' % sequence not in shown.get(key or "", b"") for key, sequence in last.items()):
                return False
        return True

    await eventually(all_there, 30)


async def test_two_replicas_share_and_one_takes_over(bus: Bus) -> None:
    sessions = [new_session_id() for _ in range(12)]
    for session in sessions[:6]:
        await live(bus, session, 1)
    async with replica(bus, "one") as first:
        await eventually(lambda: len(first.sharing.held) == 9 and first.behind() is None)
        async with replica(bus, "two") as second:
            await eventually(lambda: len(first.sharing.held) == 5 and len(second.sharing.held) == 4)
            for session in sessions[6:]:
                await live(bus, session, 1)
            await stored(bus)
            assert set(first.sharing.held) & set(second.sharing.held) == set()
        await eventually(lambda: len(first.sharing.held) == 9, 15)
        for session in sessions:
            await live(bus, session, 1, first=2)
        await stored(bus)
    await assert_replay_equals_live(bus)


def within(part: Part, count: int) -> list[str]:
    """New sessions of a part: each part has events of its own, which its place is told by."""
    found: list[str] = []
    while len(found) < count:
        session = new_session_id()
        found += [session] if part.holds(session) else []
    return found


async def test_another_cut_goes_on_where_the_last_one_stood(bus: Bus) -> None:
    """From one part to four, to two, to one: nothing is read again from its beginning, and no byte differs."""
    sessions = [session for part in cut(4) for session in within(part, 2)]
    begin = 0
    for turn, parts in enumerate((1, 4, 2, 1), 1):
        for session in sessions:
            await live(bus, session, 1, first=turn)
        histories = [Histories(bus, part) for part in cut(parts)]
        tasks = [asyncio.create_task(one.run()) for one in histories]
        try:
            await eventually(lambda h=histories: all(one.ready for one in h), 30)
            await stored(bus)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        edition = Edition(version=VERSION, generation=0, log=bus.log_id)
        stands = await read_place(bus, "sessions", edition)
        assert stands is not None
        assert stands.position > begin, "each takes up what the one before had"
        begin = stands.position
    await assert_replay_equals_live(bus)


async def test_a_part_without_news_is_not_behind_and_its_place_goes_on(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who begins at the projection's place (a gateway) need not read what only the other part had."""
    monkeypatch.setattr("trunkline_bus.projection.OVERLAP", 5)
    low, high = cut(2)
    (quiet,), (busy,) = within(low, 1), within(high, 1)
    await live(bus, quiet, 1)
    last = await direct.end(bus, subjects.EVENTS)
    histories = [Histories(bus, part) for part in (low, high)]
    tasks = [asyncio.create_task(one.run()) for one in histories]
    try:
        await eventually(lambda: all(one.ready for one in histories), 30)
        for turn in range(1, 4):
            await live(bus, busy, 1, first=turn)
        await stored(bus)

        async def told() -> list[tuple[str, int, int]]:
            return [(lag.name, lag.behind, lag.parts) for lag in await lags(bus)]

        async def caught_up() -> bool:
            return await told() == [("pages", 0, 2), ("sessions", 0, 2)]

        await eventually(caught_up, 30)
        edition = Edition(version=VERSION, generation=0, log=bus.log_id)
        stands = await read_place(bus, "sessions", edition)
        assert stands is not None
        assert stands.position == last
        monkeypatch.setattr("trunkline_bus.projection.PASS_S", 0.0)
        monkeypatch.setattr("trunkline_bus.projection.SYNCED_S", 0.0)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    histories = [Histories(bus, part) for part in (low, high)]
    tasks = [asyncio.create_task(one.run()) for one in histories]
    end = await direct.end(bus, subjects.EVENTS)
    try:

        async def passed_over() -> bool:
            stands = await read_place(bus, "sessions", edition)
            return stands is not None and stands.position == end

        await eventually(passed_over, 30)
        await live(bus, quiet, 1, first=2)
        await stored(bus)
        await eventually(caught_up, 30)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    await assert_replay_equals_live(bus)
    await live(bus, quiet, 1, first=3)
    assert {(lag.name, lag.behind) for lag in await lags(bus)} >= {("sessions", 7), ("pages", 7)}


async def test_the_part_that_finds_another_log_begins_anew_for_all(bus: Bus) -> None:
    """The current edition changes only once all parts have built the next one."""
    for _ in range(6):
        await live(bus, new_session_id(), 1)
    low, high = cut(2)
    histories = [Histories(bus, part) for part in (low, high)]
    tasks = [asyncio.create_task(one.run()) for one in histories]
    try:
        await eventually(lambda: all(one.ready for one in histories), 30)
        await stored(bus)
        before = await mirror.edition(bus, subjects.KV_SESSIONS)
        assert before is not None
        tasks[0].cancel()
        await asyncio.gather(tasks[0], return_exceptions=True)
        await topology.apply(bus.js, restored=True)
        await bus.read_log_id()
        histories[0] = Histories(bus, low)
        tasks[0] = asyncio.create_task(histories[0].run())

        async def rebuilt() -> bool:
            used = await mirror.edition(bus, subjects.KV_SESSIONS)
            return used is not None and used.generation == 1

        await eventually(rebuilt, 30)
        await stored(bus)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    await assert_replay_equals_live(bus)

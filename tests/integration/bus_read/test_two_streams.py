"""A log in two streams by ranges of partitions: sessions, fences, projections, cursors, checks as with one."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from tests.integration.bus_write.sessions import claim, events, new_writer, note, unbroken

from trunkline_bus import direct, jsapi, mirror, topology
from trunkline_bus.connection import Bus, BusSettings
from trunkline_bus.cursor import Cursor, CursorCodec, verify
from trunkline_bus.layout import Layout, divided, noted
from trunkline_bus.pages import history_page
from trunkline_bus.parts import cut
from trunkline_fold.check import check_session
from trunkline_fold.session import decode_state
from trunkline_projector.app import Histories
from trunkline_testkit import eventually
from trunkline_testkit.nats import NatsServer
from trunkline_wire import TrunklineError, subjects
from trunkline_wire.ids import new_session_id, partition

LOW, HIGH = "EVENTS", "EVENTS_32"


@pytest_asyncio.fixture
async def bus(fresh_nats: NatsServer) -> AsyncIterator[Bus]:
    async with Bus.open(BusSettings(url=fresh_nats.url)) as opened:
        await topology.apply(opened.js, max_bytes=64 * 1024 * 1024, events=2)
        await opened.read_log_id()
        yield opened


def of_both() -> list[str]:
    """Two sessions of each stream."""
    found: dict[bool, list[str]] = {False: [], True: []}
    while min(map(len, found.values())) < 2:
        session = new_session_id()
        found[partition(session) >= 32].append(session)
    return [*found[False][:2], *found[True][:2]]


def test_a_layout_is_noted_and_read_again() -> None:
    layout = divided(2)
    assert layout.note() == "EVENTS:0-31,EVENTS_32:32-63"
    assert noted({"trunk-events": layout.note()}) == layout
    assert noted({}) == divided(1) == Layout()
    assert [layout.of_part(part) for part in cut(4)] == [LOW, LOW, HIGH, HIGH]
    with pytest.raises(TrunklineError, match="cut the work in 2 parts"):
        layout.of_part(cut(1)[0])
    with pytest.raises(TrunklineError, match="this service reads one"):
        _ = layout.only


async def test_each_session_lives_in_the_stream_of_its_partition(bus: Bus) -> None:
    sessions = of_both()
    for session in sessions:
        async with await new_writer(bus, session) as writer:
            writer.append(note("one"))
            await writer.flush()
            # Another owner: the fence is that of the session's own stream.
            async with await claim(bus, session) as other:
                other.append(note("two"))
                await other.flush()
                writer.append(note("too late"))
                with pytest.raises(TrunklineError, match="another worker owns"):
                    await writer.flush()
        found = await events(bus, session)
        assert unbroken(found)
        stored = [(n, subjects.event(session, "agent.fact"), event) for n, event in enumerate(found)]
        assert list(check_session(stored)) == []
    counts = {name: (await direct.info(bus, name)).messages for name in bus.layout.names}
    assert counts == {LOW: 8, HIGH: 8}


async def test_parts_project_both_and_a_cursor_holds_a_position_in_each(bus: Bus) -> None:
    sessions = of_both()
    for session in sessions:
        async with await new_writer(bus, session) as writer:
            for text in ("one", "two", "three"):
                writer.append(note(text))
            await writer.flush()
    histories = [Histories(bus, part) for part in cut(4)]
    tasks = [asyncio.create_task(one.run()) for one in histories]
    try:
        await eventually(lambda: all(one.ready for one in histories), 30)
        for session in sessions:
            shown = await mirror.fetch(bus, subjects.KV_SESSIONS, session, decode_state)
            assert shown is not None
            assert shown.state.seq == 4
            page = await history_page(bus, session)
            assert page.stored[-1].type == "message.system"
            assert len(page.stored) == 4
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    positions, ids = dict[str, int](), dict[str, str]()
    for name in bus.layout.names:
        end = await direct.end(bus, name)
        last = await direct.at(bus, name, end)
        assert last is not None
        positions[name], ids[name] = end, last.id or ""
    codec = CursorCodec(b"sixteen bytes and more")
    cursor = codec.decode(codec.encode(Cursor(log=bus.log_id, positions=positions, ids=ids)))
    assert cursor.positions == {LOW: 8, HIGH: 8}
    assert await verify(bus, cursor) is None
    for name in bus.layout.names:
        ahead = Cursor(log=bus.log_id, positions={**positions, name: 9}, ids=ids)
        gap = await verify(bus, ahead)
        assert gap is not None
        assert (gap.reason, gap.details["stream"]) == ("log_diverged", name)
        foreign = Cursor(log=bus.log_id, positions=positions, ids={**ids, name: "another"})
        gap = await verify(bus, foreign)
        assert gap is not None
        assert gap.reason == "log_diverged"


async def test_a_log_keeps_the_streams_that_it_was_made_with(bus: Bus) -> None:
    assert await topology.plan(bus.js) == []
    assert await topology.apply(bus.js) == []
    for events_ in (1, 4):
        with pytest.raises(TrunklineError, match="sessions can't change theirs") as caught:
            await topology.apply(bus.js, events=events_)
        assert caught.value.code == "topology_conflict"
    config = (await jsapi.request(bus.js, f"STREAM.INFO.{HIGH}"))["config"]
    assert config["subjects"] == [f"trunk.ev.{number}.>" for number in range(32, 64)]
    assert config["max_bytes"] == 32 * 1024 * 1024, "they share the limit"

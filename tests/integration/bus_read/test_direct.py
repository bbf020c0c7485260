"""Finite reads from a real server."""

import pytest
from nats.js.errors import NotFoundError

from trunkline_bus import direct
from trunkline_bus.connection import Bus
from trunkline_testkit.nats import NatsServer
from trunkline_wire import TrunklineError, subjects
from trunkline_wire.ids import new_session_id

from .writing import fill, put


async def test_last_is_of_the_filter_and_at_is_of_the_sequence(bus: Bus) -> None:
    one, two = new_session_id(), new_session_id()
    await put(bus, subjects.event(one, "agent.fact"), b"1", id="id-1", type="turn.started")
    await put(bus, subjects.event(one, "agent.ask"), b"2")
    await put(bus, subjects.event(two, "agent.fact"), b"3")
    last = await direct.last(bus, subjects.EVENTS, subjects.agent_fence(one))
    assert last is not None
    assert (last.sequence, last.raw) == (2, b"2")
    first = await direct.at(bus, subjects.EVENTS, 1)
    assert first is not None
    assert (first.id, first.type, first.subject) == ("id-1", "turn.started", subjects.event(one, "agent.fact"))
    assert await direct.at(bus, subjects.EVENTS, 4) is None
    assert await direct.last(bus, subjects.EVENTS, subjects.session_events(new_session_id())) is None
    assert await direct.end(bus, subjects.EVENTS) == 3


async def test_the_three_ways_to_one_message_agree(bus: Bus) -> None:
    """Leader, direct get and Reader tell the same of it, to the nanosecond."""
    from trunkline_bus.reader import read

    await put(bus, subjects.event(new_session_id(), "agent.fact"), "ä\x00".encode(), id="id-1")
    leader = await direct.at(bus, subjects.EVENTS, 1)
    [replica] = await direct.get(bus, subjects.EVENTS, [1])
    [delivered] = await read(bus, subjects.EVENTS, [subjects.ALL_EVENTS])
    assert leader == replica == delivered


async def test_get_keeps_the_order_and_leaves_out_what_is_gone(bus: Bus) -> None:
    session, gone = new_session_id(), new_session_id()
    for n in range(1, 151):
        await put(bus, subjects.event(gone if n % 10 == 0 else session, "agent.fact"), b"%d" % n)
    await bus.js.purge_stream(subjects.EVENTS, subject=subjects.session_events(gone))
    wanted = list(range(150, 0, -1))
    found = await direct.get(bus, subjects.EVENTS, wanted)
    assert [stored.sequence for stored in found] == [n for n in wanted if n % 10]
    assert all(int(stored.raw) == stored.sequence for stored in found)


async def test_a_row_is_one_request_and_has_what_get_has(bus: Bus) -> None:
    session, other = new_session_id(), new_session_id()
    for n in range(1, 121):
        await put(bus, subjects.event(other if n % 3 == 0 else session, "agent.fact"), b"%d" % n)
    await put(bus, subjects.event(session, "permission"), b"121", id="id-121", type="ask.decided")
    every = [n for n in range(1, 122) if n % 3]
    filter = subjects.session_events(session)
    assert await direct.row(bus, subjects.EVENTS, filter, 1, 200) == await direct.get(bus, subjects.EVENTS, every)
    some = await direct.row(bus, subjects.EVENTS, filter, 50, 7)
    assert [stored.sequence for stored in some] == [50, 52, 53, 55, 56, 58, 59]
    assert await direct.row(bus, subjects.EVENTS, filter, 122, 5) == []
    assert await direct.row(bus, subjects.EVENTS, subjects.session_events(new_session_id()), 1, 5) == []


async def test_a_row_waits_an_outage_out(bus: Bus, fresh_nats: NatsServer) -> None:
    import asyncio

    session = new_session_id()
    await put(bus, subjects.event(session, "agent.fact"), b"x")
    await asyncio.to_thread(fresh_nats.kill)
    reading = asyncio.create_task(direct.row(bus, subjects.EVENTS, subjects.session_events(session), 1, 1))
    await asyncio.to_thread(fresh_nats.start)
    [stored] = await reading
    assert stored.raw == b"x"


async def test_a_stream_that_is_not_there_is_said_at_once(bus: Bus) -> None:
    with pytest.raises(NotFoundError):
        await direct.info(bus, "NOTHING")


async def test_many_headers_are_read(bus: Bus) -> None:
    """The client's own reading of headers was replaced: this is what proves that ours is the one in use."""
    subject = subjects.event(new_session_id(), "agent.fact")
    await fill(bus, subject, [b"x"])
    from trunkline_bus.client import Client

    assert isinstance(bus.reading, Client)
    [stored] = await direct.get(bus, subjects.EVENTS, [1])
    assert stored.headers is not None
    assert set(stored.headers) == {subjects.HEADER_ID, subjects.HEADER_TYPE}


async def test_an_outage_is_waited_out(bus: Bus, fresh_nats: NatsServer) -> None:
    import asyncio

    await put(bus, subjects.event(new_session_id(), "agent.fact"), b"x")
    await asyncio.to_thread(fresh_nats.kill)
    reading = asyncio.create_task(direct.get(bus, subjects.EVENTS, [1]))
    await asyncio.to_thread(fresh_nats.start)
    assert [stored.raw for stored in await asyncio.wait_for(reading, 15)] == [b"x"]


async def test_a_closed_connection_is_an_error(bus: Bus) -> None:
    await bus.reading.close()
    with pytest.raises(TrunklineError) as caught:
        await direct.end(bus, subjects.EVENTS)
    assert caught.value.code == "log_unavailable"

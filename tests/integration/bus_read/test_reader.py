"""The Reader on a real server: what is yielded, when it has caught up, where it ends."""

import asyncio
import datetime as dt

import pytest

from trunkline_bus import reader as reading
from trunkline_bus.connection import Bus
from trunkline_bus.reader import Reader, read, read_session
from trunkline_bus.stored import Stored
from trunkline_testkit import eventually
from trunkline_wire import subjects
from trunkline_wire.ids import new_session_id

from .writing import fill, put

FACT, ASK = "agent.fact", "agent.ask"


async def take(reader: Reader, count: int) -> list[Stored]:
    found: list[Stored] = []
    async for stored in reader:
        found.append(stored)
        if len(found) >= count:
            break
    return found


async def test_a_message_comes_as_it_was_stored(bus: Bus) -> None:
    session = new_session_id()
    sequence = await put(bus, subjects.event(session, FACT), b'{"a":1}', id="0190-id", type="turn.started")
    async with Reader(bus, subjects.EVENTS, [subjects.session_events(session)]) as reader:
        [stored] = await take(reader, 1)
    assert (stored.stream, stored.sequence, stored.subject) == ("EVENTS", sequence, subjects.event(session, FACT))
    assert (stored.type, stored.id, stored.raw, stored.session) == ("turn.started", "0190-id", b'{"a":1}', session)
    assert abs(stored.time - dt.datetime.now(dt.UTC)) < dt.timedelta(seconds=30)


async def test_several_filters_give_one_order_and_leave_others_out(bus: Bus) -> None:
    mine, other = new_session_id(), new_session_id()
    for n in range(30):
        await put(bus, subjects.event(mine, FACT if n % 3 else ASK), b"%d" % n)
        await put(bus, subjects.event(other, FACT), b"other")
        await put(bus, subjects.event(mine, "permission"), b"no")
    filters = [subjects.event(mine, FACT), subjects.event(mine, ASK)]
    found = await read(bus, subjects.EVENTS, filters)
    assert [int(stored.raw) for stored in found] == list(range(30))


async def test_caught_up_at_once_where_there_is_nothing(bus: Bus) -> None:
    await put(bus, subjects.event(new_session_id(), FACT), b"of another session")
    async with Reader(bus, subjects.EVENTS, [subjects.session_events(new_session_id())]) as reader:
        assert not reader.caught_up.is_set()
        assert await anext(aiter(reader.batches())) == []
        assert reader.caught_up.is_set()


async def test_caught_up_only_after_the_backlog_was_taken(bus: Bus) -> None:
    session = new_session_id()
    await fill(bus, subjects.event(session, FACT), [b"%d" % n for n in range(2500)])
    taken: list[int] = []
    moments: list[int] = []
    async with Reader(bus, subjects.EVENTS, [subjects.session_events(session)]) as reader:
        async for batch in reader.batches():
            assert reader.caught_up.is_set() == (not batch or bool(moments))
            taken += [int(stored.raw) for stored in batch]
            if not batch:
                moments.append(len(taken))
                await put(bus, subjects.event(session, FACT), b"2500")
            if len(taken) == 2501:
                break
    assert taken == list(range(2501))
    assert moments == [2500]


async def test_new_gives_only_what_comes_after_the_opening(bus: Bus) -> None:
    session = new_session_id()
    await fill(bus, subjects.event(session, FACT), [b"old"] * 10)
    async with Reader.new(bus, subjects.EVENTS, [subjects.session_events(session)]) as reader:
        assert await anext(aiter(reader.batches())) == []
        await put(bus, subjects.event(session, FACT), b"new")
        assert [stored.raw for stored in await take(reader, 1)] == [b"new"]


async def test_since_begins_at_a_time(bus: Bus) -> None:
    session = new_session_id()
    await fill(bus, subjects.event(session, FACT), [b"old"] * 5)
    [*_, last] = await read_session(bus, session)
    # The server's times are nanoseconds, `since` is microseconds.
    moment = last.time + dt.timedelta(microseconds=1)
    async with Reader(bus, subjects.EVENTS, [subjects.session_events(session)], since=moment) as reader:
        assert await anext(aiter(reader.batches())) == []
        await put(bus, subjects.event(session, FACT), b"new")
        assert [stored.raw for stored in await take(reader, 1)] == [b"new"]


@pytest.mark.parametrize(
    ("after", "until", "expected"),
    [
        (0, None, [1, 3, 5, 7, 9]),
        (3, None, [5, 7, 9]),
        (0, 4, [1, 3]),
        (0, 5, [1, 3, 5]),
        (2, 8, [3, 5, 7]),
        (9, None, []),
    ],
)
async def test_a_finite_read_ends_with_until(bus: Bus, after: int, until: int | None, expected: list[int]) -> None:
    """Odd sequences are the session's, even ones another's."""
    mine, other = new_session_id(), new_session_id()
    for n in range(10):
        await put(bus, subjects.event(other if n % 2 else mine, FACT), b"x")
    found = await read_session(bus, mine, after=after, until=until)
    assert [stored.sequence for stored in found] == expected


async def test_until_above_the_end_waits_for_it(bus: Bus) -> None:
    """The event that takes the log past `until` is not one of the session: nothing tells but another look."""
    mine, other = new_session_id(), new_session_id()
    await put(bus, subjects.event(mine, FACT), b"1")
    found: list[int] = []

    async def follow() -> None:
        async with Reader(bus, subjects.EVENTS, [subjects.session_events(mine)], until=3, heartbeat=0.2) as reader:
            found.extend([stored.sequence async for stored in reader])

    following = asyncio.create_task(follow())
    await eventually(lambda: found == [] and not following.done())
    await put(bus, subjects.event(mine, FACT), b"2")
    await put(bus, subjects.event(other, FACT), b"3")
    await asyncio.wait_for(following, 10)
    assert found == [1, 2]


async def test_a_message_larger_than_a_pull_is_delivered(bus: Bus) -> None:
    session = new_session_id()
    sizes = [10, 300_000, 20, 900_000, 30]
    for size in sizes:
        await put(bus, subjects.event(session, FACT), b"x" * size)
    async with Reader(bus, subjects.EVENTS, [subjects.session_events(session)], max_bytes=20_000) as reader:
        assert [len(stored.raw) for stored in await take(reader, 5)] == sizes


async def test_pulls_that_end_on_their_last_byte_do_not_stall(bus: Bus) -> None:
    """Such a pull ends without a word. The server counts subject, reply and headers, 1,240 bytes or so in all."""
    session = new_session_id()
    await fill(bus, subjects.event(session, FACT), [b"x" * 1000] * 10)
    for max_bytes in range(1050, 1300):
        async with Reader(
            bus, subjects.EVENTS, [subjects.session_events(session)], max_bytes=max_bytes, until=10
        ) as reader:
            async with asyncio.timeout(5):
                assert len([stored async for stored in reader]) == 10


async def test_a_closed_reader_leaves_no_consumer_behind(bus: Bus) -> None:
    async with Reader(bus, subjects.EVENTS, [subjects.ALL_EVENTS]):
        assert len(await bus.js.consumers_info(subjects.EVENTS)) == 1

    async def none_left() -> bool:
        return not await bus.js.consumers_info(subjects.EVENTS)

    await eventually(none_left)


async def test_a_slow_iterator_keeps_memory_flat(bus: Bus) -> None:
    """Who does not iterate does not pull: of 60 MB at most the requests under way are on this side."""
    session = new_session_id()
    await fill(bus, subjects.event(session, FACT), [b"x" * 100_000] * 600, in_flight=20)
    before = bus.reading.stats["in_bytes"]
    lengths: list[int] = []
    limit = 1_000_000
    async with Reader(bus, subjects.EVENTS, [subjects.session_events(session)], max_bytes=limit) as reader:
        async for batch in reader.batches():
            lengths += [len(stored.raw) for stored in batch]
            if len(lengths) <= 20:
                # Give the server all the time it wants to send more than was asked for.
                received = -1
                while received != bus.reading.stats["in_bytes"]:
                    received = bus.reading.stats["in_bytes"]
                    await bus.reading.flush()
                    await asyncio.to_thread(lambda: None)
                assert received - before < (len(lengths) + 1) * 100_000 + 4 * limit
            if reader.caught_up.is_set():
                break
    assert lengths == [100_000] * 600


async def test_it_is_quick(bus: Bus) -> None:
    """A floor far below what it does on a quiet machine (some 60,000 messages a second), to see a stall."""
    session = new_session_id()
    await fill(bus, subjects.event(session, FACT), [b"x" * 512] * 20_000)
    async with asyncio.timeout(6):
        assert len(await read_session(bus, session)) == 20_000


def test_the_window_is_bounded() -> None:
    assert reading.WINDOW * 4 <= 512 * 1024, "nats-py drops what exceeds its own pending limit"


async def test_what_comes_after_the_backlog_is_taken_at_once_and_in_one_order_with_the_batches(bus: Bus) -> None:
    session = new_session_id()
    subject, total = subjects.event(session, FACT), 3000
    await fill(bus, subject, [b"%d" % n for n in range(1000)])
    order: list[tuple[str, int]] = []
    reader = Reader(
        bus,
        subjects.EVENTS,
        [subjects.session_events(session)],
        take=lambda stored: order.append(("taken", int(stored.raw))),
    )

    async def write() -> None:
        await reader.caught_up.wait()
        for begin in range(1000, total, 100):
            await fill(bus, subject, [b"%d" % n for n in range(begin, begin + 100)])

    async def follow() -> None:
        async for batch in reader.batches():
            for stored in batch:
                order.append(("batch", int(stored.raw)))
                if int(stored.raw) % 100 == 0:
                    await asyncio.sleep(0)  # what arrives now has to wait for its turn

    async with asyncio.TaskGroup() as group, reader:
        following = group.create_task(follow())
        await write()
        await eventually(lambda: len(order) == total)
        assert reader.position == await put(bus, subjects.event(new_session_id(), FACT), b"another's") - 1
        following.cancel()
    assert [number for _, number in order] == list(range(total))
    assert {way for way, number in order if number < 1000} == {"batch"}
    assert ("taken", total - 1) in order


async def test_whoever_iterates_is_told_what_taking_raised(bus: Bus) -> None:
    session = new_session_id()

    def refuse(stored: Stored) -> None:
        raise ValueError(stored.raw)

    async with Reader(bus, subjects.EVENTS, [subjects.session_events(session)], take=refuse) as reader:
        batches = reader.batches()
        assert await anext(batches) == []
        following = asyncio.ensure_future(anext(batches))
        await put(bus, subjects.event(session, FACT), b"one")
        with pytest.raises(ValueError, match="one"):
            await following

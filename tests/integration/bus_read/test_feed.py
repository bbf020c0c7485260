"""Several followers of one stream: each gets everything once and in order, and the server hands it over once."""

import asyncio
import shutil
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from trunkline_bus import feed as feeds
from trunkline_bus import jsapi
from trunkline_bus.connection import Bus
from trunkline_bus.feed import Feed, Follower
from trunkline_testkit import eventually
from trunkline_testkit.nats import NatsServer
from trunkline_wire import TrunklineError, subjects
from trunkline_wire.ids import new_session_id

from .writing import fill, insist, put, write_elsewhere

SUBJECT = subjects.event(new_session_id(), "agent.fact")


class Taken:
    """What one follower got."""

    def __init__(self) -> None:
        self.bodies: list[int] = []
        self.caught_up_at: list[int] = []
        self.error: TrunklineError | None = None
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def run(self, feed: Feed, after: int) -> None:
        try:
            async with feed.follow(after) as follower:
                await self._take(follower)
        except TrunklineError as error:
            self.error = error

    async def _take(self, follower: Follower) -> None:
        async for batch in follower.batches():
            await self.go_on.wait()
            if not batch:
                self.caught_up_at.append(len(self.bodies))
            self.bodies += [int(stored.raw) for stored in batch]


@asynccontextmanager
async def following(feed: Feed, *after: int) -> AsyncGenerator[list[Taken]]:
    """Followers at work, each from its own place."""
    found = [Taken() for _ in after]
    async with AsyncExitStack() as stack:
        for taken, start in zip(found, after, strict=True):
            task = asyncio.create_task(taken.run(feed, start))
            stack.push_async_callback(asyncio.wait, (task,))
            stack.callback(task.cancel)
        yield found


def numbers(first: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, end)]


async def consumers(bus: Bus) -> int:
    info = await jsapi.stream_info(bus.js_cmd, subjects.EVENTS)
    assert info is not None
    return info["state"]["consumer_count"]


async def test_each_gets_the_backlog_from_its_place_and_then_everything_over_one_consumer(bus: Bus) -> None:
    await fill(bus, SUBJECT, numbers(0, 1500))
    async with following(Feed(bus, subjects.EVENTS, [subjects.ALL_EVENTS]), 0, 1200) as (all_, late):
        await eventually(lambda: all_.caught_up_at and late.caught_up_at)
        await fill(bus, SUBJECT, numbers(1500, 3000))
        await eventually(lambda: len(all_.bodies) == 3000 and len(late.bodies) == 1800)
        assert await consumers(bus) == 1
    assert all_.bodies == list(range(3000))
    assert late.bodies == list(range(1200, 3000))
    assert all_.caught_up_at == [1500]
    assert late.caught_up_at == [300]


async def test_the_last_to_go_ends_the_reader_and_the_next_begins_anew(bus: Bus) -> None:
    feed = Feed(bus, subjects.EVENTS, [subjects.ALL_EVENTS])
    async with following(feed, 0, 0) as (one, two):
        await eventually(lambda: one.caught_up_at and two.caught_up_at)

    async def none() -> bool:
        return await consumers(bus) == 0

    await eventually(none)
    await fill(bus, SUBJECT, numbers(0, 5))
    async with following(feed, 0) as (third,):
        await eventually(lambda: third.bodies == [0, 1, 2, 3, 4])


async def test_a_slow_one_holds_nobody_up_and_misses_nothing(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "MAX_QUEUED", 50)
    async with following(Feed(bus, subjects.EVENTS, [subjects.ALL_EVENTS]), 0, 0) as (quick, slow):
        await eventually(lambda: quick.caught_up_at and slow.caught_up_at)
        slow.go_on.clear()
        for start in range(0, 1000, 100):
            await fill(bus, SUBJECT, numbers(start, start + 100))
            await eventually(lambda start=start: len(quick.bodies) == start + 100)
        assert len(slow.bodies) < 100
        slow.go_on.set()
        await eventually(lambda: len(slow.bodies) >= 1000)
    assert quick.bodies == slow.bodies == list(range(1000))
    assert slow.caught_up_at == [0]


async def test_a_killed_server_costs_nobody_anything(bus: Bus, fresh_nats: NatsServer) -> None:
    async with following(Feed(bus, subjects.EVENTS, [subjects.ALL_EVENTS]), 0, 0) as both:
        for start in range(0, 300, 100):
            for body in numbers(start, start + 50):
                await insist(bus, SUBJECT, body)
            await asyncio.to_thread(fresh_nats.kill)
            await asyncio.to_thread(fresh_nats.start)
            for body in numbers(start + 50, start + 100):
                await insist(bus, SUBJECT, body)
        await eventually(lambda: all(taken.bodies and taken.bodies[-1] == 299 for taken in both), 30)
    for taken in both:
        assert taken.error is None
        assert sorted(set(taken.bodies)) == list(range(300))
        assert taken.bodies == sorted(taken.bodies)  # an append in doubt may be stored twice, one behind the other


async def test_a_position_beyond_the_end_is_refused(bus: Bus) -> None:
    await put(bus, SUBJECT, b"1")
    async with following(Feed(bus, subjects.EVENTS, [subjects.ALL_EVENTS]), 5) as (taken,):
        await eventually(lambda: taken.error is not None)
    assert taken.error is not None
    assert taken.error.code == "log_regressed"


async def test_one_that_fell_behind_is_told_of_a_store_that_was_put_back_and_grew_again(
    bus: Bus, fresh_nats: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "MAX_QUEUED", 5)
    await fill(bus, SUBJECT, numbers(0, 10))
    await asyncio.to_thread(fresh_nats.terminate)
    copy = Path(fresh_nats.home) / "copy"
    await asyncio.to_thread(shutil.copytree, fresh_nats.store, copy)
    await asyncio.to_thread(fresh_nats.start)
    await bus.mux.connected()
    async with following(Feed(bus, subjects.EVENTS, [subjects.ALL_EVENTS]), 0, 0) as (quick, slow):
        await eventually(lambda: quick.caught_up_at and slow.caught_up_at)
        slow.go_on.clear()
        await fill(bus, SUBJECT, numbers(10, 20))
        await eventually(lambda: len(quick.bodies) == 20)
        await asyncio.to_thread(fresh_nats.terminate)
        shutil.rmtree(fresh_nats.store)
        shutil.move(copy, fresh_nats.store)
        await write_elsewhere(fresh_nats, SUBJECT, 30)
        await asyncio.to_thread(fresh_nats.start)
        await eventually(lambda: quick.error is not None)
        slow.go_on.set()
        await eventually(lambda: slow.error is not None)
    assert slow.error is not None
    assert slow.error.code == "log_regressed"
    assert slow.bodies == list(range(len(slow.bodies)))


async def test_all_are_told_when_the_reading_ends(bus: Bus) -> None:
    async with following(Feed(bus, subjects.EVENTS, [subjects.ALL_EVENTS]), 0, 0) as both:
        await eventually(lambda: all(taken.caught_up_at for taken in both))
        await bus.reading.close()
        await eventually(lambda: all(taken.error is not None for taken in both))
    assert {taken.error.code for taken in both if taken.error is not None} == {"log_unavailable"}


async def test_urgent_messages_come_at_once_and_bring_what_was_before(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a pace of an hour nothing else can bring them."""
    monkeypatch.setattr(feeds, "PACE_S", 3600.0)
    ask = subjects.event(new_session_id(), "agent.ask")
    feed = Feed(bus, subjects.EVENTS, [subjects.ALL_EVENTS], urgent=[subjects.ALL_ASKS])
    async with following(feed, 0) as (taken,):
        await eventually(lambda: taken.caught_up_at)
        await fill(bus, SUBJECT, numbers(0, 1))
        await eventually(lambda: taken.bodies == [0])  # the first after a rest
        await fill(bus, SUBJECT, numbers(1, 10))
        await put(bus, ask, b"10")
        await eventually(lambda: len(taken.bodies) == 11)
        await fill(bus, SUBJECT, numbers(11, 20))
        await put(bus, ask, b"20")
        await eventually(lambda: len(taken.bodies) == 21)
    assert taken.bodies == list(range(21))

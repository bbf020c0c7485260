"""Leases: one holder, renewed while it lives, free soon after it died."""

import asyncio
from collections.abc import AsyncIterator

import pytest_asyncio

from trunkline_bus.connection import Bus
from trunkline_bus.lease import Lease, read_lease
from trunkline_testkit import eventually
from trunkline_testkit.nats import NatsServer

KEY = "ses_" + "1" * 32


class Leases:
    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.made: list[Lease] = []

    def make(self, worker: str, ttl: float = 2.0) -> Lease:
        lease = Lease(self.bus, KEY, {"worker": worker}, ttl)
        self.made.append(lease)
        return lease


@pytest_asyncio.fixture
async def leases(bus: Bus) -> AsyncIterator[Leases]:
    made = Leases(bus)
    yield made
    for lease in made.made:
        await lease.release()


async def test_one_holder_at_a_time(bus: Bus, leases: Leases) -> None:
    contenders = [leases.make(str(number)) for number in range(8)]
    won = await asyncio.gather(*(lease.acquire() for lease in contenders))
    assert won.count(True) == 1
    holder = contenders[won.index(True)]
    held = await read_lease(bus, KEY)
    assert held is not None
    assert held.holder == {"worker": str(won.index(True))}
    assert held.ttl_s == 2.0
    assert await holder.acquire()  # again, by the holder itself


async def test_it_renews_itself_beyond_its_time(bus: Bus, leases: Leases) -> None:
    one, two = leases.make("one"), leases.make("two")
    assert await one.acquire()
    first = await read_lease(bus, KEY)
    begin = asyncio.get_running_loop().time()
    await eventually(lambda: asyncio.get_running_loop().time() - begin > 2.5)
    assert not await two.acquire()
    assert not one.lost.is_set()
    now = await read_lease(bus, KEY)
    assert first is not None
    assert now is not None
    assert now.revision > first.revision


async def test_a_dead_holder_loses_it_after_its_time(leases: Leases) -> None:
    dead, heir = leases.make("dead", ttl=1.0), leases.make("heir")
    assert await dead.acquire()
    task = dead._task  # pyright: ignore[reportPrivateUsage] - a worker that died renews no more
    assert task is not None
    task.cancel()
    assert not await heir.acquire()
    await eventually(heir.acquire, 5)


async def test_released_it_is_free_at_once(bus: Bus, leases: Leases) -> None:
    one, two = leases.make("one"), leases.make("two")
    assert await one.acquire()
    await one.release()
    assert await read_lease(bus, KEY) is None
    assert await two.acquire()
    await one.release()
    assert (await read_lease(bus, KEY)) is not None


async def test_taking_over_needs_the_revision_that_was_read(bus: Bus, leases: Leases) -> None:
    old, new = leases.make("old"), leases.make("new")
    assert await old.acquire()
    read = await read_lease(bus, KEY)
    assert read is not None
    assert not await new.take_over(read.revision - 1)
    assert await new.take_over(read.revision)
    await asyncio.wait_for(old.lost.wait(), 5)
    held = await read_lease(bus, KEY)
    assert held is not None
    assert held.holder == {"worker": "new"}


async def test_a_killed_server_takes_no_lease_away(leases: Leases, fresh_nats: NatsServer) -> None:
    one = leases.make("one", ttl=6.0)
    assert await one.acquire()
    fresh_nats.kill()
    await asyncio.to_thread(fresh_nats.restart)
    renewed = one.renewed_at
    await eventually(lambda: one.renewed_at > renewed)
    assert not one.lost.is_set()
    assert not await leases.make("two").acquire()


async def test_without_a_server_it_is_lost_when_its_time_is_over(leases: Leases, fresh_nats: NatsServer) -> None:
    one = leases.make("one", ttl=1.0)
    assert await one.acquire()
    fresh_nats.kill()
    await asyncio.wait_for(one.lost.wait(), 5)
    assert asyncio.get_running_loop().time() - one.renewed_at >= 1.0
    await asyncio.to_thread(fresh_nats.restart)
    assert await one.acquire()
    assert not one.lost.is_set()

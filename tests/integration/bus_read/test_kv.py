"""Keys and values on a real server."""

import asyncio

from trunkline_bus import kv
from trunkline_bus.connection import Bus, BusSettings
from trunkline_testkit import eventually
from trunkline_testkit.nats import NatsServer
from trunkline_testkit.proxy import Action, NatsProxy, Passing
from trunkline_wire import subjects

BUCKET = subjects.KV_PAGES


async def test_what_was_put_is_got_and_a_deleted_key_says_so(bus: Bus) -> None:
    assert await kv.get(bus, BUCKET, "a.b") is None
    first = await kv.put(bus, BUCKET, "a.b", b"1")
    second = await kv.put(bus, BUCKET, "a.b", b"2")
    there = await kv.get(bus, BUCKET, "a.b")
    assert there is not None
    assert (there.key, there.value, there.revision) == ("a.b", b"2", second)
    assert second == first + 1
    await kv.delete(bus, BUCKET, "a.b")
    gone = await kv.get(bus, BUCKET, "a.b")
    assert gone is not None
    assert (gone.value, gone.revision) == (None, second + 1)


async def test_of_two_updates_of_one_revision_one_is_lost(bus: Bus) -> None:
    revision = await kv.update(bus, BUCKET, "k", b"1", revision=0)
    assert revision is not None
    made = await asyncio.gather(*(kv.update(bus, BUCKET, "k", b"%d" % n, revision=revision) for n in range(10)))
    assert sum(one is not None for one in made) == 1
    winner = next(n for n, one in enumerate(made) if one is not None)
    there = await kv.get(bus, BUCKET, "k")
    assert there is not None
    assert there.value == b"%d" % winner
    assert await kv.update(bus, BUCKET, "k", b"again", revision=0) is None


async def test_entries_are_the_present_ones_of_a_pattern(bus: Bus) -> None:
    for key in ("x.1", "x.2", "y.1", "x.1.deep", "x.3"):
        await kv.put(bus, BUCKET, key, key.encode())
    await kv.put(bus, BUCKET, "x.1", b"newer")
    await kv.delete(bus, BUCKET, "x.2")
    assert {one.key: one.value for one in await kv.entries(bus, BUCKET, "x.*")} == {"x.1": b"newer", "x.3": b"x.3"}
    found = await kv.get_many(bus, BUCKET, ["x.1", "y.1", "nothing"])
    assert {key: one.value for key, one in found.items()} == {"x.1": b"newer", "y.1": b"y.1"}


async def test_a_key_that_is_written_while_all_are_read_is_not_missed(bus: Bus, fresh_nats: NatsServer) -> None:
    for key in ("x.1", "x.2", "x.3"):
        await kv.put(bus, BUCKET, key, b"old")

    def before_the_first_message(message: Passing) -> Action:
        return "hold" if message.subject.startswith("$JS.API.CONSUMER.CREATE.") else "pass"

    async with (
        NatsProxy(fresh_nats.url) as proxy,
        Bus.open(BusSettings(url=proxy.url)) as other,
    ):
        proxy.on_publish = before_the_first_message
        reading = asyncio.create_task(kv.entries(other, BUCKET, "x.*"))
        await eventually(lambda: proxy.is_cut)
        # It moves from where the reader is about to look to behind the end that the reader knows.
        await kv.put(bus, BUCKET, "x.1", b"new")
        proxy.on_publish = None
        proxy.heal()
        assert {one.key: one.value for one in await reading} == {"x.1": b"new", "x.2": b"old", "x.3": b"old"}


async def test_watching_gives_what_is_there_and_then_every_change(bus: Bus) -> None:
    await kv.put(bus, BUCKET, "a", b"1")
    await kv.put(bus, BUCKET, "b", b"2")
    seen: list[tuple[str, bytes | None]] = []
    async with kv.watch(bus, BUCKET) as reader:
        async for batch in reader.batches():
            seen += [(one.key, one.value) for stored in batch if (one := kv.entry(stored))]
            if not batch:
                await kv.put(bus, BUCKET, "a", b"3")
                await kv.delete(bus, BUCKET, "b")
            if len(seen) == 4:
                break
    assert seen == [("a", b"1"), ("b", b"2"), ("a", b"3"), ("b", None)]


async def test_a_put_waits_for_the_server(bus: Bus, fresh_nats: NatsServer) -> None:
    await asyncio.to_thread(fresh_nats.kill)
    putting = asyncio.create_task(kv.put(bus, BUCKET, "a", b"1"))
    await asyncio.to_thread(fresh_nats.start)
    assert await asyncio.wait_for(putting, 15) >= 1

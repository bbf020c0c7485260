"""The Reader through everything that can happen to a server: nothing lost, nothing twice, or an explicit error."""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from trunkline_bus import topology
from trunkline_bus.client import Received
from trunkline_bus.connection import Bus, BusSettings
from trunkline_bus.reader import Reader, read
from trunkline_testkit import eventually
from trunkline_testkit.nats import NatsServer
from trunkline_testkit.nats_cluster import NatsCluster
from trunkline_wire import TrunklineError, subjects
from trunkline_wire.ids import new_session_id

from .writing import fill, insist, put, write_elsewhere


class Follower:
    """Reads in a task what a Reader gives: bodies in order, and the error that ended it."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.bodies: list[bytes] = []
        self.sequences: list[int] = []
        self.error: TrunklineError | None = None

    async def run(self) -> None:
        try:
            async with self.reader:
                async for stored in self.reader:
                    self.bodies.append(stored.raw)
                    self.sequences.append(stored.sequence)
        except TrunklineError as error:
            self.error = error


class LossyReader(Reader):
    """One whose client drops some deliveries once."""

    def __init__(self, bus: Bus, stream: str, filters: list[str]) -> None:
        super().__init__(bus, stream, filters)
        self.dropped: list[bytes] = []

    def _on_message(self, message: Received) -> None:
        if message.data in {b"7", b"300", b"301"} and message.data not in self.dropped:
            self.dropped.append(message.data)
        else:
            super()._on_message(message)


def recreated(reason: str) -> float:
    labels = {"stream": subjects.EVENTS, "reason": reason}
    return REGISTRY.get_sample_value("trunkline_reader_recreated_total", labels) or 0.0


@contextlib.asynccontextmanager
async def following(reader: Reader) -> AsyncGenerator[Follower]:
    follower = Follower(reader)
    task = asyncio.create_task(follower.run())
    try:
        yield follower
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_kill_and_restart_lose_and_double_nothing(bus: Bus, fresh_nats: NatsServer) -> None:
    """18,000 messages, and the server killed three times while they are written and read."""
    subject = subjects.event(new_session_id(), "agent.fact")
    total = 18_000
    async with following(Reader(bus, subjects.EVENTS, [subject], heartbeat=0.5)) as follower:
        written = 0

        async def write() -> None:
            nonlocal written
            while written < total:
                # One message at a time may be in doubt, so that what is stored is in order whatever happens.
                if written % 50 == 0:
                    await insist(bus, subject, b"%d" % written)
                    written += 1
                else:
                    count = 50 - written % 50
                    for n in range(written, written + count - 1):
                        await bus.reading.publish(subject, b"%d" % n, headers={"Trunk-Id": f"{n}"})
                    await insist(bus, subject, b"%d" % (written + count - 1))
                    written += count

        writing = asyncio.create_task(write())
        for threshold in (3_000, 8_000, 13_000):
            await eventually(lambda threshold=threshold: len(follower.bodies) > threshold, 60)
            await asyncio.to_thread(fresh_nats.kill)
            await asyncio.to_thread(fresh_nats.start)
        await asyncio.wait_for(writing, 60)
        stored = await read(bus, subjects.EVENTS, [subject])
        await eventually(lambda: len(follower.bodies) >= len(stored), 30)
    assert follower.sequences == [one.sequence for one in stored]
    assert follower.bodies == [one.raw for one in stored]
    assert follower.sequences == sorted(set(follower.sequences))


async def test_a_consumer_deleted_under_it_is_made_anew(bus: Bus) -> None:
    subject = subjects.event(new_session_id(), "agent.fact")
    async with following(Reader(bus, subjects.EVENTS, [subject], heartbeat=0.3)) as follower:
        for round_ in range(5):
            await fill(bus, subject, [b"%d" % n for n in range(round_ * 100, round_ * 100 + 100)])
            await eventually(lambda round_=round_: len(follower.bodies) == (round_ + 1) * 100)
            [consumer] = await bus.js.consumers_info(subjects.EVENTS)
            await bus.js.delete_consumer(subjects.EVENTS, consumer.name)
    assert follower.bodies == [b"%d" % n for n in range(500)]


async def test_a_server_that_falls_silent_is_noticed_by_its_missing_heartbeat(bus: Bus, fresh_nats: NatsServer) -> None:
    subject = subjects.event(new_session_id(), "agent.fact")
    async with following(Reader(bus, subjects.EVENTS, [subject], heartbeat=0.2)) as follower:
        await put(bus, subject, b"before")
        await eventually(lambda: follower.bodies == [b"before"])
        before = recreated("no_heartbeat")
        fresh_nats.pause()
        try:
            # Counted when the iterator acts on it, which is before the server answers again.
            await eventually(lambda: recreated("no_heartbeat") > before)
        finally:
            fresh_nats.resume()
        await put(bus, subject, b"after")
        await eventually(lambda: follower.bodies == [b"before", b"after"])


async def test_a_hole_in_the_delivery_is_filled(bus: Bus) -> None:
    """What nats-py would drop at its pending limit: one delivery vanishes on this side."""
    subject = subjects.event(new_session_id(), "agent.fact")
    reader = LossyReader(bus, subjects.EVENTS, [subject])
    async with following(reader) as follower:
        await fill(bus, subject, [b"%d" % n for n in range(500)])
        await eventually(lambda: len(follower.bodies) >= 500)
    assert reader.dropped == [b"7", b"300", b"301"]
    assert follower.bodies == [b"%d" % n for n in range(500)]


@pytest.mark.parametrize("written_after", [0, 1, 30])
async def test_a_log_that_went_back_is_an_error(bus: Bus, fresh_nats: NatsServer, written_after: int) -> None:
    """A volume put back: the end lies before the reader, or, once more was written, another message stands there."""
    subject = subjects.event(new_session_id(), "agent.fact")
    await fill(bus, subject, [b"%d" % n for n in range(10)])
    await asyncio.to_thread(fresh_nats.terminate)
    copy = Path(fresh_nats.home) / "copy"
    await asyncio.to_thread(shutil.copytree, fresh_nats.store, copy)
    await asyncio.to_thread(fresh_nats.start)
    await bus.mux.connected()
    async with following(Reader(bus, subjects.EVENTS, [subject], heartbeat=0.3)) as follower:
        await fill(bus, subject, [b"%d" % n for n in range(10, 20)])
        await eventually(lambda: len(follower.bodies) == 20)
        await asyncio.to_thread(fresh_nats.terminate)
        shutil.rmtree(fresh_nats.store)
        shutil.move(copy, fresh_nats.store)
        if written_after:
            await write_elsewhere(fresh_nats, subject, written_after)
        await asyncio.to_thread(fresh_nats.start)
        await eventually(lambda: follower.error is not None)
    assert follower.error is not None
    assert follower.error.code == "log_regressed"
    assert len(follower.bodies) == 20


async def test_a_position_beyond_the_end_is_refused_at_the_start(bus: Bus) -> None:
    await put(bus, subjects.event(new_session_id(), "agent.fact"), b"1")
    with pytest.raises(TrunklineError) as caught:
        async with Reader(bus, subjects.EVENTS, [subjects.ALL_EVENTS], after=5) as reader:
            await anext(aiter(reader))
    assert caught.value.code == "log_regressed"


async def test_deltas_made_anew_are_read_from_their_start(bus: Bus) -> None:
    session = new_session_id()
    subject = subjects.delta(session)
    async with following(Reader(bus, subjects.DELTAS, [subjects.session_deltas(session)], heartbeat=0.3)) as follower:
        await fill(bus, subject, [b"a", b"b", b"c"])
        await eventually(lambda: len(follower.bodies) == 3)
        await bus.js.delete_stream(subjects.DELTAS)
        await topology.apply(bus.js)
        await fill(bus, subject, [b"d", b"e"])
        await eventually(lambda: len(follower.bodies) == 5)
        assert follower.reader.restarts == 1
    assert follower.bodies == [b"a", b"b", b"c", b"d", b"e"]
    assert follower.sequences == [1, 2, 3, 1, 2]


async def test_a_closed_connection_ends_the_reading(bus: Bus) -> None:
    async with following(Reader(bus, subjects.EVENTS, [subjects.ALL_EVENTS])) as follower:
        await eventually(follower.reader.caught_up.is_set)
        await bus.reading.close()
        await eventually(lambda: follower.error is not None)
    assert follower.error is not None
    assert follower.error.code == "log_unavailable"


async def test_what_was_to_come_was_erased(bus: Bus) -> None:
    """The reader waits for a backlog that is purged while it stands: it still catches up."""
    session = new_session_id()
    await fill(bus, subjects.event(session, "agent.fact"), [b"x" * 1000] * 3000)
    reader = Reader(bus, subjects.EVENTS, [subjects.session_events(session)], window=100, heartbeat=0.2)
    async with reader:
        batches = aiter(reader.batches())
        assert await anext(batches)
        await bus.js.purge_stream(subjects.EVENTS, subject=subjects.session_events(session))
        async with asyncio.timeout(20):
            while await anext(batches):
                pass
        assert reader.caught_up.is_set()


@pytest.fixture
def cluster() -> Iterator[NatsCluster]:
    with NatsCluster(3) as started:
        yield started


@pytest.mark.slow
async def test_a_leader_killed_under_it_on_three_replicas(cluster: NatsCluster) -> None:
    async with Bus.open(BusSettings(url=cluster.url)) as bus:
        await topology.apply(bus.js, replicas=3, max_bytes=64 * 1024 * 1024)
        subject = subjects.event(new_session_id(), "agent.fact")
        async with following(Reader(bus, subjects.EVENTS, [subject], heartbeat=0.5)) as follower:
            for round_ in range(2):
                for n in range(100):
                    await insist(bus, subject, b"%d" % (round_ * 100 + n))
                leader = await asyncio.to_thread(cluster.stream_leader, subjects.EVENTS)
                await asyncio.to_thread(leader.kill)
                await insist(bus, subject, b"during")
                await asyncio.to_thread(leader.start)
                await asyncio.to_thread(cluster.wait_ready)
            stored = await read(bus, subjects.EVENTS, [subject])
            await eventually(lambda: len(follower.sequences) >= len(stored), 30)
        assert follower.sequences == [one.sequence for one in stored]
        assert len(stored) >= 202

import asyncio
import contextlib
from collections.abc import AsyncGenerator

import pytest

from trunkline_gateway import outbox as outboxes
from trunkline_gateway.outbox import NotReadingError, Outbox
from trunkline_testkit import eventually


class Wire:
    """A connection that takes what it is given while it is open."""

    def __init__(self) -> None:
        self.writes: list[list[bytes]] = []
        self.open = asyncio.Event()
        self.open.set()
        self.at_once: list[bytes] = []

    def write_now(self, frame: bytes) -> bool:
        if not self.open.is_set():
            return False
        self.at_once.append(frame)
        self.writes.append([frame])
        return True

    async def write(self, frames: list[bytes]) -> None:
        await self.open.wait()
        self.writes.append(frames)


@pytest.fixture
async def wire() -> Wire:
    return Wire()


@pytest.fixture
async def outbox(wire: Wire) -> AsyncGenerator[Outbox]:
    outbox = Outbox(wire.write, wire.write_now)
    running = asyncio.create_task(outbox.run())
    await asyncio.sleep(0)  # it waits for work
    yield outbox
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running


async def test_a_lone_frame_goes_in_the_step_that_made_it_and_the_next_ones_together(
    outbox: Outbox, wire: Wire
) -> None:
    outbox.push(b"1")
    assert wire.writes == [[b"1"]]
    for number in b"234":
        outbox.push(bytes((number,)))
    await eventually(lambda: len(wire.writes) == 2)
    assert wire.writes[1] == [b"2", b"3", b"4"]
    await asyncio.sleep(0)
    outbox.push(b"5")
    assert wire.at_once == [b"1", b"5"]


async def test_nothing_overtakes_what_is_queued(outbox: Outbox, wire: Wire) -> None:
    wire.open.clear()
    outbox.push(b"1")
    outbox.push(b"2")
    wire.open.set()
    outbox.push(b"3")
    await eventually(lambda: sum(len(write) for write in wire.writes) == 3)
    assert [frame for write in wire.writes for frame in write] == [b"1", b"2", b"3"]


async def test_a_flood_gathers(outbox: Outbox, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outboxes, "PACE_S", 0.2)
    for number in range(outboxes.BURST + 3):
        outbox.push(str(number).encode())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    begun = asyncio.get_running_loop().time()
    await eventually(lambda: sum(len(write) for write in wire.writes) == outboxes.BURST + 3)
    assert asyncio.get_running_loop().time() - begun > 0.1
    assert len(wire.writes) <= outboxes.BURST + 2
    assert [frame for write in wire.writes for frame in write] == [
        str(number).encode() for number in range(outboxes.BURST + 3)
    ]


async def test_a_full_queue_refuses_events_and_never_answers(outbox: Outbox, wire: Wire) -> None:
    wire.open.clear()
    outbox.push(b"stuck")
    await eventually(lambda: outbox.writing)
    for _ in range(outboxes.MAX_FRAMES):
        assert outbox.push(b"x")
    assert not outbox.push(b"refused")
    outbox.force(b"answer")
    waiting = asyncio.create_task(outbox.room())
    await asyncio.sleep(0)
    assert not waiting.done()
    wire.open.set()
    await waiting
    written = [frame for write in wire.writes for frame in write]
    assert written == [b"stuck", *[b"x"] * outboxes.MAX_FRAMES, b"answer"]


async def test_bytes_are_bounded_too(outbox: Outbox, wire: Wire) -> None:
    wire.open.clear()
    big = b"x" * (outboxes.MAX_BYTES // 4)
    taken = 0
    while outbox.push(big):
        taken += 1
    assert 4 <= taken <= 5
    wire.open.set()
    await outbox.room()


async def test_large_batches_are_written_in_parts(outbox: Outbox, wire: Wire) -> None:
    wire.open.clear()
    for _ in range(10):
        outbox.push(b"x" * 100_000)
    wire.open.set()
    await eventually(lambda: sum(len(write) for write in wire.writes) == 10)
    assert max(sum(map(len, write)) for write in wire.writes) <= outboxes.CHUNK_BYTES


async def test_who_takes_nothing_is_given_up(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outboxes, "NOT_READING_S", 0.05)
    outbox = Outbox(wire.write)
    wire.open.clear()
    outbox.push(b"1")
    with pytest.raises(NotReadingError):
        await outbox.run()

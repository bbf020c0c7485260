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

    async def write(self, frames: list[bytes]) -> None:
        await self.open.wait()
        self.writes.append(frames)


@pytest.fixture
async def wire() -> Wire:
    return Wire()


@pytest.fixture
async def outbox(wire: Wire) -> AsyncGenerator[Outbox]:
    outbox = Outbox(wire.write)
    running = asyncio.create_task(outbox.run())
    yield outbox
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running


async def test_the_first_frame_goes_at_once_and_what_follows_gathers(outbox: Outbox, wire: Wire) -> None:
    outbox.push(b"1")
    await eventually(lambda: wire.writes == [[b"1"]], 1)
    for number in b"234":
        outbox.push(bytes((number,)))
    await eventually(lambda: len(wire.writes) == 2)
    assert wire.writes[1] == [b"2", b"3", b"4"]


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

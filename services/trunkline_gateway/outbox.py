"""The bounded queue of one connection: a lone frame goes out in the step that made it, many together, none without bound."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from trunkline_bus import metrics

MAX_FRAMES: Final = 1_000
MAX_BYTES: Final = 8 * 1024 * 1024
THIN_FRAMES: Final = 200
THIN_BYTES: Final = 1024 * 1024
"""A queue of more than this is crowded: its client does not keep up, and deltas wait outside (`thinning.py`)."""
PACE_S: Final = 0.004
"""A write may go every PACE_S on the average: what comes quicker gathers, so that a flood is not a write for each frame."""
BURST: Final = 16
"""Writes that may go before that counts: a conversation pays no delay."""
NOT_READING_S: Final = 60.0
CHUNK_BYTES: Final = 256 * 1024

Write = Callable[[list[bytes]], Awaitable[None]]
"""Sends frames, and returns once the connection's own buffer has room again."""

WriteNow = Callable[[bytes], bool]
"""Sends a frame if the connection's own buffer is empty; False, and nothing sent, if it is not."""


class _Queued:
    """What waits in all outboxes of the process."""

    frames = 0
    bytes = 0


metrics.GATEWAY_QUEUED_FRAMES.set_function(lambda: _Queued.frames)
metrics.GATEWAY_QUEUED_BYTES.set_function(lambda: _Queued.bytes)


class NotReadingError(Exception):
    """The other side has taken nothing for NOT_READING_S."""


class Outbox:
    """`run` writes what is pushed until cancelled; it raises NotReadingError, and what `write` raises."""

    def __init__(self, write: Write, write_now: WriteNow | None = None) -> None:
        self._write = write
        self._write_now = write_now
        # Plain lists and futures: an idle client is to cost little memory, and a deque or an Event has 700 bytes.
        self._frames: list[bytes] = []
        self._bytes = 0
        self._work: asyncio.Future[None] | None = None
        """What `run` waits for, while it has nothing to do."""
        self._for_room: list[asyncio.Future[None]] = []
        self._when_written: list[Callable[[], None]] = []
        self._was_full = False
        self._free = False
        """Whether `run` waits for work, and nothing was written in this step of the loop."""
        self._paid_until = 0.0
        self.writing = False

    @property
    def full(self) -> bool:
        return len(self._frames) >= MAX_FRAMES or self._bytes >= MAX_BYTES

    @property
    def crowded(self) -> bool:
        return len(self._frames) >= THIN_FRAMES or self._bytes >= THIN_BYTES

    def when_written(self, call: Callable[[], None]) -> None:
        """Call `call` once, after a write that left the queue uncrowded."""
        self._when_written.append(call)

    def push(self, frame: bytes) -> bool:
        """Queue an event's frame; False, and nothing queued, when the queue is full."""
        if self.full:
            self._was_full = True
            return False
        self.force(frame)
        return True

    def force(self, frame: bytes) -> None:
        """Queue a frame that is bounded by what the client asked for: an answer, a heartbeat, a gap."""
        if self._free and not self._frames and self._write_now is not None and self._write_at_once(frame):
            return
        self._frames.append(frame)
        self._bytes += len(frame)
        _Queued.frames += 1
        _Queued.bytes += len(frame)
        if self._work is not None and not self._work.done():
            self._work.set_result(None)

    def _write_at_once(self, frame: bytes) -> bool:
        loop = asyncio.get_running_loop()
        assert self._write_now is not None
        if self._wait(loop.time()) > 0 or not self._write_now(frame):
            return False
        self._pay(loop.time())
        metrics.GATEWAY_FRAMES.inc()
        # What else is queued in this step goes together, in the next.
        self._free = False
        loop.call_soon(self._step_ended)
        return True

    async def room(self) -> None:
        """Wait until the queue has been written out, if it was full."""
        if self._was_full:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._for_room.append(future)
            await future

    async def flush(self) -> None:
        """Write what is queued, once `run` has ended."""
        frames = self._take()
        if frames:
            await self._write(frames)

    async def run(self) -> None:
        """Write until cancelled. Raises NotReadingError, and what `write` raises."""
        loop = asyncio.get_running_loop()
        while True:
            if not self._frames:
                await self._next_work()
            if (wait := self._wait(loop.time())) > 0:
                await asyncio.sleep(wait)
            frames = self._take()
            self._pay(loop.time())
            self.writing = True
            try:
                for chunk in _chunks(frames):
                    async with asyncio.timeout(NOT_READING_S):
                        await self._write(chunk)
            except TimeoutError:
                raise NotReadingError from None
            finally:
                self.writing = False
            metrics.GATEWAY_FRAMES.inc(len(frames))
            if self._when_written and not self.crowded:
                calls, self._when_written = self._when_written, []
                for call in calls:
                    call()
            if not self._frames:
                self._was_full = False
                for future in self._for_room:
                    if not future.done():
                        future.set_result(None)
                self._for_room.clear()

    def _take(self) -> list[bytes]:
        frames, self._frames = self._frames, []
        _Queued.frames -= len(frames)
        _Queued.bytes -= self._bytes
        self._bytes = 0
        return frames

    async def _next_work(self) -> None:
        self._work = asyncio.get_running_loop().create_future()
        self._free = True
        try:
            await self._work
        finally:
            self._work = None
            self._free = False

    def _step_ended(self) -> None:
        self._free = self._work is not None

    def _wait(self, now: float) -> float:
        """Seconds until the next write may go."""
        return self._paid_until - BURST * PACE_S - now

    def _pay(self, now: float) -> None:
        self._paid_until = max(self._paid_until, now) + PACE_S


def _chunks(frames: list[bytes]) -> Iterator[list[bytes]]:
    """Parts small enough that a slow reader makes progress within NOT_READING_S."""
    chunk: list[bytes] = []
    size = 0
    for frame in frames:
        if chunk and size + len(frame) > CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
        chunk.append(frame)
        size += len(frame)
    yield chunk

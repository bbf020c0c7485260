"""The bounded queue of one connection: a few frames are written at once, many in ticks, and never without bound."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from trunkline_bus import metrics

MAX_FRAMES: Final = 1_000
MAX_BYTES: Final = 8 * 1024 * 1024
TICK_S: Final = 0.015
"""How long frames gather before they go out in one write, once there are many."""
AT_ONCE: Final = 4
"""Writes within one tick that go at once: a conversation pays no delay, a flood no write for each frame."""
NOT_READING_S: Final = 60.0
CHUNK_BYTES: Final = 256 * 1024

Write = Callable[[list[bytes]], Awaitable[None]]
"""Sends frames, and returns once the connection's own buffer has room again."""


class NotReadingError(Exception):
    """The other side has taken nothing for NOT_READING_S."""


class Outbox:
    """`run` writes what is pushed until cancelled; it raises NotReadingError, and what `write` raises."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._frames: deque[bytes] = deque()
        self._bytes = 0
        self._work = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self.writing = False

    @property
    def full(self) -> bool:
        return len(self._frames) >= MAX_FRAMES or self._bytes >= MAX_BYTES

    def push(self, frame: bytes) -> bool:
        """Queue an event's frame; False, and nothing queued, when the queue is full."""
        if self.full:
            self._room.clear()
            return False
        self.force(frame)
        return True

    def force(self, frame: bytes) -> None:
        """Queue a frame that is bounded by what the client asked for: an answer, a heartbeat, a gap."""
        self._frames.append(frame)
        self._bytes += len(frame)
        self._work.set()

    async def room(self) -> None:
        """Wait until the queue has been written out."""
        await self._room.wait()

    async def flush(self) -> None:
        """Write what is queued, once `run` has ended."""
        frames, self._frames = list(self._frames), deque()
        if frames:
            await self._write(frames)

    async def run(self) -> None:
        """Write until cancelled. Raises NotReadingError, and what `write` raises."""
        loop = asyncio.get_running_loop()
        tick, writes = loop.time(), 0
        while True:
            await self._work.wait()
            self._work.clear()
            frames = list(self._frames)
            self._frames.clear()
            self._bytes = 0
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
            if not self._frames:
                self._room.set()
            now = loop.time()
            if now - tick >= TICK_S:
                tick, writes = now, 0
            writes += 1
            if writes >= AT_ONCE:
                await asyncio.sleep(tick + TICK_S - now)
                tick, writes = loop.time(), 0


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

"""What a program prints, as its pipe gives it: asyncio's own reader copies every piece and costs a line two more steps."""

import asyncio
from collections import deque
from typing import Final

LIMIT: Final = 2 * 1024 * 1024
"""Bytes that wait to be read, above which the pipe is left full and the program waits."""

AFTER_EXIT_S: Final = 0.5
"""Seconds that output may still come after the program has ended: a descendant may hold its pipe for ever."""


class Output:
    """One reader. The protocol of the subprocess feeds it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._waiter: asyncio.Future[None] | None = None
        self._last_moment: asyncio.TimerHandle | None = None
        self._exited = self._ended = self._paused = False
        self.pipe: asyncio.ReadTransport | None = None
        self.limit = LIMIT

    async def read(self) -> bytes:
        """The next piece; nothing at the end of the output, or when none comes after the program has ended."""
        if not self._chunks and not self._ended:
            self._waiter = self._loop.create_future()
            if self._exited:
                self._give_up_soon()
            try:
                await self._waiter
            finally:
                self._waiter = None
                if self._last_moment is not None:
                    self._last_moment.cancel()
        if not self._chunks:
            return b""
        chunk = self._chunks.popleft()
        self._size -= len(chunk)
        if self._paused and self._size <= self.limit // 2 and self.pipe is not None:
            self._paused = False
            self.pipe.resume_reading()
        return chunk

    def feed(self, chunk: bytes) -> None:
        self._chunks.append(chunk)
        self._size += len(chunk)
        if self._size > self.limit and not self._paused and self.pipe is not None:
            self._paused = True
            self.pipe.pause_reading()
        self._wake()

    def end(self) -> None:
        """The pipe has its end."""
        self._ended, self.pipe = True, None
        self._wake()

    def exited(self) -> None:
        """The program has ended; its pipe may live on."""
        self._exited = True
        if self._waiter is not None:
            self._give_up_soon()

    def _give_up_soon(self) -> None:
        self._last_moment = self._loop.call_later(AFTER_EXIT_S, self._wake)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

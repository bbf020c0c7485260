"""What an agent has said and nobody has read yet: above a limit the agent waits."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Final

from trunkline_agentkit.protocol import Native

LIMIT: Final = 8 * 1024 * 1024
"""Bytes of messages that are kept before `put` waits."""


class Unread:
    """One writer, one reader of `messages()`."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._natives: deque[Native] = deque()
        self._bytes = 0
        self._changed = asyncio.Condition()
        self._released = False
        self._over = False

    async def put(self, native: Native) -> None:
        """Keeps a message; waits first while there is no room."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._bytes < self._limit or self._released)
            self._natives.append(native)
            self._bytes += len(native.raw)
            self._changed.notify_all()

    async def messages(self) -> AsyncIterator[Native]:
        """Every message in order, once; ends behind `end`."""
        while True:
            async with self._changed:
                await self._changed.wait_for(lambda: self._natives or self._over)
                if not self._natives:
                    return
                native = self._natives.popleft()
                self._bytes -= len(native.raw)
                self._changed.notify_all()
            yield native

    async def release(self) -> None:
        """From now on `put` does not wait: the agent is ending, and what it still says is kept."""
        async with self._changed:
            self._released = True
            self._changed.notify_all()

    async def end(self) -> None:
        """Nothing more will come."""
        async with self._changed:
            self._over = True
            self._changed.notify_all()

"""What an agent has said and nobody has read yet: above a limit the agent waits."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Final

from trunkline_agentkit.protocol import Native

UNREAD_LIMIT: Final = 8 * 1024 * 1024
"""Bytes of messages that are kept before `room` waits."""


class Unread:
    """Several writers, one reader of `messages()`."""

    def __init__(self, limit: int | None = None) -> None:
        self._limit = UNREAD_LIMIT if limit is None else limit
        self._natives: deque[Native] = deque()
        self._size = 0
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._released = False
        self._ended = False

    @property
    def size(self) -> int:
        """Bytes of messages that nobody has read yet."""
        return self._size

    @property
    def ended(self) -> bool:
        return self._ended

    async def room(self) -> None:
        """Waits while there is no room for more."""
        while self._size >= self._limit and not self._released:
            self._room.clear()
            await self._room.wait()

    def keep(self, native: Native) -> None:
        """Keeps a message, room or none: in the step in which it was translated, what is sent meanwhile stands behind it."""
        self._natives.append(native)
        self._size += len(native.raw)
        self._news.set()

    async def put(self, native: Native) -> None:
        """Keeps a message, once there is room."""
        await self.room()
        self.keep(native)

    async def messages(self) -> AsyncIterator[Native]:
        """Every message in order, once; ends behind `end`."""
        while True:
            while not self._natives:
                if self._ended:
                    return
                self._news.clear()
                await self._news.wait()
            native = self._natives.popleft()
            self._size -= len(native.raw)
            self._room.set()
            yield native

    def release(self) -> None:
        """From now on nobody waits for room: the agent is ending, and what it still says is kept, however slowly it is read."""
        self._released = True
        self._room.set()

    def end(self) -> None:
        """Nothing more will come."""
        self._ended = True
        self.release()
        self._news.set()

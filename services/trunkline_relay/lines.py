"""A WebSocket that frames wait for: what is sent to a slow one is bounded, and holds nobody else up."""

import asyncio
import contextlib
from typing import Final

from aiohttp import web

from trunkline_seal.control import Base, encode

MAX_WAITING: Final = 4 * 1024 * 1024
"""Bytes that may wait for one connection; both ends keep to less by what they acknowledge to each other."""
PATIENCE_S: Final = 20.0
"""Seconds that one frame may take to be taken."""


class Line:
    """One connection at the relay. `put` never waits; `drive` sends until the line ends."""

    def __init__(self, ws: web.WebSocketResponse) -> None:
        self._ws = ws
        self._frames: asyncio.Queue[bytes | str | None] = asyncio.Queue()
        self._waiting = 0
        self._ended = False
        self.sent = 0
        """Bytes."""

    def say(self, message: Base) -> None:
        """A control frame."""
        self.put(encode(message))

    def put(self, frame: bytes | str) -> bool:
        """Whether the frame goes out: a line for which too much waits ends instead, and its end resumes by cursor."""
        if self._ended:
            return False
        if self._waiting + len(frame) > MAX_WAITING:
            self.end()
            return False
        self._waiting += len(frame)
        self._frames.put_nowait(frame)
        return True

    def end(self) -> None:
        """What was put before still goes out, as far as it is taken in time."""
        if not self._ended:
            self._ended = True
            self._frames.put_nowait(None)

    async def drive(self) -> None:
        """Sends what was put, then closes. Returns soon after `end`."""
        with contextlib.suppress(ConnectionError, TimeoutError):
            while (frame := await self._frames.get()) is not None:
                async with asyncio.timeout(PATIENCE_S):
                    await (self._ws.send_str(frame) if isinstance(frame, str) else self._ws.send_bytes(frame))
                self._waiting -= len(frame)
                self.sent += len(frame)
        self._ended = True
        with contextlib.suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                await self._ws.close()

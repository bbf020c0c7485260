"""A WebSocket that frames wait for: what is sent to a slow one is bounded, and holds nobody else up."""

import asyncio
from collections import deque
from typing import Final

from aiohttp import web

from trunkline_bus import metrics
from trunkline_seal.control import Base, encode

MAX_WAITING: Final = 4 * 1024 * 1024
"""Bytes that may wait for one connection; both ends keep to less by what they acknowledge to each other."""
OVERHEAD: Final = 64
"""Bytes that a waiting frame counts for besides its own: a flood of small ones is bounded too."""
PATIENCE_S: Final = 20.0
"""Seconds that one frame may take to be taken."""
LINGER_S: Final = 5.0
"""Seconds that what was put before the end may take to be taken, and the closing likewise."""


class Line:
    """One connection at the relay. `put` never waits; `drive` sends until the line ends. `kind` (host, device) is for metrics."""

    def __init__(self, ws: web.WebSocketResponse, transport: asyncio.BaseTransport | None, kind: str) -> None:
        self._ws = ws
        self._transport = transport
        self._kind = kind
        self._frames: deque[bytes | str] = deque()
        self._news = asyncio.Event()
        self._taken = asyncio.Event()
        self._waiting = 0
        self._ended = False
        self.sent = 0
        """Bytes."""

    @property
    def crowded(self) -> bool:
        """Whether so much waits that no more should be put that can wait elsewhere."""
        return self._waiting > MAX_WAITING * 3 // 4

    async def room(self) -> None:
        """Wait while much is waiting: whoever puts what it reads from others reads no more meanwhile."""
        while self._waiting > MAX_WAITING // 4 and not self._ended:
            self._taken.clear()
            await self._taken.wait()

    def say(self, message: Base) -> None:
        """A control frame."""
        self.put(encode(message))

    def put(self, frame: bytes | str) -> bool:
        """Whether the frame goes out: a line for which too much waits is cut instead, and its end resumes by cursor."""
        if self._ended:
            return False
        if self._waiting + len(frame) + OVERHEAD > MAX_WAITING:
            self._slow()
            return False
        self._waiting += len(frame) + OVERHEAD
        self._frames.append(frame)
        self._news.set()
        return True

    def end(self) -> None:
        """What was put before still goes out, as far as it is taken in time."""
        self._ended = True
        self._news.set()
        self._taken.set()

    async def drive(self) -> None:
        """Sends what was put, then closes. Returns soon after `end`."""
        try:
            while not self._ended:
                await self._send(ending=False)
                if not self._ended:
                    await self._news.wait()
                    self._news.clear()
            async with asyncio.timeout(LINGER_S):
                await self._send(ending=True)
                await self._ws.close()
        except TimeoutError:
            self._slow()
        except ConnectionError:
            pass  # it is gone, which whoever reads it sees
        finally:
            self.end()
            self._frames.clear()

    async def _send(self, *, ending: bool) -> None:
        while self._frames and self._ended is ending:
            frame = self._frames.popleft()
            async with asyncio.timeout(PATIENCE_S):
                await (self._ws.send_str(frame) if isinstance(frame, str) else self._ws.send_bytes(frame))
            self._waiting -= len(frame) + OVERHEAD
            self._taken.set()
            self.sent += len(frame)

    def _slow(self) -> None:
        metrics.RELAY_SLOW.labels(self._kind).inc()
        self._frames.clear()
        self.end()
        if isinstance(self._transport, asyncio.Transport):
            self._transport.abort()

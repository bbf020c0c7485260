"""How much of a terminal one viewer gets. Pure but for `send`; times are given.

What is on its way to a viewer is bounded in bytes and in time. One that falls behind gets nothing more until it has what was sent,
and then the screen as it is: it never sees what is old, and it costs no memory.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

MOST: Final = 512 * 1024
"""Bytes on their way to a viewer."""
ALWAYS: Final = 64 * 1024
"""Bytes that may be on their way however long they take."""
OLDEST_S: Final = 0.15
PAINT_EVERY_S: Final = 0.1
_STEP: Final = 16 * 1024


class Flow:
    """`send` writes a message to the viewer without waiting. `wants_painting`: it is to be asked for one now."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._sent = 0
        self._acked = 0
        self._steps: deque[tuple[int, float]] = deque()
        """(bytes sent, when) of what is on its way, about every _STEP bytes."""
        self._live = False
        self._asked: float | None = None
        self._painted_at = -PAINT_EVERY_S
        self.skipped = 0
        """How often it fell behind."""

    @property
    def waiting(self) -> bool:
        """Whether it waits for a painting."""
        return not self._live

    def show(self, data: bytes, now: float) -> None:
        """What was printed: sent, unless the viewer waits for a painting or falls behind with this."""
        if not self._live:
            return
        on_way = self._sent - self._acked
        old = bool(self._steps) and now - self._steps[0][1] > OLDEST_S
        if on_way + len(data) > MOST or (on_way > ALWAYS and old):
            self._live = False
            self.skipped += 1
            return
        self._put(data, now)

    def paint(self, data: bytes, now: float) -> None:
        """The screen: what is printed next follows it."""
        self._asked = None
        if self._sent - self._acked > MOST:
            return
        self._live = True
        self._painted_at = now
        self._put(data, now)

    def lose(self) -> None:
        """What follows has a hole before it."""
        self._live = False
        self._asked = None

    def ack(self, received: int) -> None:
        """The viewer has had so many bytes in all."""
        self._acked = max(self._acked, min(received, self._sent))
        while self._steps and self._steps[0][0] <= self._acked:
            self._steps.popleft()

    def wants_painting(self, now: float) -> bool:
        """Notes that it was asked for one."""
        if self._live or self._sent - self._acked > ALWAYS or now - self._painted_at < PAINT_EVERY_S:
            return False
        if self._asked is not None and now - self._asked < 1.0:
            return False
        self._asked = now
        return True

    def _put(self, data: bytes, now: float) -> None:
        self._sent += len(data)
        if not self._steps or self._sent - self._steps[-1][0] >= _STEP:
            self._steps.append((self._sent, now))
        self._send(data)

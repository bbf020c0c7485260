"""How much a Reader has asked for and not yet received: pure bookkeeping of overlapping pull requests.

The server does not say which request a message answers, so messages and bytes are counted over all of them. A
request ends by a status that names what it left open, or without a word where its last byte was also its limit: that
one is forgotten when all bytes have come, or when it must have expired.
"""

from typing import Final

import msgspec

OVERLAP: Final = 16
"""Requests at a time, among them those that may have ended without a word. Two or three are at work."""


class _Pull(msgspec.Struct):
    asked: int
    forget_at: float


class Pulls:
    """`window` is in messages, `max_bytes` is the limit of one request, times are seconds of one clock."""

    def __init__(self, window: int, max_bytes: int) -> None:
        self._window = window
        self.max_bytes = max_bytes
        self._open: dict[str, _Pull] = {}
        self._messages = 0
        self._bytes = 0

    def __bool__(self) -> bool:
        return bool(self._open)

    def __contains__(self, token: str) -> bool:
        return token in self._open

    def reset(self) -> None:
        self._open.clear()
        self._messages = self._bytes = 0

    def wanted(self, now: float) -> int:
        """For how many messages to ask now, 0 while enough are under way."""
        for token in [token for token, pull in self._open.items() if pull.forget_at < now]:
            del self._open[token]
        if not self._open:
            self._messages = self._bytes = 0
        if len(self._open) >= OVERLAP or not self.low:
            return 0
        return max(self._window - self._messages, 1)

    @property
    def low(self) -> bool:
        """Whether no more than half a window, or half a request's bytes, are under way."""
        few = self._messages <= self._window // 2 and self._bytes <= 2 * self.max_bytes
        return few or self._bytes <= self.max_bytes // 2

    def sent(self, token: str, asked: int, forget_at: float) -> None:
        self._open[token] = _Pull(asked, forget_at)
        self._messages += asked
        self._bytes += self.max_bytes

    def arrived(self, size: int) -> None:
        """A message of `size` bytes came, counted as the server does: subject, reply subject, headers, body."""
        self._messages -= 1
        self._bytes -= size
        if self._messages <= 0 or self._bytes <= 0:
            self.reset()

    def ended(self, token: str, left: int, left_bytes: int) -> None:
        """A request ended with `left` messages and `left_bytes` bytes unused."""
        pull = self._open.pop(token, None)
        if pull is None:
            return
        self._messages -= left
        self._bytes -= left_bytes
        if not self._open:
            self._messages = self._bytes = 0

    def too_small(self, token: str, left: int) -> bool:
        """Whether a request that hit its limit of bytes could deliver nothing: one message is larger than the limit."""
        pull = self._open.get(token)
        return pull is not None and left >= pull.asked

"""Messages cut from the socket's bytes in the step in which they came, past nats-py's stream, reading task and parser.

Those three took longer than all else that reading a log needs (measured; the version is pinned). They still get every
byte that is not a message of a direct subscription, in its order: connecting, pings, errors, other subscriptions.
"""

import asyncio
from collections.abc import Callable, Container
from typing import Final

_MAX_LINE: Final = 4096
"""Bytes of a control line, at most, as the server has it."""

_CRLF: Final = b"\r\n"

Take = Callable[[int, bytes, bytes, bytes, bytes], None]
"""Gets subscription id, subject, reply subject, block of headers and body; must not raise."""


class Intake(asyncio.Protocol):
    """Stands before `theirs`, the protocol of nats-py's stream, whose turn it is while it is not `idle`: it holds bytes
    that it has not worked off. `mine` are the ids of the subscriptions whose messages go to `take`.
    """

    def __init__(
        self, theirs: asyncio.StreamReaderProtocol, idle: Callable[[], bool], mine: Container[int], take: Take
    ) -> None:
        self._theirs = theirs
        self._idle = idle
        self._mine = mine
        self._take = take
        self._their_turn = True
        self._rest = bytearray()
        """The begin of a message, which needs `_needed` bytes to be whole, 0 where that is not known yet."""
        self._needed = 0

    def data_received(self, data: bytes) -> None:
        if self._their_turn:
            if not self._idle():
                self._theirs.data_received(data)
                return
            self._their_turn = False
        if self._rest:
            self._rest += data
            if len(self._rest) < self._needed:
                return
            data = bytes(self._rest)
            self._rest.clear()
        end = self._cut(data)
        if end < len(data):
            if self._their_turn:
                self._theirs.data_received(data[end:])
            else:
                self._rest += data[end:]

    def _cut(self, data: bytes) -> int:
        """Take whole messages off the front; returns where they end. What follows is the begin of another one, or else
        it is their turn.
        """
        at, size = 0, len(data)
        while at < size:
            line = data.find(_CRLF, at)
            if line < 0:
                self._needed = 0
                self._their_turn = size - at > _MAX_LINE
                return at
            words = data[at:line].split()
            try:
                with_headers = words[0] == b"HMSG"
                sid = int(words[2]) if with_headers or words[0] == b"MSG" else -1
                if sid not in self._mine:
                    self._their_turn = True
                    return at
                subject, reply = words[1], words[3] if len(words) == 5 + with_headers else b""
                body = line + 2 + (int(words[-2]) if with_headers else 0)
                end = line + 2 + int(words[-1])
            except (ValueError, IndexError):
                self._their_turn = True  # it knows what to do about it
                return at
            if end + 2 > size:
                self._needed = end + 2 - at
                return at
            at = end + 2
            self._take(sid, subject, reply, data[line + 2 : body], data[body:end])
        return at

    # What is not bytes is theirs.

    def eof_received(self) -> bool | None:
        return self._theirs.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._theirs.connection_lost(exc)

    def pause_writing(self) -> None:
        self._theirs.pause_writing()

    def resume_writing(self) -> None:
        self._theirs.resume_writing()

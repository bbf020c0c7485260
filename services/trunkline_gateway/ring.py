"""Frames: an event encoded once for all who watch it, and the ring of the latest ones."""

from collections import deque
from collections.abc import Callable
from typing import Final

import msgspec

from trunkline_bus import metrics
from trunkline_bus.stored import Stored
from trunkline_wire import Event, encode, subjects

MAX_BYTES: Final = 16 * 1024 * 1024
"""Of all rings of a gateway."""

_json: Final = msgspec.json.Decoder(msgspec.Raw)


class Frame(msgspec.Struct, frozen=True):
    """An event as clients get it. `sequence` is its place in EVENTS (0 for a delta), `tail` the end of its WebSocket frame,
    in which the envelope stands verbatim from `start` on. `delta` is the event itself, of a delta alone.
    """

    sequence: int
    type: str
    session: str
    cursor: str
    tail: bytes
    start: int
    delta: Event | None = None

    @property
    def raw(self) -> bytes:
        """The envelope."""
        return self.tail[self.start : -1]

    def with_cursor(self, cursor: str) -> bytes:
        """Its tail with another cursor."""
        return _head(self.type, cursor) + self.tail[self.start :]

    @property
    def size(self) -> int:
        return len(self.tail) + 200


def make_frame(sequence: int, type_: str, session: str, cursor: str, raw: bytes, delta: Event | None = None) -> Frame:
    """The frame of the event in `raw`."""
    head = _head(type_, cursor)
    return Frame(sequence, type_, session, cursor, b"%b%b}" % (head, raw), len(head), delta)


def frame_of(stored: Stored, session: str, cursor: str) -> Frame | None:
    """The frame of a stored event, readable or of a schema to come; None for what is no JSON, which no client could read."""
    try:
        _json.decode(stored.raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        metrics.GATEWAY_UNREADABLE.inc()
        return None
    return make_frame(stored.sequence, stored.type or "unknown", session, cursor, stored.raw)


def session_of(subject: str) -> str:
    """The session of an event's subject; empty for a subject that is none of ours."""
    parsed = subjects.parse(subject)
    return "" if parsed is None else parsed.session


def _head(type_: str, cursor: str) -> bytes:
    return f'{type_}","cursor":"{cursor}","payload":'.encode()


Narrow = Callable[[str], str]
"""Binds a cursor to what a subscription leaves out."""


class WsFrames:
    """Renders frames for one WebSocket subscription: all but its name, and a cursor that is narrower, is shared with the others."""

    def __init__(self, subscription: str, narrow: Narrow | None = None) -> None:
        self._head = b'{"type":"event","subscription":' + encode(subscription) + b',"event":"'
        self._narrow = narrow

    def event(self, frame: Frame) -> bytes:
        if self._narrow is not None:
            return self._head + frame.with_cursor(self._narrow(frame.cursor))
        return self._head + frame.tail

    def gap(self, payload: bytes) -> bytes:
        return self._head + b'gap","payload":' + payload + b"}"


class SseFrames:
    """Renders frames as server-sent events; `id` is the cursor, which browsers send back as Last-Event-ID."""

    def __init__(self, narrow: Narrow | None = None) -> None:
        self._narrow = narrow

    def event(self, frame: Frame) -> bytes:
        return b"".join(
            (
                b"id: ",
                (frame.cursor if self._narrow is None else self._narrow(frame.cursor)).encode(),
                b"\nevent: ",
                frame.type.encode(),
                b"\ndata: ",
                # A line break in JSON is always white space.
                frame.raw.replace(b"\n", b" ").replace(b"\r", b" "),
                b"\n\n",
            )
        )

    def gap(self, payload: bytes) -> bytes:
        return b"event: gap\ndata: " + payload + b"\n\n"


class Rings:
    """The rings of all channels. They share MAX_BYTES: the oldest frame of all goes first, whoever wants it reads the stream."""

    def __init__(self) -> None:
        self._order: deque[Ring] = deque()
        self._bytes = 0

    def open(self, floor: int) -> "Ring":
        """A ring without frames, which has all facts above `floor` from now on."""
        return Ring(self, floor)

    def close(self, ring: "Ring") -> None:
        """Let go of a ring's frames."""
        self._bytes -= ring.clear()
        self._order = deque(one for one in self._order if one is not ring)

    def added(self, ring: "Ring", size: int) -> None:
        """A frame is in a ring: what is too much now goes, but not the frame itself."""
        self._order.append(ring)
        self._bytes += size
        while self._bytes > MAX_BYTES and len(self._order) > 1:
            self._bytes -= self._order.popleft().pop()


class Ring:
    """The latest facts of a channel: all of them above `floor`."""

    def __init__(self, rings: Rings, floor: int) -> None:
        self.floor = floor
        self._rings = rings
        self._frames: deque[Frame] = deque()

    def append(self, frame: Frame) -> None:
        self._frames.append(frame)
        self._rings.added(self, frame.size)

    def pop(self) -> int:
        """Take the oldest frame out; its size."""
        oldest = self._frames.popleft()
        self.floor = oldest.sequence
        return oldest.size

    def clear(self) -> int:
        """Take all frames out; their size."""
        size = sum(frame.size for frame in self._frames)
        self._frames.clear()
        return size

    def above(self, sequence: int) -> list[Frame] | None:
        """The facts above `sequence`; None where the ring no longer has all of them."""
        if sequence < self.floor:
            return None
        newer: list[Frame] = []
        for frame in reversed(self._frames):
            if frame.sequence <= sequence:
                break
            newer.append(frame)
        newer.reverse()
        return newer

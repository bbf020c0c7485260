"""A message as a stream holds it, and how the server's three ways of handing one over are read."""

import base64
import datetime as dt
from typing import Any, Final, Protocol

import msgspec

from trunkline_wire import subjects
from trunkline_wire.codec import decode_event
from trunkline_wire.events import Event

Headers = dict[str, str]

_STATUS_LINE: Final = b"NATS/1.0"
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class Answer(Protocol):
    """A message of the server's, in whichever form the client hands it over."""

    @property
    def headers(self) -> Headers | None: ...
    @property
    def data(self) -> bytes: ...


class Stored(msgspec.Struct, frozen=True, gc=False):
    """One stored message: `sequence` in `stream`, `type` and `id` from its headers, `raw` its body, `time_ns` since 1970."""

    stream: str
    sequence: int
    subject: str
    type: str | None
    id: str | None
    headers: Headers | None
    raw: bytes
    time_ns: int

    def event(self) -> Event:
        """The event in it; `bad_event` if it is none."""
        return decode_event(self.raw)

    @property
    def time(self) -> dt.datetime:
        """When the server stored it (UTC, whole microseconds)."""
        return _EPOCH + dt.timedelta(microseconds=self.time_ns // 1000)

    @property
    def session(self) -> str | None:
        """The session its subject names, None for a subject without one."""
        parsed = subjects.parse(self.subject)
        return parsed.session if parsed else None


def make(stream: str, sequence: int, subject: str, headers: Headers | None, raw: bytes, time_ns: int) -> Stored:
    if headers is None:
        return Stored(stream, sequence, subject, None, None, None, raw, time_ns)
    type_, id_ = headers.get(subjects.HEADER_TYPE), headers.get(subjects.HEADER_ID)
    return Stored(stream, sequence, subject, type_, id_, headers, raw, time_ns)


def from_leader(stream: str, message: dict[str, Any]) -> Stored:
    """From the `message` of an answer to STREAM.MSG.GET."""
    block, body = message.get("hdrs"), message.get("data")
    headers = parse_headers(base64.b64decode(block)) if block else None
    raw = base64.b64decode(body) if body else b""
    return make(stream, message["seq"], message["subject"], headers, raw, parse_nanoseconds(message["time"]))


def from_direct(message: Answer) -> Stored | None:
    """From an answer to DIRECT.GET; None where the server has no such message."""
    headers: Headers = dict(message.headers or {})
    if "Nats-Sequence" not in headers:
        return None
    stream, subject = headers.pop("Nats-Stream"), headers.pop("Nats-Subject")
    sequence, time = int(headers.pop("Nats-Sequence")), parse_nanoseconds(headers.pop("Nats-Time-Stamp"))
    for name in ("Nats-Last-Sequence", "Nats-Num-Pending", "Nats-UpTo-Sequence"):
        headers.pop(name, None)
    return make(stream, sequence, subject, headers or None, message.data, time)


def parse_headers(block: bytes) -> Headers | None:
    """The headers of a raw block (`NATS/1.0`, then one `Name: value` a line), None where there are none."""
    return header_lines(block.removeprefix(_STATUS_LINE).decode("utf-8", "replace")) or None


def header_lines(text: str) -> Headers:
    """One `Name: value` a line; of a repeated name the last counts."""
    found: Headers = {}
    for line in text.split("\r\n"):
        name, colon, value = line.partition(":")
        if colon:
            found[name.strip()] = value.strip()
    return found


def parse_nanoseconds(time: str) -> int:
    """RFC 3339 with up to nine digits of a second, as the server writes it, in nanoseconds since 1970."""
    whole, _, rest = time.partition(".")
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
    zone = rest[len(digits) :] if rest else ""
    moment = dt.datetime.fromisoformat(whole + zone)
    seconds = (moment - _EPOCH) // dt.timedelta(seconds=1)
    return seconds * 1_000_000_000 + int(digits.ljust(9, "0") or 0)

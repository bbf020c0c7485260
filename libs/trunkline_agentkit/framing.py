"""NDJSON: framing without any limit on a line, and reading of what was meant to be JSON.

`LineSplitter` is pure: bytes in, whole lines out. It keeps the pieces of an unfinished line in a list and joins them
once, so that a line of 64 MB costs its own size and linear time.
"""

import json
from collections.abc import Iterator
from typing import Any, Final, cast

import msgspec

from trunkline_wire import decode_json, encode, replace_lone_surrogates

NOT_JSON: Final = "not_json"
NOT_AN_OBJECT: Final = "not_an_object"


class LineSplitter:
    """Cuts a byte stream into lines at LF; a CR before it goes too, blank lines are dropped."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    @property
    def pending(self) -> int:
        """Bytes of the line that has not ended yet."""
        return self._size

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that `data` completes, without their line ends."""
        *ended, rest = data.split(b"\n")
        lines: list[bytes] = []
        for piece in ended:
            line = b"".join([*self._parts, piece]) if self._parts else piece
            self._parts.clear()
            _keep(lines, line)
        self._size = len(rest) if ended else self._size + len(rest)
        if rest:
            self._parts.append(rest)
        return lines

    def end(self) -> list[bytes]:
        """The last line, where the stream ended without a line end."""
        lines: list[bytes] = []
        _keep(lines, b"".join(self._parts))
        self._parts.clear()
        self._size = 0
        return lines


def _keep(lines: list[bytes], line: bytes) -> None:
    line = line.removesuffix(b"\r")
    if line.strip():
        lines.append(line)


def frame(message: object) -> bytes:
    """One line: the JSON of `message` (or the JSON text itself, if it is bytes) and a line end.

    Raises ValueError for a text with a line end inside, which would be two lines.
    """
    line = message if isinstance(message, bytes) else encode(message)
    if b"\n" in line or b"\r" in line:
        raise ValueError("a message of one line must not hold a line end")
    return line + b"\n"


class Decoded(msgspec.Struct, frozen=True, kw_only=True):
    """`raw` is always JSON, fit for an event's `native`; `message` is None where the line was no JSON object."""

    raw: bytes
    message: dict[str, Any] | None = None
    reason: str | None = None


def decode_line(line: bytes) -> Decoded:
    """Reads a line as JSON, repairing what JavaScript writes and strict readers refuse (lone surrogates, broken UTF-8)."""
    for candidate in _readings(line):
        try:
            value = decode_json(candidate)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        if isinstance(value, dict):
            return Decoded(raw=candidate, message=cast("dict[str, Any]", value))
        return Decoded(raw=candidate, reason=NOT_AN_OBJECT)
    text = line.decode(errors="replace")
    return Decoded(raw=json.dumps(text, ensure_ascii=False).encode(), reason=NOT_JSON)


def _readings(line: bytes) -> Iterator[bytes]:
    """As it is; else repaired. Lazy: a repair reads the whole line, and nearly no line needs one."""
    yield line
    if b"\\u" in line:
        yield replace_lone_surrogates(line)
    yield replace_lone_surrogates(line.decode(errors="replace").encode())


def kind_of(message: dict[str, Any] | None) -> str:
    """A message's type in the agent's words: `type` and `subtype`, or a JSON-RPC method; `?` where it says none."""
    if message is None:
        return "?"
    for name in ("type", "method"):
        value = message.get(name)
        if isinstance(value, str):
            subtype = message.get("subtype")
            return f"{value}/{subtype}" if isinstance(subtype, str) else value
    return "?"

"""asciinema recordings (asciicast v2): a header, then `[seconds, code, data]` a line. Pure.

https://docs.asciinema.org/manual/asciicast/v2/
"""

import json
import shlex
from collections.abc import Iterable, Iterator
from typing import Any, Final, cast

from trunkline_adapters.pty.native import resized, tick, typed
from trunkline_agentkit.fields import Obj, as_obj, obj, text, whole
from trunkline_agentkit.recorder import Recorded
from trunkline_wire import decode_json, encode
from trunkline_wire.codec import BROKEN

_AFTERWARDS_S: Final = 3600.0
"""Seconds for which a recording's last screen stands."""
_BURST: Final = 4 * 1024 * 1024
_RATE: Final = 64 * 1024
"""Characters of output that are recorded at once, and in a second: a program that prints without end must not fill the log."""


class Cast:
    """What a terminal has shown, as a recording that begins at `at`; `take` gives it and begins the next one.

    Output above what may be kept is left out; a mark says how much.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._begin = 0.0
        self._allowed: float = _BURST
        self._counted_at = 0.0
        self._left_out = 0
        self.size = 0

    def add(self, at: float, code: str, data: str) -> None:
        """`code` is `o` for output, `i` for input, `r` for a new size (`80x24`)."""
        if code == "o" and not self._allows(at, len(data)):
            self._left_out += len(data)
            return
        self._mark(at)
        self._add(at, code, data)

    def _allows(self, at: float, length: int) -> bool:
        self._allowed = min(_BURST, self._allowed + max(0.0, at - self._counted_at) * _RATE)
        self._counted_at = max(self._counted_at, at)
        if length > self._allowed:
            return False
        self._allowed -= length
        return True

    def _mark(self, at: float) -> None:
        if self._left_out:
            left_out, self._left_out = self._left_out, 0
            self._add(at, "m", f"{left_out} characters are left out")

    def _add(self, at: float, code: str, data: str) -> None:
        if not self._lines:
            self._begin = at
        line = json.dumps([round(max(0.0, at - self._begin), 4), code, data], ensure_ascii=False)
        self._lines.append(line)
        self.size += len(line) + 1

    def take(self, columns: int, rows: int) -> str | None:
        """None where there is nothing to tell."""
        self._mark(self._counted_at)
        if not self._lines:
            return None
        header = json.dumps({"version": 2, "width": columns, "height": rows})
        lines, self._lines, self.size = self._lines, [], 0
        return "\n".join([header, *lines, ""])


def is_cast(first: bytes) -> bool:
    """Whether a file with this first line is one. Raises ValueError for a version that is not understood."""
    try:
        header = as_obj(decode_json(first))
    except BROKEN:
        return False
    version = whole(header, "version")
    if version is None or "from" in header:
        return False
    if version != 2:
        raise ValueError(f"it is of version {version} of asciinema's format: convert it to version 2")
    return True


def recorded(lines: Iterable[bytes]) -> Iterator[Recorded]:
    """A recording as what a session would have heard and typed. Raises ValueError naming the line that is none.

    Enter typed while the program waits begins a turn; so a recording by hand has turns, too.
    """
    at = 0.0
    number = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entry = decode_json(line)
        except BROKEN as error:
            raise ValueError(f"line {number}: not JSON: {error}") from error
        if number == 1:
            yield _line(number, "agent", 0.0, _opened(as_obj(entry)))
            continue
        at, code, data = _event(entry, number)
        match code:
            case "o":
                yield _line(number, "agent", at, {"type": "output", "at": at, "data": data})
            case "i":
                yield _line(number, "host", at, typed(data, at, begins=data.endswith(("\r", "\n"))))
            case "r":
                columns, _, rows = data.partition("x")
                if columns.isdecimal() and rows.isdecimal():
                    yield _line(number, "host", at, resized(int(columns), int(rows), at))
            case _:
                pass  # a mark of whoever recorded it
    yield _line(number, "host", at, tick(at + _AFTERWARDS_S))


def _event(entry: Any, number: int) -> tuple[float, str, str]:
    if isinstance(entry, list):
        match cast("list[Any]", entry):
            case [int() | float() as at, str() as code, str() as data]:
                return float(at), code, data
            case _:
                pass
    raise ValueError(f"line {number}: not an event of an asciinema recording")


def _opened(header: Obj) -> Obj:
    command = text(header, "command") or text(obj(header, "env"), "SHELL") or ""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    columns, rows = whole(header, "width") or 80, whole(header, "height") or 24
    return {"type": "opened", "at": 0.0, "columns": columns, "rows": rows, "command": words}


def _line(number: int, speaker: str, at: float, message: Obj) -> Recorded:
    return Recorded(number=number, speaker=speaker, t=at, raw=encode(message))

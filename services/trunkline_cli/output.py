"""Writing for people and for programs: streamed text, whole lines, tables, NDJSON."""

import datetime as dt
import json
import sys
from collections.abc import Sequence
from typing import Any, Final, TextIO

from trunkline_wire import TrunklineError, decode_json, encode, parse_time

Style = str
DIM: Final = "2"
BOLD: Final = "1"
RED: Final = "31"
GREEN: Final = "32"
YELLOW: Final = "33"
CYAN: Final = "36"


class Screen:
    """Streamed text and lines about it. On a terminal both share it; otherwise the text alone goes to the output.

    So `trunkline run … > file` keeps what the agent said, and the notes stay visible on the error output. `apart`
    keeps notes off the output on a terminal too: for NDJSON.
    """

    def __init__(self, out: TextIO | None = None, notes: TextIO | None = None, *, apart: bool = False) -> None:
        self._out: TextIO = sys.stdout if out is None else out
        self.tty = self._out.isatty()
        self._notes: TextIO = self._out if self.tty and not apart else (sys.stderr if notes is None else notes)
        self._colour = self._notes.isatty()
        self._open = False

    def stream(self, text: str) -> None:
        """Go on with a text; it may end anywhere."""
        if text:
            self._out.write(text)
            self._out.flush()
            self._open = not text.endswith("\n")

    def end(self) -> None:
        """End the line that streaming left open."""
        if self._open:
            self._out.write("\n")
            self._out.flush()
            self._open = False

    def line(self, text: str, style: Style | None = None) -> None:
        """A line about what happens, on a line of its own."""
        self.end()
        self._notes.write(f"\x1b[{style}m{text}\x1b[0m\n" if style and self._colour else f"{text}\n")
        self._notes.flush()

    def ask(self, text: str) -> None:
        """A prompt for input, without a line's end."""
        self.end()
        self._notes.write(f"\x1b[{CYAN}m{text}\x1b[0m" if self._colour else text)
        self._notes.flush()


def ndjson(value: Any, out: TextIO | None = None) -> None:
    """One JSON value on a line of its own, flushed: programs read it as it comes."""
    target: TextIO = out or sys.stdout
    target.write(f"{encode(value).decode()}\n")
    target.flush()


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, title: str | None = None) -> None:
    """A table for a terminal; lines with tabs, without a head, for anything else."""
    if not sys.stdout.isatty():
        for row in rows:
            sys.stdout.write("\t".join(cell.replace("\t", " ").replace("\n", " ") for cell in row) + "\n")
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(title=title, box=None, pad_edge=False, header_style="bold")
    for column in columns:
        drawn.add_column(column, overflow="fold")
    for row in rows:
        drawn.add_row(*(Text(cell) for cell in row))
    Console().print(drawn)


def short(text: str, limit: int = 100) -> str:
    """The first line of a text, cut to `limit` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def safe(text: str) -> str:
    """A text of an agent without the control characters that could steer the terminal; tabs and line ends stay."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)


def parse_json(text: str, **default: Any) -> Any:
    """The JSON value in `text`. Without `default=…` TrunklineError `bad_params` for anything else."""
    try:
        return decode_json(text)
    except ValueError as error:
        if "default" in default:
            return default["default"]
        raise TrunklineError("bad_params", f"{short(text)!r} is not JSON: {error}") from error


def pretty(value: Any, indent: str = "") -> str:
    """JSON for people: indented, and free of control characters."""
    text = json.dumps(decode_json(encode(value)), indent=2, ensure_ascii=False)
    return "\n".join(f"{indent}{line}" for line in safe(text).splitlines())


def ago(time: str | None) -> str:
    """How long ago a time (RFC 3339) was: `12 s`, `5 min`, `3 h`, `9 d`."""
    if time is None:
        return ""
    seconds = max(0.0, (dt.datetime.now(dt.UTC) - parse_time(time)).total_seconds())
    for limit, unit, name in ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit:
            return f"{int(seconds // unit)} {name}"
    return f"{int(seconds // 86_400)} d"

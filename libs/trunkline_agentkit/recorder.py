"""Records what an agent and its host say to each other, verbatim, one JSON a line: `{"from", "t", "msg"}`.

`from` is `agent`, `host`, `stderr`, `meta` or `exit`; `t` is seconds since the recording began. The same form as the recorded
cases of the tests, so that a recording can become one. It is written by this process alone and holds whatever the agent says:
keep it as private as the log.
"""

import os
import time
from pathlib import Path
from typing import Any, BinaryIO, Literal

import msgspec

from trunkline_agentkit.framing import decode_line
from trunkline_wire import encode

Speaker = Literal["agent", "host", "stderr", "meta", "exit"]


class Recorder:
    """Appends to `path`. A file over `limit` bytes becomes `<path>.1`, the one before it is dropped."""

    def __init__(self, path: Path, *, limit: int = 256 * 1024 * 1024) -> None:
        self._path = path
        self._limit = limit
        self._begin = time.monotonic()
        self._file = _open(path)
        self._size = self._file.tell()

    def line(self, speaker: Speaker, line: bytes) -> None:
        """A line as it was on the wire. What is not JSON is kept as text; JSON that is laid out in lines becomes one."""
        decoded = decode_line(line)
        self._write(speaker, decoded.raw.replace(b"\n", b" "))

    def note(self, speaker: Speaker, message: Any) -> None:
        self._write(speaker, encode(message))

    def close(self) -> None:
        self._file.close()

    def _write(self, speaker: Speaker, message: bytes) -> None:
        entry = b'{"from":"%b","t":%.3f,"msg":%b}\n' % (speaker.encode(), time.monotonic() - self._begin, message)
        if self._size and self._size + len(entry) > self._limit:
            self._file.close()
            self._path.replace(self._path.with_name(self._path.name + ".1"))
            self._file = _open(self._path)
            self._size = 0
        self._file.write(entry)
        self._file.flush()
        self._size += len(entry)


def _open(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600), "ab")


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a recording; `raw` is the message as JSON."""

    number: int
    speaker: str
    t: float
    raw: bytes


class _Line(msgspec.Struct, kw_only=True):
    speaker: str = msgspec.field(name="from")
    t: float = 0.0
    msg: msgspec.Raw = msgspec.Raw(b"null")


def read_recording(path: Path) -> list[Recorded]:
    """The lines of a recording, numbered from 1. Raises ValueError naming the line that is none."""
    lines: list[Recorded] = []
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                entry = msgspec.json.decode(line, type=_Line)
            except msgspec.DecodeError as error:
                raise ValueError(f"{path}, line {number}: not a line of a recording: {error}") from error
            lines.append(Recorded(number=number, speaker=entry.speaker, t=entry.t, raw=bytes(entry.msg)))
    return lines

"""A program's own log, where its profile knows of one: what it has said, exact, for a screen shows no more of it than fits.

Nothing is asked of the program. Its file is known by the prompt in it: where two hold the same one, nobody knows whose they are, and
neither is read.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

from trunkline_adapters.pty.profiles import Log, Said
from trunkline_agentkit.fields import Obj, as_obj
from trunkline_wire import decode_json
from trunkline_wire.codec import BROKEN

LOOK_EVERY_S: Final = 0.25
"""Seconds between two looks into the files."""
_AT_ONCE: Final = 8 * 1024 * 1024
"""Bytes that are read at a time; a longer line is left out."""


class LogReader:
    """Follows the log of one terminal's program. `environment` is the program's. Blocks."""

    def __init__(self, log: Log, environment: Mapping[str, str]) -> None:
        self._log = log
        self._places = [found for pattern in log.files if (found := _place(pattern, environment)) is not None]
        """Directories, each with a pattern of paths in it."""
        self._wanted = ""
        """The prompt that is looked for."""
        self._read: dict[Path, int] = {}
        """Each file that may be it, and up to where it was read."""
        self._told: Any = None
        """The name of the message that was told last."""
        self._looked_at = -LOOK_EVERY_S

    def begin(self, said: str) -> None:
        """A prompt is about to be entered."""
        self._wanted = _bare(said)
        self._read = {path: _size(path) for path in self._files()}

    def news(self, at: float) -> list[str]:
        """What the program has said since, a text for each of its messages; nothing if that was looked up just before `at`, in seconds."""
        if at < self._looked_at + LOOK_EVERY_S:
            return []
        self._looked_at = at
        if self._wanted:
            self._find()
        return [] if self._wanted else [text for path in self._read for text in self._said_in(path)]

    def _find(self) -> None:
        """Looks for the file that holds the prompt, and leaves it with what follows that."""
        found = {path: end for path in self._files() if (end := self._end_of_prompt(path)) is not None}
        if len(found) == 1:
            self._wanted, self._read = "", found

    def _files(self) -> list[Path]:
        return [path for directory, pattern in self._places for path in directory.glob(pattern)]

    def _end_of_prompt(self, path: Path) -> int | None:
        begin = self._read.setdefault(path, 0)
        if _size(path) <= begin:
            return None
        ends = [end for end, line in _lines(path, begin) if self._wanted == _bare(said_by(self._log.user, line) or "")]
        return ends[-1] if ends else None

    def _said_in(self, path: Path) -> Iterator[str]:
        for end, line in _lines(path, self._read[path]):
            self._read[path] = end
            name = _at(line, self._log.agent.id) if self._log.agent.id else None
            if name is not None and name == self._told:
                continue
            if said := said_by(self._log.agent, line):
                self._told = name
                yield said


def said_by(who: Said, line: Obj) -> str | None:
    """What a line has as somebody's text; None for a line that is of something else."""
    if any(_at(line, path) != value for path, value in who.where.items()):
        return None
    found = _at(line, who.text)
    if isinstance(found, list):
        parts = (as_obj(part).get("text") for part in cast("list[Any]", found))
        found = "".join(part for part in parts if isinstance(part, str))
    return found.strip() if isinstance(found, str) else None


def _at(line: Obj, path: str) -> Any:
    """What stands at `a.b.c`."""
    found: Any = line
    for name in path.split("."):
        found = as_obj(found).get(name)
    return found


def _lines(path: Path, begin: int) -> Iterator[tuple[int, Obj]]:
    """The whole lines from a byte on that are JSON objects, each with where it ends."""
    try:
        with path.open("rb") as file:
            file.seek(begin)
            read = file.read(_AT_ONCE)
    except OSError:
        return
    end = begin
    for line in read.splitlines(keepends=True):
        whole = line.endswith(b"\n")
        if not whole and len(read) < _AT_ONCE:
            return  # it is being written
        end += len(line)
        try:
            found = as_obj(decode_json(line)) if whole else {}
        except BROKEN:
            found = {}
        yield end, found


def _bare(said: str) -> str:
    return "".join(said.split())


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _place(pattern: str, environment: Mapping[str, str]) -> tuple[Path, str] | None:
    """What `~/…` and `$NAME/…` stand for; None where the variable is not set."""
    root, _, rest = pattern.partition("/")
    base = environment.get("HOME" if root == "~" else root.removeprefix("$"))
    return (Path(base), rest) if base else None

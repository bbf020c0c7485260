"""The worker processes of one host, as each has written itself down: `<home>/host/workers/<worker>.json`.

A worker is written down before it locks its first session and until it has let the last one go: so whoever finds a
lock held by another process can tell a living owner from what a dead one left.
"""

import os
from pathlib import Path
from typing import Final

import msgspec

from trunkline_agentkit.sweep import Identity, is_running

_SUFFIX: Final = ".json"


class WorkerMark(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's process: `started` is seconds since the epoch."""

    worker: str
    pid: int
    started: float

    @property
    def identity(self) -> Identity:
        return self.pid, self.started

    @property
    def runs(self) -> bool:
        """Whether that very process exists; a stopped one does."""
        return is_running(self.identity)


def enter(home: Path, mark: WorkerMark) -> None:
    """Writes a worker down."""
    folder = _folder(home)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    target = folder / f"{mark.worker}{_SUFFIX}"
    beside = target.with_suffix(".new")
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(msgspec.json.encode(mark))
    beside.replace(target)


def leave(home: Path, worker: str) -> None:
    """Crosses a worker out."""
    (_folder(home) / f"{worker}{_SUFFIX}").unlink(missing_ok=True)


def living(home: Path) -> list[WorkerMark]:
    """The workers whose processes exist; those of the others are crossed out."""
    found: list[WorkerMark] = []
    for path in _folder(home).glob(f"*{_SUFFIX}"):
        try:
            mark = msgspec.json.decode(path.read_bytes(), type=WorkerMark)
        except (OSError, msgspec.MsgspecError):
            continue
        if mark.runs:
            found.append(mark)
        else:
            path.unlink(missing_ok=True)
    return found


def _folder(home: Path) -> Path:
    return home / "host" / "workers"

"""A session's place on its host: `<home>/host/sessions/<sid>/` with the lock, the record of its agent, the recording.

The lock is a `flock` on an open file that the agent inherits: it is free when the worker and the agent are both gone, so
whoever holds it knows that no agent of the session runs. The record survives both and says what to look for.
"""

import asyncio
import fcntl
import os
import shutil
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from trunkline_agentkit.environment import SESSION_MARK
from trunkline_agentkit.process import Registration
from trunkline_agentkit.sweep import end_family, end_group, is_running
from trunkline_wire import TrunklineError
from trunkline_wire.ids import check_id, is_id

_RECORD: Final = "session.json"


class WorkerMark(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's process: `started` is seconds since the epoch."""

    worker: str
    pid: int
    started: float


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """`session.json`. `worker` is who owns the session now; None: nobody, and `cmd_seq` is what its log has read."""

    session: str
    adapter: str
    cwd: str
    worker: WorkerMark | None = None
    incarnation: str | None = None
    """Of the agent that runs or is about to; written before it starts."""
    agent: Registration | None = None
    cmd_seq: int = 0
    closed: bool = False


class Place:
    """The directory of one session. Its methods block for a moment: they are small files on a local disk."""

    def __init__(self, home: Path, session: str) -> None:
        self.session = check_id(session, "ses")
        self.path = home / "host" / "sessions" / session
        self._descriptor: int | None = None
        self._record: Record | None = None

    @property
    def lock_path(self) -> Path:
        return self.path / "lock"

    @property
    def native_log(self) -> Path:
        return self.path / "native.jsonl"

    @property
    def lock_descriptor(self) -> int:
        """The open lock, for the agent to inherit. Raises TrunklineError `internal` where it is not held."""
        if self._descriptor is None:
            raise TrunklineError("internal", f"the lock of {self.session!r} is not held")
        return self._descriptor

    def lock(self) -> bool:
        """Takes the lock; False where another process holds it."""
        if self._descriptor is not None:
            return True
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self.lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    def unlock(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    @property
    def record(self) -> Record | None:
        """What is written down; None for a session that is not of this host, or whose record is damaged."""
        if self._record is None:
            try:
                self._record = msgspec.json.decode((self.path / _RECORD).read_bytes(), type=Record)
            except (OSError, msgspec.MsgspecError):
                return None
        return self._record

    def write(self, record: Record) -> None:
        """Replaces the record in one step: a reader sees the old or the new one."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        target = self.path / _RECORD
        beside = target.with_name(f".{_RECORD}.{os.getpid()}")
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(msgspec.json.encode(record))
        beside.replace(target)
        self._record = record

    async def change(self, **fields: Any) -> None:
        """Writes the record with other values in some fields."""
        record = self.record
        if record is None:
            raise TrunklineError("internal", f"session {self.session!r} has no record on this host")
        await asyncio.to_thread(self.write, replace(record, **fields))

    async def end_remains(self) -> int:
        """Ends what a dead worker left of the session's agent: its group, then everything marked; how many there were."""
        record = self.record
        marks = {SESSION_MARK: self.session}
        if record is not None and record.agent is not None:
            await end_group(record.agent.pgid, record.agent.started, marks)
        return await end_family(marks, lock=self.lock_path)

    def remove(self) -> None:
        """Forgets the session on this host."""
        self.unlock()
        shutil.rmtree(self.path, ignore_errors=True)


def owner_runs(record: Record) -> bool:
    """Whether the worker that the record names still runs."""
    return record.worker is not None and is_running((record.worker.pid, record.worker.started))


def places(home: Path) -> list[Place]:
    """The places of all sessions of this host."""
    root = home / "host" / "sessions"
    if not root.is_dir():
        return []
    return [Place(home, entry.name) for entry in sorted(root.iterdir()) if is_id(entry.name, "ses")]

"""A session's place on its host: `<home>/host/sessions/<sid>/` with the lock, the record of its agent, the recording.

The lock is a `flock` on an open file that the agent inherits: it is free when the worker and the agent are both gone, so
whoever holds it knows that no agent of the session runs. The agent's holder keeps it until all of the agent's descendants
are gone. The record survives them and says what to look for.

Only who has the lock may end what bears the session's marks: it may be the agent of a worker that was quicker.
"""

import asyncio
import fcntl
import logging
import os
import shutil
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from trunkline_agentkit.environment import SESSION_MARK
from trunkline_agentkit.process import Registration
from trunkline_agentkit.sweep import end_family, end_group, end_processes, holders, holds, is_running
from trunkline_agentkit.workers import WorkerMark, living
from trunkline_wire import TrunklineError
from trunkline_wire.ids import check_id, is_id

log = logging.getLogger(__name__)

_RECORD: Final = "session.json"
_HOLDER_WITHIN: Final = 3.0
"""Seconds that the holder of a dead worker's agent may take to end all of it."""
_LOCK_WITHIN: Final = 6.0
_LOOK: Final = 0.05


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """`session.json`. `worker` is who owns the session now; None: nobody, and `cmd_seq` is what its log has read."""

    session: str
    adapter: str
    cwd: str
    worker: WorkerMark | None = None
    incarnation: str | None = None
    """Of the agent that runs or is about to; written before it starts."""
    agent: Registration | None = None
    held: Registration | None = None
    """An agent that goes on without its worker, and its holder."""
    cmd_seq: int = 0
    closed: bool = False


class Place:
    """The directory of one session. Its methods block for a moment: they are small files on a local disk."""

    def __init__(self, home: Path, session: str) -> None:
        self.session = check_id(session, "ses")
        self.home = home
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
            current = os.path.samestat(os.fstat(descriptor), self.lock_path.stat())
        except (BlockingIOError, FileNotFoundError):
            current = False
        if not current:  # it is another's, or was removed meanwhile
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    async def seize(self, within: float = _LOCK_WITHIN) -> bool:
        """Takes the lock, and ends what a dead worker left of the session. False where a living worker has it.

        What the record says is read anew. Raises TrunklineError `fenced` where the lock does not become free.
        """
        loop = asyncio.get_running_loop()
        begin = loop.time()
        while not self.lock():
            workers = await asyncio.to_thread(living, self.home)
            if any([await asyncio.to_thread(holds, worker.pid, self.lock_path) for worker in workers]):
                return False
            waited = loop.time() - begin
            if waited > within:
                raise TrunklineError("fenced", f"the lock of {self.session!r} is held by a process that can't be ended")
            if waited > _HOLDER_WITHIN or not await asyncio.to_thread(self._holder_runs):
                found = await asyncio.to_thread(holders, self.lock_path)
                owners = {worker.pid for worker in workers}
                await end_processes(identity for identity in found if identity[0] not in owners)
            await asyncio.sleep(_LOOK)
        self._record = None
        try:
            await self._end_remains()
        except BaseException:
            self.unlock()
            raise
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

    def _holder_runs(self) -> bool:
        agent = self.record.agent if self.record is not None else None
        return agent is not None and agent.holder is not None and is_running(agent.holder)

    async def _end_remains(self) -> None:
        """Ends what a dead worker left of the session's agent: its group, then everything marked."""
        record = self.record
        if record is None or record.worker is None:
            return  # nothing was ever started, or the last owner let go in order
        marks = {SESSION_MARK: self.session}
        if record.agent is not None:
            await end_group(record.agent.pgid, record.agent.started, marks)
        ended = await end_family(marks)
        if ended:
            log.warning("remains_ended", extra={"session": self.session, "processes": ended})

    def remove(self) -> None:
        """Forgets the session on this host."""
        self.unlock()
        shutil.rmtree(self.path, ignore_errors=True)


def owner_runs(record: Record) -> bool:
    """Whether the worker that the record names still runs."""
    return record.worker is not None and record.worker.runs


def places(home: Path) -> list[Place]:
    """The places of all sessions of this host."""
    root = home / "host" / "sessions"
    if not root.is_dir():
        return []
    return [Place(home, entry.name) for entry in sorted(root.iterdir()) if is_id(entry.name, "ses")]

"""Workers of this host that hang: stopped, or stuck, or cut off from the log while others are not.

Such a worker owns its sessions for ever: its process exists, so their locks are held, and nobody may start another agent
in them. A worker says in `trunk_workers` every ten seconds that it is there. Who has not been there for a minute is ended
by the supervisor or another worker of its host; its agents end with it, the locks become free, and its sessions are
taken over.
"""

import asyncio
import contextlib
import logging
import os
import signal
from pathlib import Path
from typing import Final

from trunkline_agentkit.workers import WorkerMark, living
from trunkline_bus import kv
from trunkline_bus.connection import Bus
from trunkline_wire import TrunklineError, subjects

log = logging.getLogger(__name__)

ABSENT_FOR: Final = 30.0
"""Seconds without a registration, which itself outlives the last sign of life by 30 s. All of it has to be seen: after an
outage of the log everybody is absent for a moment."""
_LOOK_EVERY: Final = 5.0


class HungWorkers:
    """`run` watches the workers of the host, but for one in this process, until it is cancelled."""

    def __init__(self, bus: Bus, home: Path, *, absent_for: float = ABSENT_FOR) -> None:
        self._bus = bus
        self._home = home
        self._absent_for = absent_for
        self._absent_since: dict[str, float] = {}

    async def run(self) -> None:
        while True:
            await asyncio.sleep(min(_LOOK_EVERY, self._absent_for / 3))
            others = [mark for mark in await asyncio.to_thread(living, self._home) if mark.pid != os.getpid()]
            try:
                present = {entry.key for entry in await kv.entries(self._bus, subjects.KV_WORKERS)} if others else set()
            except TrunklineError:
                self._absent_since.clear()
                continue
            for mark in self._long_absent(others, present):
                log.error("hung_worker_ended", extra={"worker": mark.worker, "pid": mark.pid})
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(mark.pid, signal.SIGKILL)

    def _long_absent(self, others: list[WorkerMark], present: set[str]) -> list[WorkerMark]:
        now = asyncio.get_running_loop().time()
        self._absent_since = {
            mark.worker: self._absent_since.get(mark.worker, now) for mark in others if mark.worker not in present
        }
        return [mark for mark in others if now - self._absent_since.get(mark.worker, now) >= self._absent_for]

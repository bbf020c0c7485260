"""The worker host: takes requests for sessions, owns them, takes over what a dead worker of this host left.

It registers in `trunk_workers`, pulls from the work queues of its adapters, notices commands for sessions of its host that
nobody owns, and lets everything go in order when it is told to stop.
"""

import asyncio
import contextlib
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final, get_args

from trunkline_agentkit import workers
from trunkline_agentkit.claiming import Claims
from trunkline_agentkit.enrolment import Enrolment
from trunkline_agentkit.hung import HungWorkers
from trunkline_agentkit.observing import HostObserver
from trunkline_agentkit.owning import Adapters, Owned
from trunkline_agentkit.protocol import BackendAdapter
from trunkline_agentkit.questions import HostQuestions
from trunkline_agentkit.settings import OwnerSettings
from trunkline_agentkit.spawning import Spawns
from trunkline_agentkit.sweep import reap_zombies, start_time
from trunkline_agentkit.workers import WorkerMark
from trunkline_bus import direct, kv, metrics
from trunkline_bus.clock import ServerClock
from trunkline_bus.connection import Bus
from trunkline_fold.state import Status
from trunkline_wire import TrunklineError, subjects
from trunkline_wire.ids import new_worker_id

_REAP_EVERY: Final = 5.0


class WorkerHost:
    """One worker process on one host. `run(stopping)` is its whole life."""

    def __init__(
        self,
        bus: Bus,
        home: Path,
        host: str,
        adapters: Mapping[str, BackendAdapter],
        settings: OwnerSettings | None = None,
    ) -> None:
        self.worker = new_worker_id()
        self._bus = bus
        self._home = home
        self._settings = settings or OwnerSettings()
        self._mark = WorkerMark(worker=self.worker, pid=os.getpid(), started=start_time(os.getpid()) or 0.0)
        self._clock = ServerClock()
        self._adapters = Adapters(adapters)
        self._owned = Owned(bus, host, self._mark, self._adapters, self._settings, self._clock)
        self._observer = HostObserver(
            bus, host, home, adapters, lambda: self._owned.owners, self._settings.observe_files
        )

    @property
    def host(self) -> str:
        return self._owned.host

    @property
    def sessions(self) -> list[str]:
        """The sessions that it owns."""
        return sorted(self._owned.owners)

    async def run(self, stopping: asyncio.Event, ready: asyncio.Event | None = None) -> None:
        """Works until `stopping` is set, then lets all sessions go: no process of theirs is left."""
        owned = self._owned
        enrolment = await Enrolment.of(self._bus, self.host, self._mark, self._adapters)
        await self._clock.read(self._bus)
        claims = Claims(self._bus, self._home, owned, self._adapters)
        after = await direct.end(self._bus, subjects.COMMANDS)
        for status in get_args(Status):
            metrics.SESSIONS.labels(status).set_function(partial(owned.in_status, status))
        await asyncio.to_thread(workers.enter, self._home, self._mark)
        try:
            async with asyncio.TaskGroup() as group:
                enrolled = group.create_task(enrolment.keep(lambda: len(owned.owners), lambda: owned.busy))
                group.create_task(claims.run(after))
                tasks = [
                    group.create_task(self._clock.keep(self._bus)),
                    group.create_task(self._reap()),
                    group.create_task(Spawns(self._bus, self._home, owned, self._adapters, self._clock).run()),
                    group.create_task(HungWorkers(self._bus, self._home).run()),
                    group.create_task(HostQuestions(self._bus, self.host).run()),
                    group.create_task(self._observer.run()),
                ]
                if ready is not None:
                    ready.set()
                await stopping.wait()
                claims.stop()
                for task in tasks:
                    task.cancel()
                enrolment.stop()
                await owned.turns_end()
                enrolled.cancel()
        finally:
            await owned.let_go()
            await asyncio.to_thread(workers.leave, self._home, self.worker)
            with contextlib.suppress(TrunklineError, TimeoutError):
                async with asyncio.timeout(1.0):
                    await kv.delete(self._bus, subjects.KV_WORKERS, self.worker)
            await self._adapters.close()

    async def _reap(self) -> None:
        """Takes the exit statuses of orphans that became our children."""
        before: set[int] = set()
        while True:
            await asyncio.sleep(_REAP_EVERY)
            before = await asyncio.to_thread(reap_zombies, before)

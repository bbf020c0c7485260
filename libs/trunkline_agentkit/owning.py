"""The sessions that one worker owns, each from its claim in the log to its end."""

import asyncio
import contextlib
import contextvars
from collections.abc import Callable, Mapping

from trunkline_agentkit.directory import Folds
from trunkline_agentkit.leasing import keep_lease, let_go_in_silence
from trunkline_agentkit.owner import End, SessionOwner
from trunkline_agentkit.pen import Pen
from trunkline_agentkit.place import Place, Record
from trunkline_agentkit.protocol import BackendAdapter
from trunkline_agentkit.registry import load
from trunkline_agentkit.settings import OwnerSettings
from trunkline_agentkit.workers import WorkerMark
from trunkline_bus import metrics
from trunkline_bus.clock import ServerClock
from trunkline_bus.connection import Bus
from trunkline_bus.lease import Lease, read_lease
from trunkline_bus.requests import Requests
from trunkline_bus.writer import SessionWriter
from trunkline_fold.state import Status
from trunkline_wire import ErrorInfo, Spawn
from trunkline_wire.session import SessionClosed
from trunkline_wire.work import ErrorRaised


class Adapters(dict[str, BackendAdapter]):
    """Those that a worker takes requests for, by name."""

    def __init__(self, adapters: Mapping[str, BackendAdapter]) -> None:
        super().__init__(adapters)
        self._further: dict[str, BackendAdapter] = {}

    def find(self, name: str) -> BackendAdapter:
        """One that this worker takes no requests for is loaded all the same. Raises TrunklineError `unknown_adapter`."""
        if name not in self and name not in self._further:
            self._further[name] = load(name)
        return self.get(name) or self._further[name]

    async def close(self) -> None:
        for adapter in (*self.values(), *self._further.values()):
            await adapter.close()


class Owned:
    """The worker's sessions. `on_end` is told of each that it no longer owns."""

    def __init__(
        self, bus: Bus, host: str, mark: WorkerMark, adapters: Adapters, settings: OwnerSettings, clock: ServerClock
    ) -> None:
        self.host = host
        self.mark = mark
        self.taking: set[str] = set()
        """Sessions that are being created or claimed at this moment."""
        self.latest: dict[str, int] = {}
        """The last command seen for each session of this host."""
        self.owners: dict[str, SessionOwner] = {}
        self.on_end: Callable[[SessionOwner, End], None] | None = None
        self._bus = bus
        self._adapters = adapters
        self._settings = settings
        self._clock = clock
        self._requests = Requests(bus, "worker")
        self._running: set[asyncio.Task[None]] = set()

    @property
    def worker(self) -> str:
        return self.mark.worker

    @property
    def busy(self) -> int:
        """Sessions in which a turn runs."""
        return sum(owner.busy for owner in self.owners.values())

    def __contains__(self, session: str) -> bool:
        """Whether it is owned, or will be in a moment."""
        return session in self.owners or session in self.taking

    def in_status(self, status: Status) -> int:
        return sum(owner.status == status for owner in list(self.owners.values()))

    async def is_leased_elsewhere(self, session: str) -> bool:
        lease = await read_lease(self._bus, session)
        return lease is not None and lease.holder.get("host") != self.host

    async def own(self, place: Place, writer: SessionWriter, folds: Folds, adapter: BackendAdapter) -> None:
        """Own a session that this worker has claimed in the log."""
        state = folds.memory.session
        before = place.record
        record = Record(
            session=place.session,
            adapter=adapter.name,
            cwd=state.cwd or "",
            worker=self.mark,
            held=before.held if before is not None else None,
            cmd_seq=folds.memory.commands.cmd_seq,
        )
        await asyncio.to_thread(place.write, record)
        owner = SessionOwner(
            self._bus,
            writer,
            memory=folds.memory,
            asks=folds.asks,
            adapter=adapter,
            place=place,
            settings=self._settings,
            spawn=self._spawn,
            clock=self._clock,
            find=self._adapters.find,
        )
        self.owners[place.session] = owner
        metrics.OWNED_SESSIONS.set(len(self.owners))
        # An owner outlives the request that it began with, and is no part of that request's trace.
        task = asyncio.create_task(
            self._run(owner, any_place=state.placement == "any", writer=writer), context=contextvars.Context()
        )
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def refuse(self, place: Place, writer: SessionWriter, folds: Folds, error: ErrorInfo) -> None:
        """A session that can't be run as it was asked for is closed at once, and says why."""
        pen = Pen(writer, folds.memory)
        if folds.memory.session.closed is None:
            pen.write(ErrorRaised(code=error.code, message=error.message, details=error.details, recoverable=False))
            pen.write(SessionClosed(reason=error.code, last_error=error.message))
        await writer.close()
        place.unlock()
        await asyncio.to_thread(place.remove)

    async def turns_end(self) -> None:
        """Lets each session go as soon as no turn of it runs, for `turns_within` at most."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.turns_within):
                while self._running:
                    for owner in list(self.owners.values()):
                        if not owner.busy:
                            owner.finish("stopping")
                    await asyncio.wait(set(self._running), timeout=self._settings.tick)

    async def let_go(self) -> None:
        """Lets all go, whatever runs."""
        for owner in list(self.owners.values()):
            owner.finish("stopping")
        while self._running:
            await asyncio.wait(set(self._running))

    async def _run(self, owner: SessionOwner, *, any_place: bool, writer: SessionWriter) -> None:
        session = owner.session
        holder = {"worker": self.worker, "host": self.host, "pid": self.mark.pid, "started": self.mark.started}
        lease = Lease(self._bus, session, holder, self._settings.lease_ttl)
        keeping = [asyncio.create_task(keep_lease(self._bus, lease, owner, writer, self.host))]
        if any_place:
            keeping.append(asyncio.create_task(let_go_in_silence(lease, owner, writer)))
        end: End = "failed"
        try:
            end = await owner.run()
        finally:
            for task in keeping:
                task.cancel()
            await asyncio.gather(*keeping, return_exceptions=True)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await lease.release()
            del self.owners[session]
            metrics.OWNED_SESSIONS.set(len(self.owners))
        if self.on_end is not None:
            self.on_end(owner, end)

    async def _spawn(self, spawn: Spawn) -> None:
        await self._requests.spawn(spawn)

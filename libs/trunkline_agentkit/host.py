"""The worker host: takes requests for sessions, owns them, takes over what a dead worker of this host left.

It registers in `trunk_workers`, pulls from the work queues of its adapters, notices commands for sessions of its host that
nobody owns, and lets everything go in order when it is told to stop.
"""

import asyncio
import contextlib
import contextvars
import logging
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final, get_args

from msgspec.structs import replace

from trunkline_agentkit import workers
from trunkline_agentkit.directory import Folds, fold_log, has_unread
from trunkline_agentkit.enrolment import Enrolment
from trunkline_agentkit.homeless import Homeless
from trunkline_agentkit.hung import HungWorkers
from trunkline_agentkit.leasing import keep_lease, let_go_in_silence
from trunkline_agentkit.observing import HostObserver
from trunkline_agentkit.orders import went_back
from trunkline_agentkit.own_terminal import OpensTerminals
from trunkline_agentkit.owner import End, SessionOwner
from trunkline_agentkit.pen import Pen
from trunkline_agentkit.place import Place, Record, owner_runs, places
from trunkline_agentkit.protocol import Adopting, BackendAdapter, refuse_options
from trunkline_agentkit.questions import HostQuestions
from trunkline_agentkit.registry import load
from trunkline_agentkit.settings import OwnerSettings
from trunkline_agentkit.survivor import incarnation_of
from trunkline_agentkit.sweep import reap_zombies, start_time
from trunkline_agentkit.workers import WorkerMark
from trunkline_agentkit.workqueue import Work, WorkQueue
from trunkline_bus import direct, kv, metrics, trace
from trunkline_bus.clock import ServerClock
from trunkline_bus.connection import Bus
from trunkline_bus.lease import Lease, read_lease
from trunkline_bus.reader import Reader
from trunkline_bus.requests import Requests
from trunkline_bus.stored import Stored
from trunkline_bus.writer import SessionWriter
from trunkline_fold.state import Status
from trunkline_wire import AgentRef, ErrorInfo, Spawn, TrunklineError, decode_command, decode_spawn, subjects
from trunkline_wire.ids import is_id, new_worker_id, workspace_id
from trunkline_wire.session import SessionClosed, SessionCreated, SessionForked
from trunkline_wire.work import ErrorRaised

log = logging.getLogger(__name__)

SPAWN_LIFETIME: Final = 30.0
"""Seconds after which a request nobody took counts as `no_worker`: then it must not be taken any more."""

_REAP_EVERY: Final = 5.0
_RECOVER_EVERY: Final = 5.0
_CLAIMS_AT_A_TIME: Final = 8


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
        self.host = host
        self._bus = bus
        self._requests = Requests(bus, "worker")
        self._home = home
        self._adapters = dict(adapters)
        self._further: dict[str, BackendAdapter] = {}
        self._settings = settings or OwnerSettings()
        self._mark = WorkerMark(worker=self.worker, pid=os.getpid(), started=start_time(os.getpid()) or 0.0)
        self._owners: dict[str, SessionOwner] = {}
        self._taking: set[str] = set()
        """Sessions that are being created or claimed at this moment."""
        self._latest: dict[str, int] = {}
        """The last command seen for each session of this host."""
        self._claims = asyncio.Semaphore(_CLAIMS_AT_A_TIME)
        self._clock = ServerClock()
        self._group: asyncio.TaskGroup | None = None
        self._owning: set[asyncio.Task[None]] = set()
        self._observer = HostObserver(bus, host, home, adapters, lambda: self._owners, self._settings.observe_files)
        self._homeless = Homeless(bus, home, host, self._adapters, mine=self._is_mine, take=self._start_claim)

    @property
    def sessions(self) -> list[str]:
        """The sessions that it owns."""
        return sorted(self._owners)

    async def run(self, stopping: asyncio.Event, ready: asyncio.Event | None = None) -> None:
        """Works until `stopping` is set, then lets all sessions go: no process of theirs is left."""
        enrolment = await Enrolment.of(self._bus, self.host, self._mark, self._adapters)
        await self._clock.read(self._bus)
        after = await direct.end(self._bus, subjects.COMMANDS)
        for status in get_args(Status):
            metrics.SESSIONS.labels(status).set_function(partial(self._in_status, status))
        await asyncio.to_thread(workers.enter, self._home, self._mark)
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                enrolled = group.create_task(enrolment.keep(lambda: len(self._owners), self._busy))
                tasks = [
                    group.create_task(self._clock.keep(self._bus)),
                    group.create_task(self._reap()),
                    group.create_task(self._watch_commands(after)),
                    group.create_task(self._recover()),
                    group.create_task(HungWorkers(self._bus, self._home).run()),
                    group.create_task(self._homeless.run()),
                    group.create_task(HostQuestions(self._bus, self.host).run()),
                    group.create_task(self._observer.run()),
                ]
                for adapter in self._adapters:
                    for place in (self.host, "any"):
                        tasks.append(group.create_task(self._take_spawns(place, adapter)))  # noqa: PERF401  # two loops read better
                if ready is not None:
                    ready.set()
                await stopping.wait()
                self._group = None
                for task in tasks:
                    task.cancel()
                enrolment.stop()
                await self._turns_end()
                enrolled.cancel()
        finally:
            self._group = None
            await self._let_go()
            await asyncio.to_thread(workers.leave, self._home, self.worker)
            with contextlib.suppress(TrunklineError, TimeoutError):
                async with asyncio.timeout(1.0):
                    await kv.delete(self._bus, subjects.KV_WORKERS, self.worker)
            for adapter in {*self._adapters.values(), *self._further.values()}:
                await adapter.close()

    def _in_status(self, status: Status) -> int:
        return sum(owner.status == status for owner in list(self._owners.values()))

    def _busy(self) -> int:
        return sum(owner.busy for owner in self._owners.values())

    async def _turns_end(self) -> None:
        """Lets each session go as soon as no turn of it runs, for `turns_within` at most."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.turns_within):
                while self._owning:
                    for owner in list(self._owners.values()):
                        if not owner.busy:
                            owner.finish("stopping")
                    await asyncio.wait(set(self._owning), timeout=self._settings.tick)

    async def _let_go(self) -> None:
        for owner in list(self._owners.values()):
            owner.finish("stopping")
        while self._owning:
            await asyncio.wait(set(self._owning))

    async def _reap(self) -> None:
        """Takes the exit statuses of orphans that became our children."""
        before: set[int] = set()
        while True:
            await asyncio.sleep(_REAP_EVERY)
            before = await asyncio.to_thread(reap_zombies, before)

    # Sessions come: by a request, by a command, by what a dead worker left

    async def _take_spawns(self, place: str, adapter: str) -> None:
        queue = WorkQueue(self._bus, subjects.SPAWN, f"spawn-{place}-{adapter}", subjects.spawn(place, adapter))
        async for work in queue.work():
            try:
                with trace.span("spawn", parent=work.headers):
                    await self._on_spawn(work)
            except TrunklineError as error:
                log.warning("spawn_failed", extra={"adapter": adapter, "code": error.code, "error": error.message})
                metrics.SPAWNS.labels(adapter, error.code).inc()
                if error.code in {"bad_params", "bad_id", "session_exists", "too_large"}:
                    await work.refuse()
                else:
                    await work.later(1.0)

    async def _on_spawn(self, work: Work) -> None:
        spawn = decode_spawn(work.raw)
        age = (self._clock.now() - work.time).total_seconds()
        if age > SPAWN_LIFETIME:
            log.warning("spawn_expired", extra={"session": spawn.session, "age_s": round(age, 1)})
            metrics.SPAWNS.labels(spawn.adapter, "expired").inc()
            await work.refuse()
            return
        known = spawn.session in self._owners or spawn.session in self._taking
        if not known and not (work.again and await self._is_leased_elsewhere(spawn.session)):
            await self._create(spawn)
        await work.done()

    async def _create(self, spawn: Spawn) -> None:
        adapter = self._adapters.get(spawn.adapter)
        if adapter is None:
            raise TrunklineError("bad_params", f"this queue is not for adapter {spawn.adapter!r}")
        place = Place(self._home, spawn.session)
        self._taking.add(spawn.session)
        try:
            if not await place.seize():
                raise TrunklineError("fenced", f"another worker of this host holds {spawn.session!r}")
            directory = await asyncio.to_thread(os.path.realpath, spawn.cwd)
            options = spawn.options
            if spawn.fork_of is not None and options.resume_native is None:
                parent = (await fold_log(self._bus, spawn.fork_of)).memory.session
                options = replace(options, resume_native=parent.native_session)
            created = SessionCreated(
                adapter=spawn.adapter,
                cwd=spawn.cwd,
                host=self.host,
                workspace=workspace_id(self.host, directory),
                agent=spawn.agent,
                title=spawn.title,
                options=options,
                placement="any" if spawn.host == "any" else "host",
                parent=spawn.fork_of,
                spawn=spawn.id,
            )
            reference = AgentRef(adapter=spawn.adapter, agent=spawn.agent)
            writer = await SessionWriter.create(
                self._bus, created, session=spawn.session, worker=self.worker, agent=reference
            )
            folds = await fold_log(self._bus, spawn.session, until=writer.claim_sequence)
            if spawn.fork_of is not None and writer.epoch == 1:
                Pen(writer, folds.memory).write(SessionForked(parent=spawn.fork_of, at=spawn.fork_at))
            refusal = await _refusal(adapter, spawn)
            if refusal is not None:
                await self._refuse(place, writer, folds, refusal)
                metrics.SPAWNS.labels(spawn.adapter, refusal.code).inc()
                return
            await self._own(place, writer, folds, adapter)
            metrics.SPAWNS.labels(spawn.adapter, "ok").inc()
        except BaseException:
            place.unlock()
            raise
        finally:
            self._taking.discard(spawn.session)

    async def _refuse(self, place: Place, writer: SessionWriter, folds: Folds, error: ErrorInfo) -> None:
        """A session that can't be run as it was asked for is closed at once, and says why."""
        pen = Pen(writer, folds.memory)
        if folds.memory.session.closed is None:
            pen.write(ErrorRaised(code=error.code, message=error.message, details=error.details, recoverable=False))
            pen.write(SessionClosed(reason=error.code, last_error=error.message))
        await writer.close()
        place.unlock()
        await asyncio.to_thread(place.remove)

    async def _watch_commands(self, after: int) -> None:
        async with Reader(self._bus, subjects.COMMANDS, [subjects.ALL_COMMANDS], after=after) as reader:
            async for stored in reader:
                self._on_command(stored)

    def _on_command(self, stored: Stored) -> None:
        session = stored.session
        if session is None or not is_id(session, "ses"):
            return
        if session in self._owners or session in self._taking:
            self._latest[session] = stored.sequence
            return
        record = Place(self._home, session).record
        if record is None:
            self._homeless.notice(session)
            return
        if stored.sequence <= record.cmd_seq or self._is_anothers(record):
            return
        with contextlib.suppress(TrunklineError):
            if not record.closed or decode_command(stored.raw).verb == "resume":
                self._start_claim(session)

    async def _recover(self) -> None:
        """Takes over what nobody of this host owns any more and that has something open or unread.

        At the start all sessions are looked at, later those whose owner has died since.
        """
        found = await asyncio.to_thread(places, self._home)
        while True:
            async with asyncio.TaskGroup() as group:
                for place in found:
                    group.create_task(self._look_after(place))
            await asyncio.sleep(_RECOVER_EVERY)
            found = await asyncio.to_thread(self._orphaned)

    def _orphaned(self) -> list[Place]:
        """Sessions whose record names an owner that no longer runs."""
        return [
            place
            for place in places(self._home)
            if (record := place.record) is not None
            and record.worker not in {None, self._mark}
            and not owner_runs(record)
        ]

    def _is_mine(self, session: str) -> bool:
        owned = session in self._owners or session in self._taking
        return owned or Place(self._home, session).record is not None

    def _is_anothers(self, record: Record) -> bool:
        return record.worker not in {None, self._mark} and owner_runs(record)

    async def _look_after(self, place: Place) -> None:
        record = place.record
        if record is None or place.session in self._owners or place.session in self._taking:
            return
        if await asyncio.to_thread(self._is_anothers, record):
            return
        session, cmd_seq = place.session, record.cmd_seq
        self._taking.add(session)
        try:
            async with self._claims:
                needed, cmd_seq = await self._needs_owner(place, record)
        except TrunklineError as error:
            log.warning("session_unreadable", extra={"session": session, "code": error.code})
            if error.code != "bad_event" and self._group is not None:
                self._group.create_task(self._look_again(session))
            return
        finally:
            self._taking.discard(session)
        if needed or self._latest.pop(session, 0) > cmd_seq:
            self._start_claim(session)

    async def _needs_owner(self, place: Place, record: Record) -> tuple[bool, int]:
        """Whether something is open or unread in a session that nobody owns; and up to where its commands are read."""
        if record.worker is not None:
            if not await place.seize():
                return False, record.cmd_seq  # another worker of this host was quicker
            try:
                folds = await fold_log(self._bus, place.session)
                state, cmd_seq = folds.memory.session, folds.memory.commands.cmd_seq
                if state.host not in {None, self.host} and await self._lives_elsewhere(place.session, state.placement):
                    await asyncio.to_thread(place.remove)
                    return False, cmd_seq
                record = replace(record, cmd_seq=cmd_seq, closed=state.closed is not None)
                if folds.unfinished:
                    return True, cmd_seq
                await place.change(worker=None, agent=None, cmd_seq=cmd_seq, closed=record.closed)
            finally:
                place.unlock()
        if await went_back(self._bus, place.session, record.cmd_seq):
            log.warning("commands_regressed", extra={"session": place.session, "cmd_seq": record.cmd_seq})
            if not await place.seize():
                return False, record.cmd_seq
            try:
                record = replace(record, cmd_seq=0)
                await asyncio.to_thread(place.write, record)
            finally:
                place.unlock()
        return await self._has_unread(place.session, record), record.cmd_seq

    def _start_claim(self, session: str) -> None:
        if self._group is None or session in self._owners or session in self._taking:
            return
        self._taking.add(session)
        self._group.create_task(self._claim(session))

    async def _claim(self, session: str) -> None:
        place = Place(self._home, session)
        try:
            async with self._claims:
                await self._take_over(place)
        except TrunklineError as error:
            place.unlock()
            log.warning("claim_failed", extra={"session": session, "code": error.code, "error": error.message})
            if error.code == "unknown_session":
                await asyncio.to_thread(place.remove)
            elif error.code not in {"fenced", "unknown_adapter"} and self._group is not None:
                self._group.create_task(self._look_again(session))
        except BaseException:
            place.unlock()
            raise
        finally:
            self._taking.discard(session)

    async def _look_again(self, session: str) -> None:
        """What was left open is taken up again, at a pace that does no harm."""
        await asyncio.sleep(_RECOVER_EVERY)
        await self._look_after(Place(self._home, session))

    async def _take_over(self, place: Place) -> None:
        """Becomes the session's owner. Raises TrunklineError `fenced` where a living worker owns it, here or elsewhere."""
        before = place.record
        if (before is not None and self._is_anothers(before)) or not await place.seize():
            raise TrunklineError("fenced", f"another worker of this host owns {place.session!r}")
        record = place.record
        adapter = self._adapters.get(record.adapter) if record is not None else None
        if record is None or adapter is None:
            raise TrunklineError("unknown_adapter", f"nothing here can run session {place.session!r}")
        if await self._is_leased_elsewhere(place.session):
            raise TrunklineError("fenced", f"a worker of another host owns {place.session!r}")
        if record != before and record.worker is None and not await self._has_unread(place.session, record):
            place.unlock()  # another worker of this host has done what was to be done
            return
        reference = AgentRef(adapter=record.adapter)
        flapping: TrunklineError | None = None
        try:
            incarnation = await self._survived(place.session, adapter)
            writer = await self._claim_log(place.session, reference, incarnation=incarnation)
        except TrunklineError as error:
            if error.code != "ownership_flapping":
                raise
            flapping = error
            writer = await self._claim_log(place.session, reference, despite_flapping=True)
        folds = await fold_log(self._bus, place.session, until=writer.claim_sequence)
        state = folds.memory.session
        writer.use_agent(AgentRef(adapter=record.adapter, agent=state.agent, version=state.version))
        if flapping is not None:
            await self._refuse(place, writer, folds, ErrorInfo.of(flapping))
            return
        await self._own(place, writer, folds, adapter)

    async def _survived(self, session: str, adapter: BackendAdapter) -> str | None:
        """The incarnation of the session's agent, where it may have outlived its worker: tmux holds what runs in a terminal."""
        if not isinstance(adapter, Adopting | OpensTerminals):
            return None
        memory = (await fold_log(self._bus, session)).memory
        lasts = memory.session.interface == "terminal"
        lasts = lasts or (isinstance(adapter, Adopting) and adapter.outlives(memory.options))
        return incarnation_of(memory.session) if lasts else None

    async def _is_leased_elsewhere(self, session: str) -> bool:
        lease = await read_lease(self._bus, session)
        return lease is not None and lease.holder.get("host") != self.host

    async def _lives_elsewhere(self, session: str, placement: str) -> bool:
        """Whether a session that another host claimed last is still there; one for `any` place may have lost its host."""
        return placement != "any" or await self._is_leased_elsewhere(session)

    async def _has_unread(self, session: str, record: Record) -> bool:
        return await has_unread(self._bus, session, after=record.cmd_seq, closed=record.closed)

    async def _claim_log(
        self, session: str, reference: AgentRef, *, incarnation: str | None = None, despite_flapping: bool = False
    ) -> SessionWriter:
        return await SessionWriter.claim(
            self._bus,
            session,
            worker=self.worker,
            host=self.host,
            agent=reference,
            incarnation=incarnation,
            despite_flapping=despite_flapping,
        )

    # Sessions are owned, and go

    async def _own(self, place: Place, writer: SessionWriter, folds: Folds, adapter: BackendAdapter) -> None:
        state = folds.memory.session
        before = place.record
        record = Record(
            session=place.session,
            adapter=adapter.name,
            cwd=state.cwd or "",
            worker=self._mark,
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
            spawn=self._send_spawn,
            clock=self._clock,
            find=self._adapter_of,
        )
        self._owners[place.session] = owner
        metrics.OWNED_SESSIONS.set(len(self._owners))
        # An owner outlives the request that it began with, and is no part of that request's trace.
        task = asyncio.create_task(
            self._run_owner(owner, any_place=state.placement == "any", writer=writer), context=contextvars.Context()
        )
        self._owning.add(task)
        task.add_done_callback(self._owning.discard)

    async def _run_owner(self, owner: SessionOwner, *, any_place: bool, writer: SessionWriter) -> None:
        session = owner.session
        holder = {"worker": self.worker, "host": self.host, "pid": self._mark.pid, "started": self._mark.started}
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
            del self._owners[session]
            metrics.OWNED_SESSIONS.set(len(self._owners))
        if end == "idle" and (owner.unfinished or self._latest.get(session, 0) > owner.cmd_seq):
            self._start_claim(session)  # something came while it let go
        elif end in {"failed", "stopping"} and self._group is not None:  # a stop in mid-run: the log was silent
            self._group.create_task(self._look_again(session))
        elif end == "closed" and self._latest.get(session, 0) > owner.cmd_seq and self._group is not None:
            self._group.create_task(self._look_after(Place(self._home, session)))

    def _adapter_of(self, name: str) -> BackendAdapter:
        """One that this worker takes no requests for is loaded all the same. Raises TrunklineError `unknown_adapter`."""
        if name not in self._further:
            self._further[name] = self._adapters.get(name) or load(name)
        return self._further[name]

    async def _send_spawn(self, spawn: Spawn) -> None:
        await self._requests.spawn(spawn)


async def _refusal(adapter: BackendAdapter, spawn: Spawn) -> ErrorInfo | None:
    """Why a session can't be run as it was asked for."""
    try:
        refuse_options(adapter, spawn.options)
    except TrunklineError as error:
        return ErrorInfo.of(error)
    if not await asyncio.to_thread(os.access, spawn.cwd, os.X_OK) or not Path(spawn.cwd).is_absolute():
        return ErrorInfo(
            code="bad_directory", message=f"directory {spawn.cwd!r} does not exist on this host, or can't be entered"
        )
    return None

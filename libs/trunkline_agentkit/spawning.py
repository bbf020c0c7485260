"""Requests for sessions, from the work queues of a worker's adapters."""

import asyncio
import logging
import os
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from trunkline_agentkit.directory import fold_log
from trunkline_agentkit.owning import Adapters, Owned
from trunkline_agentkit.pen import Pen
from trunkline_agentkit.place import Place
from trunkline_agentkit.protocol import BackendAdapter, refuse_options
from trunkline_agentkit.workqueue import Work, WorkQueue
from trunkline_bus import metrics, trace
from trunkline_bus.clock import ServerClock
from trunkline_bus.connection import Bus
from trunkline_bus.writer import SessionWriter
from trunkline_wire import AgentRef, ErrorInfo, Spawn, TrunklineError, decode_spawn, subjects
from trunkline_wire.ids import workspace_id
from trunkline_wire.session import SessionCreated, SessionForked

log = logging.getLogger(__name__)

SPAWN_LIFETIME: Final = 30.0
"""Seconds after which a request nobody took counts as `no_worker`: then it must not be taken any more."""


class Spawns:
    """`run` takes requests, for this host and for any, until it is cancelled."""

    def __init__(self, bus: Bus, home: Path, owned: Owned, adapters: Adapters, clock: ServerClock) -> None:
        self._bus = bus
        self._home = home
        self._owned = owned
        self._adapters = adapters
        self._clock = clock

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for adapter in self._adapters:
                for place in (self._owned.host, "any"):
                    group.create_task(self._take(place, adapter))

    async def _take(self, place: str, adapter: str) -> None:
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
        known = spawn.session in self._owned
        if not known and not (work.again and await self._owned.is_leased_elsewhere(spawn.session)):
            await self._create(spawn)
        await work.done()

    async def _create(self, spawn: Spawn) -> None:
        adapter = self._adapters.get(spawn.adapter)
        if adapter is None:
            raise TrunklineError("bad_params", f"this queue is not for adapter {spawn.adapter!r}")
        place = Place(self._home, spawn.session)
        self._owned.taking.add(spawn.session)
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
                host=self._owned.host,
                workspace=workspace_id(self._owned.host, directory),
                agent=spawn.agent,
                title=spawn.title,
                options=options,
                placement="any" if spawn.host == "any" else "host",
                parent=spawn.fork_of,
                spawn=spawn.id,
            )
            reference = AgentRef(adapter=spawn.adapter, agent=spawn.agent)
            writer = await SessionWriter.create(
                self._bus, created, session=spawn.session, worker=self._owned.worker, agent=reference
            )
            folds = await fold_log(self._bus, spawn.session, until=writer.claim_sequence)
            if spawn.fork_of is not None and writer.epoch == 1:
                Pen(writer, folds.memory).write(SessionForked(parent=spawn.fork_of, at=spawn.fork_at))
            refusal = await _refusal(adapter, spawn)
            if refusal is not None:
                await self._owned.refuse(place, writer, folds, refusal)
                metrics.SPAWNS.labels(spawn.adapter, refusal.code).inc()
                return
            await self._owned.own(place, writer, folds, adapter)
            metrics.SPAWNS.labels(spawn.adapter, "ok").inc()
        except BaseException:
            place.unlock()
            raise
        finally:
            self._owned.taking.discard(spawn.session)


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

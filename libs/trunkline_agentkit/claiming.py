"""Sessions of this host that nobody owns: a command comes for one, or a dead worker has left something open or unread."""

import asyncio
import contextlib
import logging
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from trunkline_agentkit.directory import fold_log, has_unread
from trunkline_agentkit.homeless import Homeless
from trunkline_agentkit.orders import went_back
from trunkline_agentkit.own_terminal import OpensTerminals
from trunkline_agentkit.owner import End, SessionOwner
from trunkline_agentkit.owning import Adapters, Owned
from trunkline_agentkit.place import Place, Record, owner_runs, places
from trunkline_agentkit.protocol import Adopting, BackendAdapter
from trunkline_agentkit.survivor import incarnation_of
from trunkline_bus.connection import Bus
from trunkline_bus.reader import Reader
from trunkline_bus.stored import Stored
from trunkline_bus.writer import SessionWriter
from trunkline_wire import AgentRef, ErrorInfo, TrunklineError, decode_command, subjects
from trunkline_wire.ids import is_id

log = logging.getLogger(__name__)

_RECOVER_EVERY: Final = 5.0
_AT_A_TIME: Final = 8


class Claims:
    """`run` claims what needs an owner until `stop`."""

    def __init__(self, bus: Bus, home: Path, owned: Owned, adapters: Adapters) -> None:
        self._bus = bus
        self._home = home
        self._owned = owned
        self._adapters = adapters
        self._few = asyncio.Semaphore(_AT_A_TIME)
        self._group: asyncio.TaskGroup | None = None
        self._stopping = asyncio.Event()
        self._homeless = Homeless(bus, home, owned.host, adapters, mine=self._is_mine, take=self._start_claim)
        owned.on_end = self._after

    async def run(self, after: int) -> None:
        """`after`: the sequence of COMMANDS behind which commands are news."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                tasks = [
                    group.create_task(self._watch_commands(after)),
                    group.create_task(self._recover()),
                    group.create_task(self._homeless.run()),
                ]
                await self._stopping.wait()
                for task in tasks:
                    task.cancel()
        finally:
            self._group = None

    def stop(self) -> None:
        """Claim nothing more. `run` returns once the claims under way are through."""
        self._group = None
        self._stopping.set()

    def _after(self, owner: SessionOwner, end: End) -> None:
        """What is to be done for a session that this worker owned until now."""
        session, unread = owner.session, self._owned.latest.get(owner.session, 0) > owner.cmd_seq
        if end == "idle" and (owner.unfinished or unread):
            self._start_claim(session)  # something came while it let go
        elif end in {"failed", "stopping"} and self._group is not None:  # a stop in mid-run: the log was silent
            self._group.create_task(self._look_again(session))
        elif end == "closed" and unread and self._group is not None:
            self._group.create_task(self._look_after(Place(self._home, session)))

    async def _watch_commands(self, after: int) -> None:
        async with Reader(self._bus, subjects.COMMANDS, [subjects.ALL_COMMANDS], after=after) as reader:
            async for stored in reader:
                self._on_command(stored)

    def _on_command(self, stored: Stored) -> None:
        session = stored.session
        if session is None or not is_id(session, "ses"):
            return
        if session in self._owned:
            self._owned.latest[session] = stored.sequence
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
            and record.worker not in {None, self._owned.mark}
            and not owner_runs(record)
        ]

    def _is_mine(self, session: str) -> bool:
        owned = session in self._owned
        return owned or Place(self._home, session).record is not None

    def _is_anothers(self, record: Record) -> bool:
        return record.worker not in {None, self._owned.mark} and owner_runs(record)

    async def _look_after(self, place: Place) -> None:
        record = place.record
        if record is None or place.session in self._owned:
            return
        if await asyncio.to_thread(self._is_anothers, record):
            return
        session, cmd_seq = place.session, record.cmd_seq
        self._owned.taking.add(session)
        try:
            async with self._few:
                needed, cmd_seq = await self._needs_owner(place, record)
        except TrunklineError as error:
            log.warning("session_unreadable", extra={"session": session, "code": error.code})
            if error.code != "bad_event" and self._group is not None:
                self._group.create_task(self._look_again(session))
            return
        finally:
            self._owned.taking.discard(session)
        if needed or self._owned.latest.pop(session, 0) > cmd_seq:
            self._start_claim(session)

    async def _needs_owner(self, place: Place, record: Record) -> tuple[bool, int]:
        """Whether something is open or unread in a session that nobody owns; and up to where its commands are read."""
        if record.worker is not None:
            if not await place.seize():
                return False, record.cmd_seq  # another worker of this host was quicker
            try:
                folds = await fold_log(self._bus, place.session)
                state, cmd_seq = folds.memory.session, folds.memory.commands.cmd_seq
                if state.host not in {None, self._owned.host} and await self._lives_elsewhere(
                    place.session, state.placement
                ):
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
        if self._group is None or session in self._owned:
            return
        self._owned.taking.add(session)
        self._group.create_task(self._claim(session))

    async def _claim(self, session: str) -> None:
        place = Place(self._home, session)
        try:
            async with self._few:
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
            self._owned.taking.discard(session)

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
        if await self._owned.is_leased_elsewhere(place.session):
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
            await self._owned.refuse(place, writer, folds, ErrorInfo.of(flapping))
            return
        await self._owned.own(place, writer, folds, adapter)

    async def _survived(self, session: str, adapter: BackendAdapter) -> str | None:
        """The incarnation of the session's agent, where it may have outlived its worker: tmux holds what runs in a terminal."""
        if not isinstance(adapter, Adopting | OpensTerminals):
            return None
        memory = (await fold_log(self._bus, session)).memory
        lasts = memory.session.interface == "terminal"
        lasts = lasts or (isinstance(adapter, Adopting) and adapter.outlives(memory.options))
        return incarnation_of(memory.session) if lasts else None

    async def _lives_elsewhere(self, session: str, placement: str) -> bool:
        """Whether a session that another host claimed last is still there; one for `any` place may have lost its host."""
        return placement != "any" or await self._owned.is_leased_elsewhere(session)

    async def _has_unread(self, session: str, record: Record) -> bool:
        return await has_unread(self._bus, session, after=record.cmd_seq, closed=record.closed)

    async def _claim_log(
        self, session: str, reference: AgentRef, *, incarnation: str | None = None, despite_flapping: bool = False
    ) -> SessionWriter:
        return await SessionWriter.claim(
            self._bus,
            session,
            worker=self._owned.worker,
            host=self._owned.host,
            agent=reference,
            incarnation=incarnation,
            despite_flapping=despite_flapping,
        )

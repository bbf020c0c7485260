"""What is seen of agents beside their own streams: the calls of their hooks, and the files of their teams.

A hook of a session that this worker owns becomes a fact of that session, written by its owner, as everything there. All else
goes to `trunk.obs.<host>`. Nobody waits for it: what finds no room is dropped, and counted.
"""

import asyncio
import contextlib
import logging
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, Protocol

import msgspec
import psutil

from trunkline_agentkit.death import HELD
from trunkline_agentkit.environment import SESSION_MARK
from trunkline_agentkit.hook_receiver import HookReceiver
from trunkline_agentkit.hooks import Hook
from trunkline_agentkit.team_files import Sight, TeamObserver
from trunkline_agentkit.watching import FileWatch
from trunkline_bus import metrics
from trunkline_bus.connection import Bus
from trunkline_bus.requests import Requests
from trunkline_wire import TrunklineError, timestamp
from trunkline_wire.observed import HookSeen, Observation, make_observation

log = logging.getLogger(__name__)

Files = Literal["terminals", "always", "never"]
"""Whose teams' files are observed: those of sessions in a terminal or whose streams are silent about their teams, everybody's, nobody's."""

WAITING: Final = 1000
"""Calls of hooks that may wait to be stored."""
WAITING_BYTES: Final = 8 * 1024 * 1024
EVERY_S: Final = 2.0
"""Files are looked at so often, though nothing may have been told of a change."""
AFTER_S: Final = 0.02
"""Seconds between two looks: who writes a file, often writes several. Mail stands in its file for a moment only."""

_KNOWN: Final = 1000
_AGAIN_S: Final = 1.0
_FAILED_S: Final = 10.0
_WITHIN_S: Final = 5.0
_WAITED_OUT: Final = frozenset({"log_unavailable", "log_full"})


class Owner(Protocol):
    """What is asked of the owner of a session."""

    @property
    def native_session(self) -> str | None: ...

    @property
    def team_in_files(self) -> bool: ...

    async def team_changed(self) -> None: ...

    async def note_hook(self, hook: Hook) -> bool:
        """Writes it into the session's log; False where that takes no more."""
        ...


class _Call(msgspec.Struct, frozen=True):
    hook: Hook
    session: str | None
    """The session of ours whose agent has called; None: it is not one that this worker owns."""
    time: str
    size: int


class HostObserver:
    """`owners` are the sessions of this worker at any moment. `run()` is its whole life."""

    def __init__(
        self,
        bus: Bus,
        host: str,
        home: Path,
        adapters: Mapping[str, object],
        owners: Callable[[], Mapping[str, Owner]],
        files: Files = "terminals",
    ) -> None:
        self._host = host
        self._requests = Requests(bus, "worker")
        self._adapters = adapters
        self._owners = owners
        self._files = files
        self._calls: deque[_Call] = deque()
        self._bytes = 0
        self._called = asyncio.Event()
        self._natives: OrderedDict[str, str] = OrderedDict()
        """Our sessions by the names that agents themselves have for them, as hooks have told."""
        self.receiver = HookReceiver(home, adapters, self.take)

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(_kept_up(self.receiver.run))
            group.create_task(_kept_up(self._store_calls))
            if self._files != "never":
                for adapter in self._adapters.values():
                    if isinstance(adapter, TeamObserver):
                        group.create_task(_kept_up(partial(self._observe, adapter)))

    # Hooks

    def take(self, hook: Hook, marked: str | None) -> bool:
        """Takes a call, whose agent says that it belongs to `marked`; False where too many wait."""
        size = len(msgspec.json.encode(hook.input))
        if len(self._calls) >= WAITING or self._bytes + size > WAITING_BYTES:
            return False
        session = self._session_of(marked, hook.native_session)
        if session is not None:
            self._natives[hook.native_session] = session
            while len(self._natives) > _KNOWN:
                self._natives.popitem(last=False)
        self._calls.append(_Call(hook, session, timestamp(), size))
        self._bytes += size
        self._called.set()
        return True

    async def _store_calls(self) -> None:
        while True:
            while self._calls:
                call = self._calls.popleft()
                try:
                    await self._store_call(call)
                finally:
                    self._bytes -= call.size
            self._called.clear()
            await self._called.wait()

    async def _store_call(self, call: _Call) -> None:
        owner = self._owners().get(call.session) if call.session is not None else None
        if owner is not None and await _noted(owner, call.hook):
            return
        data = HookSeen(hook_event=call.hook.event, input=call.hook.input)
        seen = self._observation(data, call.hook.native_session, call.session, time=call.time)
        await self._store(seen, repeats=False)

    # Files

    async def _observe(self, adapter: TeamObserver) -> None:
        reader = adapter.team_files()
        untold: set[str] = set()
        while True:
            if not self._observes:
                await asyncio.sleep(EVERY_S)
                continue
            async with FileWatch() as watch:
                observes = True
                while observes:
                    await asyncio.sleep(AFTER_S)
                    watch.changed.clear()
                    observes = self._observes  # once more when the last one has ended: its team has, too
                    while sights := await asyncio.to_thread(reader.look, self._leads):
                        for sight in sights:
                            await self._store(self._seen(sight), repeats=True)
                        untold |= {sight.session for sight in sights}
                    untold = await self._tell(untold)
                    await asyncio.to_thread(watch.follow, reader.directories)
                    if observes:
                        await _first(watch.changed.wait(), EVERY_S)

    async def _tell(self, sessions: set[str]) -> set[str]:
        """Members may ask by files what their lead's owner has to bring to somebody; those that can't read it now."""
        failed: set[str] = set()
        for session, owner in [*self._owners().items()]:
            if session in sessions:
                try:
                    await owner.team_changed()
                except TrunklineError as error:
                    failed.add(session)
                    log.warning("team_mail_unread", extra={"code": error.code, "error": error.message})
        return failed

    @property
    def _observes(self) -> bool:
        return self._files == "always" or any(owner.team_in_files for owner in self._owners().values())

    def _leads(self, native: str | None, pid: int | None) -> str | None:
        """Whose team it is that is led by such a session, of such a process: ours by its id, "" for a stranger's, None: not to be told. Blocking."""
        session = self._session_of(_mark_of(pid), native)
        owner = self._owners().get(session) if session is not None else None
        if owner is not None and (self._files == "always" or owner.team_in_files):
            return session
        return "" if self._files == "always" else None

    def _seen(self, sight: Sight) -> Observation:
        return self._observation(
            sight.data, sight.native_session, sight.session or None, id=sight.id, path=sight.path, time=timestamp()
        )

    # Both

    def _session_of(self, marked: str | None, native: str | None) -> str | None:
        """The session that this worker owns: its agents have its id in their environment, or are known by their own."""
        owners = self._owners()
        marked = (marked or "").removeprefix(HELD)
        if marked in owners:
            return marked
        if native is None:
            return None
        told = self._natives.get(native)
        if told in owners:
            return told
        return next((session for session, owner in [*owners.items()] if owner.native_session == native), None)

    def _observation(self, data: Any, native: str | None, session: str | None, **more: Any) -> Observation:
        return make_observation(data, host=self._host, native_session=native, session=session, **more)

    async def _store(self, seen: Observation, *, repeats: bool) -> None:
        """Files can wait for a log that does not answer; calls would pile up."""
        while True:
            try:
                await self._requests.observe(seen)
            except TrunklineError as error:
                if repeats and error.code in _WAITED_OUT:
                    await asyncio.sleep(_AGAIN_S)
                    continue
                metrics.OBSERVED_DROPPED.labels(error.code).inc()
                log.warning("observation_dropped", extra={"type": seen.data.TYPE, "code": error.code})
            else:
                metrics.OBSERVED.labels(seen.data.TYPE).inc()
            return


async def _kept_up(work: Callable[[], Awaitable[None]]) -> None:
    """Whatever is wrong with it, it is no reason for a worker to end."""
    while True:
        try:
            await work()
        except Exception:
            log.exception("observer_failed")
        await asyncio.sleep(_FAILED_S)


async def _noted(owner: Owner, hook: Hook) -> bool:
    with contextlib.suppress(TrunklineError, TimeoutError):
        async with asyncio.timeout(_WITHIN_S):
            return await owner.note_hook(hook)
    return False


async def _first(waiting: Awaitable[object], within: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(within):
            await waiting


def _mark_of(pid: int | None) -> str | None:
    """The session that a process of this user bears the mark of."""
    if pid is None or pid <= 0:
        return None
    try:
        return psutil.Process(pid).environ().get(SESSION_MARK)
    except (psutil.Error, OSError, OverflowError):
        return None

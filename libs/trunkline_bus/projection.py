"""A projection at work: reads EVENTS, folds, stores. Kill it at any moment, run it twice: the documents come out the same.

A state is a function of the log, and a document says how much of the log is in it. So a write that was lost to
another replica is settled by progress, and a document that went back is written again.
"""

import asyncio
import collections
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, TypeVar

import msgspec
from nats.js.errors import APIError

from trunkline_bus import direct, kv, metrics, trace
from trunkline_bus.blobs import Blobs
from trunkline_bus.cells import Cells
from trunkline_bus.connection import Bus
from trunkline_bus.dead_letters import bury
from trunkline_bus.feed import Feed
from trunkline_bus.lag import lag_of
from trunkline_bus.parts import WHOLE, Part
from trunkline_bus.patience import UNANSWERED
from trunkline_bus.places import Place, Places, Superseded
from trunkline_bus.reader import read
from trunkline_bus.stored import Stored
from trunkline_bus.views import View, decode_document
from trunkline_wire import TrunklineError

log = logging.getLogger(__name__)

S = TypeVar("S")
T = TypeVar("T")

COLD_S: Final = 1.0
"""Seconds that a change may wait to be stored when nobody waits for it."""

OVERLAP: Final = 1000
"""Events read again at a start: on one replica buckets are written without waiting for the disk."""

MAX_CELLS: Final = 20_000
"""States in memory; more are dropped and read again."""

PASS_S: Final = 30.0
"""Seconds between two looks whether the log has gone on without anything for this projection."""

SYNCED_S: Final = 180.0
"""Seconds after which a write to a bucket is surely on the disk: a server of one replica syncs every two minutes."""

_RECENT_S: Final = 10.0
_RETRY: Final = ("log_unavailable", "log_unwritable", "log_full")


class Projection(Generic[S]):
    """Keeps the documents of `view`. `run` works until cancelled; `ready` is set while they have caught up.

    `service` names the owner in dead letters. `feed` has the view's filters; projections of one process share it.
    With `part` it keeps only the documents of sessions in it, and `feed` reads only those: others keep the rest.
    """

    def __init__(self, bus: Bus, view: View[S], service: str, feed: Feed | None = None, part: Part = WHOLE) -> None:
        self.ready = asyncio.Event()
        self._bus = bus
        self._view = view
        self._service = service
        self._stream = bus.layout.of_part(part)
        self._feed = feed or Feed(bus, self._stream, view.filters)
        self._blobs = Blobs(bus)
        self._places = Places(bus, view.name, view.version, view.bucket, part)
        self._name = view.name if part.whole else f"{view.name}.{part.name}"
        self._place: Place | None = None
        self._cells: Cells[S] = Cells(view)
        self._applied = 0
        self._applied_id: str | None = None
        self._blank = False
        self._live = False
        self._wake = asyncio.Event()
        self._storing = asyncio.Lock()
        # The last writes of documents, as (when, key, revision), and of attachments; the highest revision of all, and
        # the highest of those that are no longer among the last.
        self._recent: collections.deque[tuple[float, str, int]] = collections.deque()
        self._recent_parts: collections.deque[tuple[float, str, bytes]] = collections.deque()
        self._highest = 0
        self._safe = 0
        self._losses = 0

    @property
    def position(self) -> int:
        """Everything in the log up to here is folded."""
        return self._applied

    @property
    def stored(self) -> int:
        """Everything in the log up to here is stored."""
        return self._place.position if self._place is not None else 0

    async def run(self) -> None:
        """Project for ever. I/O errors are waited out; a log that is not the one read before begins a new edition."""
        try:
            while True:
                self.ready.clear()
                metrics.PROJECTION_READY.labels(self._name).set(0)
                try:
                    await self._run()
                except* _StartOver as group:
                    log.warning(
                        "projection.start_over", extra={"projection": self._name, "reason": str(group.exceptions[0])}
                    )
        finally:
            # Another replica may keep these documents from now on.
            for gauge in (metrics.PROJECTION_READY, metrics.PROJECTION_POSITION, metrics.PROJECTION_FROZEN):
                gauge.remove(self._name)

    async def _run(self) -> None:
        place = self._place = await self._forever(self._places.start)
        self._cells = Cells(self._view)
        self._applied, self._applied_id, self._live = place.position, place.id, False
        self._highest, self._losses = place.revision, self._bus.mux.losses
        self._recent.clear()
        self._recent_parts.clear()
        self._safe = 0
        self._blank = place.position == 0 and await self._forever(self._nothing_stored)
        await self._thaw(place)
        log.info(
            "projection.start",
            extra={"projection": self._name, "edition": place.edition.prefix, "position": place.position},
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow(place), name=f"projection-{self._name}-follow")
            group.create_task(self._store(), name=f"projection-{self._name}-store")

    # Reading and folding.

    async def _follow(self, place: Place) -> None:
        try:
            async with self._feed.follow(max(place.position - OVERLAP, 0)) as follower:
                with lag_of(self._name, lambda: follower.pending, self._view.name) as lag:
                    async for batch in follower.batches():
                        if batch:
                            await self._fold(batch)
                            lag.took(batch, live=self._live)
                        else:
                            await self._catch_up(place)
        except TrunklineError as error:
            if error.code != "log_regressed":
                raise
            await self._forever(lambda: self._places.abandon(place))
            raise _StartOver(error.message) from error

    async def _fold(self, batch: list[Stored]) -> None:
        await self._load(self._cells.unknown(batch))
        for stored in batch:
            with trace.taking(self._view.name, stored):
                error = self._cells.apply(stored)
            if error is not None:
                await self._bury(stored, error)
        metrics.PROJECTION_APPLIED.labels(self._name).inc(len(batch))
        if batch[-1].sequence > self._applied:
            self._applied, self._applied_id = batch[-1].sequence, batch[-1].id
        if self._live and self._cells.hot:
            self._wake.set()
        if len(self._cells) > MAX_CELLS:
            await self._store_all()
            self._blank = False
            self._cells.forget_some(MAX_CELLS // 2)

    async def _load(self, keys: list[str]) -> None:
        entries: dict[str, kv.Entry] = {}
        if not self._blank:
            names = {self._key(key): key for key in keys}
            found = await self._forever(lambda: kv.get_many(self._bus, self._view.bucket, names))
            entries = {names[name]: entry for name, entry in found.items()}
        for key in keys:
            entry = entries.get(key)
            self._cells.begin(key, entry.value if entry else None, entry.revision if entry else 0)

    async def _thaw(self, place: Place) -> None:
        """Newer code may fold what froze a key: fold its messages again from the first."""
        for key in place.frozen:
            entry = await self._forever(lambda key=key: kv.get(self._bus, self._view.bucket, self._key(key)))
            if entry is None or entry.value is None:
                continue
            messages = await self._forever(
                lambda key=key: read(self._bus, self._stream, self._view.sources(key), until=place.position)
            )
            self._cells.begin(key, None, entry.revision)
            for stored in messages:
                if self._view.key(stored) == key:
                    self._cells.apply(stored)
            if self._cells.document(self._cells[key]) == entry.value:
                self._cells.settle(key)

    async def _bury(self, stored: Stored, error: Exception) -> None:
        log.error(
            "projection.frozen",
            extra={"projection": self._name, "session": stored.session, "sequence": stored.sequence},
            exc_info=error,
        )
        await self._forever(lambda: bury(self._bus, self._service, stored, error))

    async def _same_edition(self) -> None:
        """Parts build one edition: the one that finds the log to be another begins the next for all."""
        assert self._place is not None
        edition = self._place.edition
        try:
            await self._forever(lambda: self._places.check(edition))
        except Superseded:
            raise _StartOver("another part builds a newer edition") from None

    async def _catch_up(self, place: Place) -> None:
        self._live = True
        await self._store_all()
        former = await self._forever(lambda: self._places.publish(place.edition))
        self.ready.set()
        metrics.PROJECTION_READY.labels(self._name).set(1)
        log.info("projection.ready", extra={"projection": self._name, "position": self._applied})
        if former:
            for prefix in former:
                await self._forever(lambda prefix=prefix: kv.clear(self._bus, self._view.bucket, prefix))
            await self._forever(lambda: self._places.forget(place.edition))

    # Storing.

    async def _store(self) -> None:
        clock = asyncio.get_running_loop()
        cold, passing = clock.time() + COLD_S, clock.time() + SYNCED_S
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(cold):
                    await self._wake.wait()
            self._wake.clear()
            if clock.time() >= cold:
                await self._same_edition()
                if self._live and clock.time() >= passing:
                    await self._forever(self._pass_over)
                    passing = clock.time() + PASS_S
                await self._store_all()
                cold = clock.time() + COLD_S
            else:
                async with self._storing:
                    await self._write_some(self._cells.hot)

    async def _pass_over(self) -> None:
        """Go on over what only other parts or projections read: whoever begins here would have to read it.

        Not right behind a write: should the server lose it, what it came from has to be read again.
        """
        if self._recent and asyncio.get_running_loop().time() - self._recent[-1][0] < SYNCED_S:
            return
        end = await direct.end(self._bus, self._stream)
        if end < self._applied + OVERLAP:
            return
        for events in self._feed.filters:
            last = await direct.last(self._bus, self._stream, events)
            if last is not None and last.sequence > self._applied:
                return
        there = await direct.at(self._bus, self._stream, end)
        if end > self._applied:
            self._applied, self._applied_id = end, there.id if there is not None else None

    async def _store_all(self) -> None:
        """Store every changed document, then the position that they make good."""
        async with self._storing:
            if self._bus.mux.losses != self._losses:
                await self._after_outage()
            position, id_ = self._applied, self._applied_id
            pending = list(self._cells.dirty)
            for start in range(0, len(pending), kv.PARALLEL):
                if self._live:
                    await self._write_some(self._cells.hot)
                await self._write_some(self._cells.dirty.intersection(pending[start : start + kv.PARALLEL]))
            await self._commit(position, id_)

    async def _commit(self, position: int, id_: str | None) -> None:
        assert self._place is not None
        frozen = sorted(self._cells.frozen)
        place = msgspec.structs.replace(
            self._place,
            position=position,
            id=id_,
            revision=self._highest,
            frozen=frozen,
            live=self._live,
            filters=tuple(self._view.filters),
        )
        if place == self._place:
            return
        try:
            await self._forever(lambda: self._places.commit(place))
        except Superseded:
            raise _StartOver("another replica builds a newer edition") from None
        self._place = place
        metrics.PROJECTION_POSITION.labels(self._name).set(position)
        metrics.PROJECTION_FROZEN.labels(self._name).set(len(frozen))

    async def _write_some(self, keys: set[str]) -> None:
        if not keys:
            return
        async with asyncio.TaskGroup() as group:
            for key in sorted(keys):
                group.create_task(self._write(key))

    async def _write(self, key: str) -> None:
        """Store one document, unless one with more progress is there."""
        cell = self._cells[key]
        while True:
            self._cells.settle(key)
            # Of one moment: folding goes on meanwhile, and no document may name a part that is not stored.
            document, parts = self._cells.document(cell), self._view.attachments(cell.state)
            try:
                names = await self._write_attachments(key, parts)
                raw = await self._blobs.shrink_value(document, self._fits)
                revision = await kv.update(self._bus, self._view.bucket, self._key(key), raw, revision=cell.revision)
            except TrunklineError as error:
                if error.code == "too_large":
                    log.exception("projection.too_large", extra={"projection": self._name, "key": key})
                    return
                if error.code not in _RETRY or self._bus.writing.is_closed:
                    raise
                await asyncio.sleep(0.1)
                revision = names = None
            if revision is not None and names is not None:
                cell.revision = revision
                self._cells.stored(key, names)
                self._remember(key, revision)
                return
            metrics.PROJECTION_LOST.labels(self._name).inc()
            entry = await self._forever(lambda: kv.get(self._bus, self._view.bucket, self._key(key)))
            if not self._cells.meet(key, entry.value if entry else None, entry.revision if entry else 0):
                return

    async def _write_attachments(self, key: str, parts: Sequence[tuple[str, bytes]]) -> set[str]:
        for name, value in parts:
            await kv.put(self._bus, self._view.bucket, self._key(key, name), value)
            self._recent_parts.append((asyncio.get_running_loop().time(), self._key(key, name), value))
        return {name for name, _ in parts}

    def _fits(self, raw: bytes) -> object:
        return self._view.decode(bytes(decode_document(raw).state))

    def _remember(self, key: str, revision: int) -> None:
        metrics.PROJECTION_WRITES.labels(self._name).inc()
        now = asyncio.get_running_loop().time()
        self._highest = max(self._highest, revision)
        self._recent.append((now, key, revision))
        while self._recent[0][0] < now - _RECENT_S:
            self._safe = max(self._safe, self._recent.popleft()[2])
        while self._recent_parts and self._recent_parts[0][0] < now - _RECENT_S:
            self._recent_parts.popleft()

    async def _after_outage(self) -> None:
        """A server that was killed may have lost the last writes to a bucket: write them again."""
        self._losses = self._bus.mux.losses
        facts = await self._forever(lambda: direct.info(self._bus, kv.stream(self._view.bucket)))
        if facts.last < self._safe:
            raise _StartOver(f"the bucket ends at {facts.last}, and {self._safe} was written long ago")
        self._highest = min(self._highest, facts.last)
        for _, key, _ in self._recent:
            if key in self._cells:
                self._cells.touch(key, hot=False)
        for _, key, value in list(self._recent_parts):
            await self._forever(lambda key=key, value=value: kv.put(self._bus, self._view.bucket, key, value))
        if self._live and self._place is not None:
            edition = self._place.edition
            await self._forever(lambda: self._places.publish(edition))

    def _key(self, *tokens: str) -> str:
        assert self._place is not None
        return self._place.edition.key(*tokens)

    async def _nothing_stored(self) -> bool:
        everything = kv.subject(self._view.bucket, self._key(">"))
        return await direct.last(self._bus, kv.stream(self._view.bucket), everything) is None

    async def _forever(self, call: Callable[[], Awaitable[T]]) -> T:
        """`call()`, repeated while the server can't be reached or has no such bucket."""
        pause = 0.1
        while True:
            try:
                return await call()
            except (*UNANSWERED, APIError) as error:
                why: Exception = error
            except TrunklineError as error:
                if error.code not in _RETRY:
                    raise
                why = error
            if self._bus.writing.is_closed or self._bus.reading.is_closed:
                raise why
            log.warning("projection.waiting", extra={"projection": self._name, "error": str(why)})
            await asyncio.sleep(pause)
            pause = min(pause * 2, 1.0)


class _StartOver(Exception):  # noqa: N818 - control flow
    """What was done so far does not stand: begin again from the place in `trunk_positions`."""

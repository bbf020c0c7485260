"""One Reader for all who follow a stream in a process: the server hands each message over once, however many fold it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import Final, Self

from trunkline_bus import direct
from trunkline_bus.connection import Bus
from trunkline_bus.reader import Reader
from trunkline_bus.stored import Stored
from trunkline_wire import TrunklineError

MAX_QUEUED: Final = 5_000
"""Messages that wait for a follower, at most; one that is slower reads for itself until it has caught up."""

MAX_BYTES: Final = 8 * 1024 * 1024

PACE_S: Final = 0.05
"""Seconds between two looks at a busy log: what nobody waits for is folded many at a time, and not while the processes
that somebody does wait for need the cores (a message costs a sleeping process half a millisecond to wake up for).
"""


class Feed:
    """Reads `filters` of `stream` from its end on, for as long as somebody follows; for streams that never start over.

    What comes after a pause is handed over at once, what follows every PACE_S; `urgent` are filters of messages that
    somebody waits for: they come at once too, with all before them.
    """

    def __init__(self, bus: Bus, stream: str, filters: Sequence[str], *, urgent: Sequence[str] = ()) -> None:
        self.bus = bus
        self.stream = stream
        self.filters = tuple(filters)
        self._urgent = tuple(urgent)
        self._users = 0
        self._joined: set[Follower] = set()
        self._position = 0
        self._reader: Reader | None = None
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task: asyncio.Task[None] | None = None

    def follow(self, after: int) -> "Follower":
        """Everything above the sequence `after`: an async context manager, to be iterated once by `batches()`."""
        return Follower(self, after)

    async def join(self, follower: "Follower") -> int:
        """From the sequence that comes back on, `follower` is offered everything."""
        while True:
            if self._task is None:
                self._opened = asyncio.get_running_loop().create_future()
                self._task = asyncio.create_task(self._run(self._opened), name=f"feed {self.stream}")
            task = self._task
            await asyncio.shield(self._opened)
            if self._task is task:
                self._joined.add(follower)
                return self._position

    @property
    def pending(self) -> int:
        """Messages that the server has and the feed has not."""
        return self._reader.pending if self._reader is not None else 0

    def leave(self, follower: "Follower") -> None:
        self._joined.discard(follower)

    def enter(self) -> None:
        self._users += 1

    async def exit(self) -> None:
        """The last to go ends the Reader."""
        self._users -= 1
        task = self._task
        if self._users or task is None:
            return
        self._task = None
        task.cancel()
        await asyncio.wait((task,))

    async def _run(self, opened: asyncio.Future[None]) -> None:
        try:
            async with (
                asyncio.TaskGroup() as group,
                Reader.new(self.bus, self.stream, self.filters, pace=PACE_S) as reader,
            ):
                if self._urgent:
                    group.create_task(self._listen(reader))
                self._position = reader.position
                self._reader = reader
                opened.set_result(None)
                async for batch in reader.batches():
                    if batch:
                        self._position = batch[-1].sequence
                        for follower in list(self._joined):
                            follower.offer(batch)
        except* Exception as group:  # noqa: BLE001 - whoever follows raises it
            self._fail(group.exceptions[0], opened)
        finally:
            opened.cancel()

    async def _listen(self, reader: Reader) -> None:
        async with Reader.new(self.bus, self.stream, self._urgent) as bell:
            async for _ in bell.batches():
                reader.hurry()

    def _fail(self, error: Exception, opened: asyncio.Future[None]) -> None:
        if self._task is asyncio.current_task():
            self._task = None
        if not opened.done():
            opened.set_exception(error)
            opened.exception()
        for follower in list(self._joined):
            follower.fail(error)
        self._joined.clear()


class Follower:
    """Reads what the log holds already by itself, then takes what the feed brings. Yields what a Reader yields."""

    def __init__(self, feed: Feed, after: int) -> None:
        self.position = after
        """Everything up to this sequence that matches has been handed over (or lies before the start)."""
        self.caught_up = asyncio.Event()
        self._newest: Stored | None = None
        self._own: Reader | None = None
        self._feed = feed
        self._queue: list[Stored] = []
        self._bytes = 0
        self._behind = True
        self._error: Exception | None = None
        self._wake = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._feed.enter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._feed.leave(self)
        await self._feed.exit()

    def offer(self, batch: list[Stored]) -> None:
        """Take what has come, or nothing any more until the queue has been read anew."""
        self._queue += batch
        self._bytes += sum(len(stored.raw) for stored in batch)
        if len(self._queue) > MAX_QUEUED or self._bytes > MAX_BYTES:
            self._feed.leave(self)
            self._behind = True
            self._take()
        self._wake.set()

    @property
    def pending(self) -> int:
        """Messages that it has yet to hand over, as far as is known."""
        return len(self._queue) + (self._own or self._feed).pending

    def fail(self, error: Exception) -> None:
        self._error = error
        self._wake.set()

    async def batches(self) -> AsyncIterator[list[Stored]]:
        """What has arrived, in order, whenever something has; once an empty list, when the backlog has been taken.

        Raises TrunklineError `log_regressed` when the log no longer holds what was read from it.
        """
        while True:
            if self._queue:
                position = self.position
                if batch := [stored for stored in self._take() if stored.sequence > position]:
                    yield batch
                    self._passed(batch)
            elif self._error is not None:
                raise self._error
            elif self._behind:
                self._behind = False
                start = await self._feed.join(self)
                await self._not_regressed(start)
                if self.position < start:
                    async for batch in self._backlog(start):
                        yield batch
                        self._passed(batch)
                    self.position = max(self.position, start)
                if not self.caught_up.is_set() and not self._behind:
                    self.caught_up.set()
                    yield []
            else:
                self._wake.clear()
                await self._wake.wait()

    async def _backlog(self, until: int) -> AsyncIterator[list[Stored]]:
        feed = self._feed
        async with Reader(feed.bus, feed.stream, feed.filters, after=self.position, until=until) as reader:
            self._own = reader
            try:
                async for batch in reader.batches():
                    if batch:
                        yield batch
            finally:
                self._own = None

    def _passed(self, batch: list[Stored]) -> None:
        self._newest = batch[-1]
        self.position = self._newest.sequence

    async def _not_regressed(self, start: int) -> None:
        """Another process may have read more than the feed has, but nobody more than there is; and what was read stands
        where it stood (a store that was put back may have grown past it again).
        """
        bus, stream, newest, why = self._feed.bus, self._feed.stream, self._newest, None
        if self.position > start and self.position > (end := await direct.end(bus, stream)):
            why = f"ends at {end}, and {self.position} was read"
        elif newest is not None:
            there = await direct.at(bus, stream, newest.sequence)
            if there is not None and there.time_ns != newest.time_ns:
                why = f"has another message at {newest.sequence}"
        if why is not None:
            raise TrunklineError(
                "log_regressed", f"the log {stream} {why}: read it anew", stream=stream, position=self.position
            )

    def _take(self) -> list[Stored]:
        queue, self._queue, self._bytes = self._queue, [], 0
        return queue

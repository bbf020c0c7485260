"""A channel: the live events of one session (or of all), encoded once and handed to every subscription.

Facts come from the directory, in stream order; deltas from a Reader of the channel's own. A delta waits for the fact
that it was written after, and is dropped once its item is finished.
"""

import asyncio
import contextlib
import datetime as dt
import logging
from collections import deque
from typing import Final, Protocol

import nats.errors

from trunkline_bus.connection import Bus
from trunkline_bus.reader import Reader
from trunkline_bus.stored import Stored
from trunkline_gateway.blocks import Blocks
from trunkline_gateway.cursors import Cursors
from trunkline_gateway.directory import Directory
from trunkline_gateway.ring import Frame, Rings, frame_of, make_frame
from trunkline_wire import Event, TrunklineError, encode, parse_time, subjects

log = logging.getLogger(__name__)

BACKLOG: Final = dt.timedelta(minutes=10)
"""How far back deltas of an open turn are read when nobody has watched the session before."""
MARGIN: Final = dt.timedelta(seconds=5)
READY_S: Final = 3.0
MAX_HELD: Final = 2_000
RETRY_S: Final = 1.0


class Subscriber(Protocol):
    """Gets every frame as it happens. Must not block."""

    def offer(self, frame: Frame) -> None: ...
    def diverged(self) -> None: ...


class Channel:
    """Run `run()` as a task, then `await opened()`."""

    def __init__(self, bus: Bus, directory: Directory, cursors: Cursors, rings: Rings, session: str | None) -> None:
        self.session = session
        self.subscribers: set[Subscriber] = set()
        self.blocks = Blocks()
        self.deltas = 0
        """Deltas handed on so far: whether anything has changed since a snapshot."""
        self.lives = 0
        """How often the log went back: what was known of an earlier life may be gone."""
        self._bus = bus
        self._directory = directory
        self._cursors = cursors
        self._held: deque[Event] = deque()
        self._ready = asyncio.Event()
        self._rings = rings
        self.ring = rings.open(directory.position)
        self._cursor = cursors.at(session, directory.position, directory.last_id)

    def _begin(self) -> None:
        self._rings.close(self.ring)
        self.ring = self._rings.open(self._directory.position)
        self._cursor = self._cursors.at(self.session, self._directory.position, self._directory.last_id)

    @property
    def filters(self) -> list[str]:
        return [subjects.ALL_EVENTS if self.session is None else subjects.session_events(self.session)]

    def cursor(self) -> str:
        """Where the channel stands: everything up to here has been offered."""
        return self._cursors.at(self.session, self._directory.position, self._directory.last_id)

    @property
    def position(self) -> int:
        """The stream sequence up to which everything has been offered."""
        return self._directory.position

    async def opened(self) -> None:
        """Wait until the log is folded, and the open blocks are known (READY_S at most: deltas are no truth)."""
        await self._directory.ready.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(READY_S):
                await self._ready.wait()

    async def run(self) -> None:
        """Read deltas until cancelled."""
        floor = self._directory.position
        while True:
            try:
                await self._read(floor)
            except (TrunklineError, nats.errors.Error) as error:
                log.warning("deltas_restart", extra={"session": self.session, "error": str(error)})
                await asyncio.sleep(RETRY_S)

    async def _read(self, floor: int) -> None:
        since = self._since()
        if since is not None and floor:
            # What was finished in the open turn so far, so that its deltas do not look open.
            async with Reader(self._bus, subjects.EVENTS, self.filters, since=since, until=floor) as facts:
                async for stored in facts:
                    with contextlib.suppress(TrunklineError):
                        self.blocks.fact(stored.event())
        filters = [subjects.ALL_DELTAS if self.session is None else subjects.session_deltas(self.session)]
        reader = (
            Reader.new(self._bus, subjects.DELTAS, filters, take=self._take)
            if since is None
            else Reader(self._bus, subjects.DELTAS, filters, since=since, take=self._take)
        )
        async with reader:
            async for batch in reader.batches():
                for stored in batch:
                    self._take(stored)
                if not batch and not self._ready.is_set():
                    self._ready.set()
                    # Who did not wait for it gets now what is open.
                    for frame in self.under_way(blocks=True):
                        self._publish(frame)

    def _since(self) -> dt.datetime | None:
        earliest = dt.datetime.now(dt.UTC) - BACKLOG
        if self.session is None:
            return earliest
        state = self._directory.states.get(self.session)
        if state is None or state.turn is None:
            return None
        try:
            return max(earliest, parse_time(state.turn.started) - MARGIN)
        except TrunklineError:
            return earliest

    def on_stored(self, session: str, stored: Stored) -> None:
        """A fact that the directory is about to fold."""
        self._cursor = self._cursors.at(self.session, stored.sequence, stored.id)
        frame = frame_of(stored, session, self._cursor)
        if frame is not None:
            self.ring.append(frame)
            self._publish(frame)

    def on_folded(self, event: Event) -> None:
        """The directory's state holds that fact: deltas that were written after it may go."""
        self.blocks.fact(event)
        if self._held:
            held, self._held = self._held, deque()
            for delta in held:
                self._on_delta(delta, None)

    def on_begun(self) -> None:
        """The directory goes on from another place: facts before it are in the stream alone."""
        self._begin()

    def on_diverged(self) -> None:
        """The log went back: the ring holds what may be gone."""
        self.blocks = Blocks()
        self._held.clear()
        self.lives += 1
        self._begin()
        for subscriber in list(self.subscribers):
            subscriber.diverged()

    def under_way(self, *, blocks: bool) -> list[Frame]:
        """For who was not there: the latest progress of tools and, with `blocks`, each open block as one whole message."""
        events = [*(self.blocks.whole() if blocks else []), *self.blocks.latest()]
        return [self.delta_frame(event) for event in events]

    def _take(self, stored: Stored) -> None:
        with contextlib.suppress(TrunklineError):
            self._on_delta(stored.event(), stored.raw)

    def _on_delta(self, event: Event, raw: bytes | None) -> None:
        state = self._directory.states.get(event.session)
        after = getattr(event.data, "after", 0)
        if state is None or after > state.seq:
            if len(self._held) >= MAX_HELD:
                self._held.popleft()
            self._held.append(event)
            return
        if (event.epoch is not None and event.epoch < state.epoch) or not self.blocks.delta(event):
            return
        self.deltas += 1
        if self._ready.is_set():
            self._publish(self.delta_frame(event, raw))

    def delta_frame(self, event: Event, raw: bytes | None = None) -> Frame:
        return make_frame(0, event.type, event.session, self._cursor, raw or encode(event), event)

    def _publish(self, frame: Frame) -> None:
        for subscriber in list(self.subscribers):
            subscriber.offer(frame)

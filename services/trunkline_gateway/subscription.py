"""One subscription of one connection: live from the channel, or catching up from ring and stream; always in order.

`sent` is the stream sequence up to which everything wanted has been queued. Only what is above it is ever queued, so
there can be neither gap nor repetition, however often the subscription falls back to catching up.
"""

import asyncio
import logging
from typing import Any, Final, Protocol

import nats.errors

from trunkline_bus import metrics
from trunkline_bus.connection import Bus
from trunkline_bus.reader import Reader
from trunkline_gateway.channel import Channel
from trunkline_gateway.cursors import Cursors
from trunkline_gateway.outbox import Outbox
from trunkline_gateway.patterns import Patterns
from trunkline_gateway.ring import Frame, Narrow, frame_of, session_of
from trunkline_gateway.sight import Sight
from trunkline_gateway.thinning import Thinned
from trunkline_wire import Event, TrunklineError, encode, subjects
from trunkline_wire.events import DELTA_TYPES

log = logging.getLogger(__name__)

RETRY_S: Final = 1.0
_DELTAS: Final = frozenset(kind.TYPE for kind in DELTA_TYPES)


class Renders(Protocol):
    """How frames look on a connection."""

    def event(self, frame: Frame) -> bytes: ...
    def gap(self, payload: bytes) -> bytes: ...


class Snapshots(Protocol):
    """Makes the snapshot of a session, or of all."""

    def __call__(self, channel: Channel) -> dict[str, Any]: ...


class Subscription:
    """Run `run()` as a task. `seen` is what the client has already, `deltas_seen` the channel's count at its snapshot.

    `lives` is the channel's at the time when `seen` was known to be of its log, `narrow` binds cursors to the patterns and
    the scope, `sight` is None for who sees all of the channel.
    """

    def __init__(
        self,
        bus: Bus,
        channel: Channel,
        cursors: Cursors,
        outbox: Outbox,
        render: Renders,
        snapshot: Snapshots,
        *,
        patterns: Patterns,
        deltas: bool,
        seen: int,
        deltas_seen: int | None,
        narrow: Narrow | None = None,
        sight: Sight | None = None,
        lives: int = 0,
    ) -> None:
        self.channel = channel
        self.sent = seen
        self._bus = bus
        self._cursors = cursors
        self._outbox = outbox
        self._render = render
        self._snapshot = snapshot
        self._patterns = patterns
        self._deltas = deltas
        self._deltas_seen = deltas_seen
        self._thinned = Thinned()
        self._live = False
        self._narrow = narrow
        self._sight = sight
        self._lives = lives
        self._diverged = False
        self._lagging: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def cursor(self) -> str | None:
        """Where the client may continue; None while it catches up (its last event says so then)."""
        return self._cursor() if self._live else None

    async def run(self) -> None:
        """Deliver until cancelled."""
        self.channel.subscribers.add(self)
        self._diverged = self._lives != self.channel.lives
        try:
            while True:
                self._lagging = asyncio.get_running_loop().create_future()
                try:
                    await self._catch_up()
                except (TrunklineError, nats.errors.Error) as error:
                    # The directory notices a log that went back, and says so; all else passes.
                    log.warning("catching_up_failed", extra={"session": self.channel.session, "error": str(error)})
                    await asyncio.sleep(RETRY_S)
                    continue
                await self._lagging
        finally:
            self.end()
            self.channel.subscribers.discard(self)

    def _cursor(self) -> str:
        cursor = self.channel.cursor()
        return cursor if self._narrow is None else self._narrow(cursor)

    def offer(self, frame: Frame) -> None:
        """Take a live frame, if the subscription is live and wants it."""
        if not self._live or (frame.sequence and frame.sequence <= self.sent):
            return
        if frame.delta is not None and (self._thinned or self._outbox.crowded):
            if self._wants(frame):
                self._thin(frame.delta)
        elif not self._queue(frame):
            self._fall_back()
            metrics.GATEWAY_LAGS.inc()

    def end(self) -> None:
        """Take nothing any more; the task is cancelled after that."""
        self._live = False
        self._thinned.clear()

    def _thin(self, delta: Event) -> None:
        """Leave a delta out until the queue is short again: then one goes for all of its block."""
        if not self._thinned:
            self._outbox.when_written(self._give_merged)
        self._thinned.skip(delta, self.channel.blocks)
        metrics.GATEWAY_THINNED.inc()

    def _give_merged(self) -> None:
        for event in self._thinned.merged(self.channel.blocks):
            self._outbox.force(self._render.event(self.channel.delta_frame(event)))

    def diverged(self) -> None:
        """The log went back: the client is told, and starts from a snapshot."""
        self._diverged = True
        self._fall_back()

    def _fall_back(self) -> None:
        self._live = False
        # Who joins again is given every open block whole.
        self._thinned.clear()
        if not self._lagging.done():
            self._lagging.set_result(None)

    async def _catch_up(self) -> None:
        while True:
            await self._outbox.room()
            if self._diverged:
                await self._start_over()
            newer = self.channel.ring.above(self.sent)
            if newer is None:
                await self._read_stream()
            elif self._queue_all(newer):
                self._join()
                return

    def _join(self) -> None:
        """From here on live: called in the same step as the ring was read."""
        for frame in self.channel.under_way(blocks=self.channel.deltas != self._deltas_seen):
            if self._wants(frame):
                self._outbox.force(self._render.event(frame))
        self._deltas_seen = None
        self._live = True

    async def _read_stream(self) -> None:
        """Read facts from the stream up to where the ring begins."""
        until = self.channel.ring.floor
        async with Reader(self._bus, subjects.EVENTS, self.channel.filters, after=self.sent, until=until) as reader:
            async for batch in reader.batches():
                for stored in batch:
                    cursor = self._cursors.at(self.channel.session, stored.sequence, stored.id)
                    frame = frame_of(stored, session_of(stored.subject), cursor)
                    while frame is not None and not self._queue(frame):
                        await self._outbox.room()
        self.sent = max(self.sent, until)

    async def _start_over(self) -> None:
        await self.channel.opened()
        metrics.GATEWAY_GAPS.labels("log_diverged").inc()
        self._diverged = False
        self.sent, self._deltas_seen = self.channel.position, self.channel.deltas
        payload = {
            "reason": "log_diverged",
            "cursor": self._cursor(),
            "snapshot": self._snapshot(self.channel),
        }
        self._outbox.force(self._render.gap(encode(payload)))

    def _queue_all(self, frames: list[Frame]) -> bool:
        return all(self._queue(frame) for frame in frames)

    def _queue(self, frame: Frame) -> bool:
        if self._wants(frame) and not self._outbox.push(self._render.event(frame)):
            return False
        if frame.sequence:
            self.sent = frame.sequence
        return True

    def _wants(self, frame: Frame) -> bool:
        if not frame.sequence and not self._deltas:
            return False
        return self._patterns.matches(frame.type) and (self._sight is None or self._sight.frame(frame))

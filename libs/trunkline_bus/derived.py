"""Appends of services that derive events from others': decided once, recorded once, whoever of them is first."""

import time
from typing import Final

from trunkline_bus import metrics, trace
from trunkline_bus.append import Conflict, store
from trunkline_bus.blobs import Blobs
from trunkline_bus.connection import Bus
from trunkline_bus.outcome import Message
from trunkline_wire import Data, Event, Source, TrunklineError, encode, make_event, subjects, timestamp
from trunkline_wire.events import PERMISSION_EVENTS, TEAM_EVENTS
from trunkline_wire.subjects import Channel

_CHANNELS: Final[dict[type[Data], Channel]] = {
    **dict.fromkeys(PERMISSION_EVENTS, "permission"),
    **dict.fromkeys(TEAM_EVENTS, "team"),
}


class DerivedWriter:
    """Appends to a session's `permission` or `team` subject behind what the caller has folded of it."""

    def __init__(self, bus: Bus, service: str) -> None:
        self._bus, self._service, self._blobs = bus, service, Blobs(bus)

    async def append(
        self,
        session: str,
        channel: Channel,
        data: Data,
        *,
        expected: int,
        src: tuple[str, int, int],
        cause: str | None = None,
        source: Source | None = None,
    ) -> int | None:
        """The event's stream sequence; None where another one stands behind `expected`: read on, fold, decide again.

        `expected` is the stream sequence of the last event of this very subject in the caller's fold, 0 for none;
        `src` the source event: (stream, sequence, which of its results). None may also mean that this event was
        stored and another followed at once: the fold then shows it.
        Raises TrunklineError `bad_event` for a payload of another channel, and what `append.store` raises.
        """
        event = make_event(data, session=session, time=timestamp(), src=src, cause=cause, source=source)
        return await self.append_event(channel, event, expected=expected)

    async def append_event(self, channel: Channel, event: Event, *, expected: int) -> int | None:
        """As `append`, for an event that is made already: one with an id of its source is stored once, whoever makes it."""
        data = event.data
        if _CHANNELS.get(type(data)) != channel:
            raise TrunklineError("bad_event", f"{self._service!r} may not write a {data.TYPE!r} to {channel!r}")
        subject = subjects.event(event.session, channel)
        headers, span = trace.appending(event.type, subjects.EVENTS, event.id, None)
        message = Message(
            subject=subject,
            filter=subject,
            id=event.id,
            type=event.type,
            payload=await self._blobs.shrink_encoded(event, encode(event)),
            headers=headers,
        )
        started = time.monotonic()
        try:
            sequence = await store(self._bus.mux, self._bus.layout.of(event.session), message, expected=expected)
        except Conflict:
            return None
        finally:
            if span is not None:
                span.end()
        metrics.APPENDS.labels(event.type).inc()
        metrics.APPEND_SECONDS.observe(time.monotonic() - started, trace.exemplar(span))
        return sequence

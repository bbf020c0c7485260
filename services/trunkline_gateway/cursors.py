"""Cursors of the gateway: a place in the log, bound to what the subscription may see."""

import functools

from trunkline_bus.connection import Bus
from trunkline_bus.cursor import Cursor, CursorCodec, Gap, scope_hash, verify
from trunkline_wire import subjects


class Cursors:
    """Mints cursors of the present log. The codec's secret is the same in every gateway of a log."""

    def __init__(self, bus: Bus, codec: CursorCodec) -> None:
        self._bus = bus
        self._codec = codec

    def at(self, session: str | None, sequence: int, event: str | None) -> str:
        """The cursor behind `sequence`, where the event `event` stands; `session` None is all sessions."""
        ids = {} if event is None else {subjects.EVENTS: event}
        return self._codec.encode(
            Cursor(log=self._bus.log_id, positions={subjects.EVENTS: sequence}, ids=ids, scope=scope(session))
        )

    def read(self, text: str) -> Cursor:
        """Raises TrunklineError `bad_cursor`."""
        return self._codec.decode(text)

    async def verify(self, cursor: Cursor, session: str | None, filters: list[str]) -> Gap | None:
        """Why not everything above `cursor` can be given; None where it can."""
        return await verify(self._bus, cursor, scope=scope(session), filters=filters)


@functools.lru_cache(maxsize=1024)
def scope(session: str | None) -> str:
    """What a cursor is bound to: the filter. All roles see the same events."""
    return scope_hash("events", session or "*")


def position(cursor: Cursor) -> int:
    """The place in EVENTS behind which a client continues."""
    return cursor.positions.get(subjects.EVENTS, 0)

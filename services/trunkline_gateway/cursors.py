"""Cursors of the gateway: a place in the log, bound to what the subscription may see."""

import functools
from typing import Final

from msgspec.structs import replace

from trunkline_bus.connection import Bus
from trunkline_bus.cursor import Cursor, CursorCodec, Gap, scope_hash, verify
from trunkline_wire import TrunklineError, subjects

NARROW_KEPT: Final = 512
"""Narrowed cursors remembered: an event goes to many subscriptions of one scope, and many deltas share a cursor."""


class Cursors:
    """Mints cursors of the present log. The codec's secret is the same in every gateway of a log."""

    def __init__(self, bus: Bus, codec: CursorCodec) -> None:
        self._bus = bus
        self._codec = codec
        self.narrowed = functools.lru_cache(maxsize=NARROW_KEPT)(self._narrowed)
        """A cursor `text` of this gateway, bound to `scope` instead of every type."""

    def at(self, session: str | None, sequence: int, event: str | None) -> str:
        """The cursor behind `sequence`, where the event `event` stands; `session` None is all sessions."""
        return self._codec.at(self._bus.log_id, scope(session), subjects.EVENTS, sequence, event)

    def read(self, text: str) -> Cursor:
        """Raises TrunklineError `bad_cursor`."""
        return self._codec.decode(text)

    def place(self, text: str) -> int:
        """The place in EVENTS of a cursor of the present log. Raises TrunklineError `bad_cursor`."""
        cursor = self.read(text)
        if cursor.log != self._bus.log_id:
            raise TrunklineError("bad_cursor", "the cursor is of another log, which was restored or made anew")
        return position(cursor)

    async def verify(self, cursor: Cursor, session: str | None, bound: str, filters: list[str]) -> Gap | None:
        """Why not everything of the scope `bound` above `cursor` can be given; None where it can.

        A cursor of all that there is will do for some of it: its holder has seen that too.
        """
        wide = scope(session)
        wanted = wide if cursor.scope == wide else bound
        return await verify(self._bus, cursor, scope=wanted, filters=filters)

    def _narrowed(self, text: str, scope: str) -> str:
        return self._codec.encode(replace(self._codec.decode(text), scope=scope))


@functools.lru_cache(maxsize=1024)
def scope(session: str | None, types: str = "", rights: str = "") -> str:
    """What a cursor is bound to: the filter (`types` is `Patterns.scope`), and what is seen at all (`Scope.rights`).

    All roles see the same events.
    """
    return scope_hash("events", session or "*", *((types,) if types or rights else ()), *((rights,) if rights else ()))


def position(cursor: Cursor) -> int:
    """The place in EVENTS behind which a client continues."""
    return cursor.positions.get(subjects.EVENTS, 0)

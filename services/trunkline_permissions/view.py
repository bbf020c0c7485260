"""The projection `trunk_asks`: one document a session, its desk."""

from collections.abc import Sequence
from typing import ClassVar

from trunkline_bus.stored import Stored
from trunkline_bus.views import View
from trunkline_permissions import desk as desks
from trunkline_permissions.desk import Desk
from trunkline_wire import subjects
from trunkline_wire.ids import is_id
from trunkline_wire.subjects import Channel

FILTERS = (subjects.ALL_ASKS, subjects.ALL_PERMISSIONS, subjects.ALL_FACTS)


class AsksView(View[Desk]):
    """Pure; see `trunkline_bus.views`."""

    name: ClassVar[str] = "asks"
    bucket: ClassVar[str] = subjects.KV_ASKS
    version: ClassVar[int] = desks.VERSION
    filters: ClassVar[Sequence[str]] = FILTERS

    def key(self, stored: Stored) -> str | None:
        return session_of(stored)

    def initial(self, key: str) -> Desk:
        return Desk(session=key)

    def fold(self, state: Desk, stored: Stored) -> Desk:
        return fold_stored(state, stored)

    def encode(self, state: Desk) -> bytes:
        return desks.encode_desk(state)

    def decode(self, raw: bytes) -> Desk:
        return desks.decode_desk(raw)

    def hot(self, before: Desk, after: Desk) -> bool:
        return before.asks.asks is not after.asks.asks


def session_of(stored: Stored) -> str | None:
    """The session whose desk a message changes, None for the many facts that change none."""
    parsed = subjects.parse(stored.subject)
    if parsed is None or not is_id(parsed.session, "ses"):
        return None
    if parsed.rest == "agent.fact" and stored.type not in desks.FACTS:
        return None
    return parsed.session


def fold_stored(desk: Desk, stored: Stored) -> Desk:
    """The desk after a message of EVENTS. Raises `bad_event` for one that can't be read."""
    return desks.fold_desk(desk, stored.event(), stored.sequence, channel_of(stored), stored.time)


def channel_of(stored: Stored) -> Channel | None:
    parsed = subjects.parse(stored.subject)
    return "permission" if parsed is not None and parsed.rest == "permission" else None

"""Where the directory begins: the stored projections of sessions and asks, instead of the log's first event.

They are a short cut and no truth: whatever does not fit (no projection, another version, another log, a bucket that went
back) is left aside, and the log is folded from its start.
"""

import logging
from typing import Final, TypeVar

import msgspec

from trunkline_bus import direct, kv, mirror
from trunkline_bus.connection import Bus
from trunkline_bus.places import Place, read_place
from trunkline_bus.projection import OVERLAP
from trunkline_bus.views import decode_document
from trunkline_fold.asks import AsksState
from trunkline_fold.session import SessionState
from trunkline_fold.state import VERSION
from trunkline_wire import TrunklineError, subjects

log = logging.getLogger(__name__)

T = TypeVar("T")

SESSIONS: Final = "sessions"
ASKS: Final = "asks"


class Base(msgspec.Struct, frozen=True, kw_only=True):
    """States that hold everything up to `position` (some hold more), and the sessions that stand still."""

    position: int = 0
    states: dict[str, SessionState] = {}
    asks: dict[str, AsksState] = {}
    frozen: frozenset[str] = frozenset()


class _Desk(msgspec.Struct, frozen=True):
    """What this program needs of a document of asks."""

    asks: AsksState


class _Read(msgspec.Struct, frozen=True):
    position: int
    states: dict[str, bytes]
    frozen: set[str]


async def load_base(bus: Bus) -> Base:
    """The newest base there is; an empty one where there is none. Raises TrunklineError `log_unavailable`."""
    sessions = await _read(bus, subjects.KV_SESSIONS, SESSIONS, version=VERSION)
    asks = await _read(bus, subjects.KV_ASKS, ASKS, version=None)
    if sessions is None or asks is None:
        return Base()
    try:
        return Base(
            # On one replica the newest documents may be lost with the server: a part is read again, which is harmless.
            position=max(0, min(sessions.position, asks.position) - OVERLAP),
            states={key: msgspec.json.decode(raw, type=SessionState) for key, raw in sessions.states.items()},
            asks={key: msgspec.json.decode(raw, type=_Desk).asks for key, raw in asks.states.items()},
            frozen=frozenset(sessions.frozen),
        )
    except msgspec.MsgspecError as error:
        log.warning("base_not_understood", extra={"error": str(error)})
        return Base()


async def _read(bus: Bus, bucket: str, name: str, *, version: int | None) -> _Read | None:
    edition = await mirror.edition(bus, bucket)
    if edition is None or edition.log != bus.log_id or (version is not None and edition.version != version):
        return None
    try:
        place = await read_place(bus, name, edition)
        if place is None or not await _stands(bus, bucket, place):
            return None
        found = await kv.entries(bus, bucket, edition.key("*"))
        documents = {one.key.partition(".")[2]: decode_document(one.value) for one in found if one.value is not None}
    except (msgspec.MsgspecError, TrunklineError) as error:
        log.warning("base_not_readable", extra={"bucket": bucket, "error": str(error)})
        return None
    return _Read(
        place.position,
        {key: bytes(document.state) for key, document in documents.items()},
        {key for key, document in documents.items() if document.frozen is not None},
    )


async def _stands(bus: Bus, bucket: str, place: Place) -> bool:
    """Whether the log is still the one that was folded, and the bucket still has all that was written."""
    if (await direct.info(bus, kv.stream(bucket))).last < place.revision:
        return False
    if place.position > await direct.end(bus, subjects.EVENTS):
        return False
    if place.id is None:
        return True
    there = await direct.at(bus, subjects.EVENTS, place.position)
    return there is None or there.id == place.id

"""Where to begin: the desks of the projection and its place in the log, so that a start need not read all of it."""

import asyncio
import logging
from typing import Final

import msgspec

from trunkline_bus import kv
from trunkline_bus.connection import Bus
from trunkline_bus.patience import UNANSWERED
from trunkline_bus.places import Places
from trunkline_bus.projection import OVERLAP
from trunkline_bus.views import decode_document
from trunkline_permissions.desk import Desk, decode_desk
from trunkline_permissions.view import AsksView
from trunkline_wire import TrunklineError

log = logging.getLogger(__name__)

RETRY_S: Final = 0.2


class Remembered(msgspec.Struct, frozen=True):
    """`after` is the sequence of EVENTS to read on from; `frozen` are sessions with an event that can't be read."""

    desks: dict[str, Desk]
    frozen: frozenset[str]
    after: int


async def remember(bus: Bus) -> Remembered:
    """The desks as stored, checked against the log; none where they are of another version or another log.

    Waits for a bucket without a leader, as the projection does. Raises TrunklineError `log_unavailable` where the
    connection is closed for good.
    """
    while True:
        try:
            return await _remember(bus)
        except (*UNANSWERED, TrunklineError) as error:
            if bus.writing.is_closed or (isinstance(error, TrunklineError) and error.code != "log_unavailable"):
                raise
            log.warning("remembering_waits", extra={"error": str(error)})
        await asyncio.sleep(RETRY_S)


async def _remember(bus: Bus) -> Remembered:
    view = AsksView
    place = await Places(bus, view.name, view.version, view.bucket).start()
    desks: dict[str, Desk] = {}
    frozen: set[str] = set()
    for entry in await kv.entries(bus, view.bucket, f"{place.edition.prefix}.*"):
        session = entry.key.rpartition(".")[2]
        assert entry.value is not None
        document = decode_document(entry.value)
        desks[session] = decode_desk(bytes(document.state))
        if document.frozen is not None:
            frozen.add(session)
    return Remembered(desks, frozenset(frozen), max(0, place.position - OVERLAP))

"""Where to begin: the desks of the projection and its place in the log, so that a start need not read all of it."""

import msgspec

from trunkline_bus import kv
from trunkline_bus.connection import Bus
from trunkline_bus.places import Places
from trunkline_bus.projection import OVERLAP
from trunkline_bus.views import decode_document
from trunkline_permissions.desk import Desk, decode_desk
from trunkline_permissions.view import AsksView


class Remembered(msgspec.Struct, frozen=True):
    """`after` is the sequence of EVENTS to read on from; `frozen` are sessions with an event that can't be read."""

    desks: dict[str, Desk]
    frozen: frozenset[str]
    after: int


async def remember(bus: Bus) -> Remembered:
    """The desks as stored, checked against the log; none where they are of another version or another log."""
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

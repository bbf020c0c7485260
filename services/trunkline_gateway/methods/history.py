"""`session.history`: any page of a session's events, by direct gets of known sequences."""

import bisect
from typing import Any, Final

import msgspec

from trunkline_bus import direct
from trunkline_bus.stored import Stored
from trunkline_gateway.cursors import position
from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.registry import Params, method
from trunkline_wire import TrunklineError, subjects
from trunkline_wire.ids import check_id

MAX_PAGE: Final = 500
MAX_PAGE_BYTES: Final = 4 * 1024 * 1024
"""A page of large events is cut short: the next one goes on behind it."""

_CHUNK: Final = 64


class History(Params, frozen=True, kw_only=True):
    session: str
    before: str | None = None
    after: str | None = None
    limit: int = 50


@method("session.history", "viewer", History)
async def history(gateway: Gateway, _: Caller, params: History) -> dict[str, Any]:
    """Events in order: the latest ones, or those just `before` or just `after` the cursor of an event."""
    check_id(params.session, "ses")
    if params.before is not None and params.after is not None:
        raise TrunklineError("bad_params", "give `before` or `after`, not both", field="before")
    if not 1 <= params.limit <= MAX_PAGE:
        raise TrunklineError("bad_params", f"limit must be between 1 and {MAX_PAGE}", field="limit")
    await gateway.directory.session(params.session)
    known = gateway.directory.sequences(params.session)
    if params.after is not None:
        start = bisect.bisect_right(known, position(gateway.cursors.read(params.after)))
        page, cut = await _forwards(gateway, list(known[start : start + params.limit]))
        has_more = cut or start + params.limit < len(known)
    else:
        end = len(known)
        if params.before is not None:
            end = bisect.bisect_left(known, position(gateway.cursors.read(params.before)))
        first = max(0, end - params.limit)
        page, cut = await _backwards(gateway, list(known[first:end]))
        has_more = cut or first > 0
    events = [
        {
            "cursor": gateway.cursors.at(params.session, stored.sequence, stored.id),
            "event": msgspec.Raw(stored.raw),
        }
        for stored in page
    ]
    return {"events": events, "total": len(known), "has_more": has_more}


async def _forwards(gateway: Gateway, sequences: list[int]) -> tuple[list[Stored], bool]:
    """The first of `sequences`, and whether some behind them are left."""
    page: list[Stored] = []
    size = 0
    for start in range(0, len(sequences), _CHUNK):
        for stored in await direct.get(gateway.bus, subjects.EVENTS, sequences[start : start + _CHUNK]):
            size += len(stored.raw)
            if page and size > MAX_PAGE_BYTES:
                return page, True
            page.append(stored)
    return page, False


async def _backwards(gateway: Gateway, sequences: list[int]) -> tuple[list[Stored], bool]:
    """The last of `sequences`, and whether some before them are left (erased ones are passed over)."""
    page: list[Stored] = []
    size = 0
    for end in range(len(sequences), 0, -_CHUNK):
        found = await direct.get(gateway.bus, subjects.EVENTS, sequences[max(0, end - _CHUNK) : end])
        for stored in reversed(found):
            size += len(stored.raw)
            if page and size > MAX_PAGE_BYTES:
                return page[::-1], True
            page.append(stored)
    return page[::-1], False

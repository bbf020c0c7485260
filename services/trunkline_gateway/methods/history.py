"""`session.history`: any page of a session's events."""

from typing import Any, Final

import msgspec

from trunkline_bus.pages import history_page
from trunkline_bus.stored import Stored
from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.registry import Params, method
from trunkline_wire import TrunklineError
from trunkline_wire.ids import check_id

MAX_PAGE: Final = 500
MAX_PAGE_BYTES: Final = 4 * 1024 * 1024
"""A page of large events is cut short: the next one goes on behind it."""


class History(Params, frozen=True, kw_only=True):
    session: str
    before: str | None = None
    after: str | None = None
    limit: int = 50


@method("session.history", "viewer", History)
async def history(gateway: Gateway, _: Caller, params: History) -> dict[str, Any]:
    """Events in order: the latest ones, or those just `before` or just `after` the cursor of an event.

    Pages that go back begin with the start of a message where they can, and may be a little longer for it.
    """
    check_id(params.session, "ses")
    if params.before is not None and params.after is not None:
        raise TrunklineError("bad_params", "give `before` or `after`, not both", field="before")
    if not 1 <= params.limit <= MAX_PAGE:
        raise TrunklineError("bad_params", f"limit must be between 1 and {MAX_PAGE}", field="limit")
    before = None if params.before is None else gateway.cursors.place(params.before)
    after = None if params.after is None else gateway.cursors.place(params.after)
    page = await history_page(gateway.bus, params.session, before=before, after=after, limit=params.limit)
    if page.total == 0:
        raise TrunklineError("unknown_session", f"there is no session {params.session!r}", session=params.session)
    # Going back the last events matter most, going on the first.
    kept = _fitting(page.stored) if after is not None else _fitting(page.stored[::-1])[::-1]
    beyond = page.after if after is not None else page.before
    events = [
        {"cursor": gateway.cursors.at(params.session, one.sequence, one.id), "event": msgspec.Raw(one.raw)}
        for one in kept
    ]
    return {"events": events, "total": page.total, "has_more": beyond > 0 or len(kept) < len(page.stored)}


def _fitting(stored: list[Stored]) -> list[Stored]:
    """As many of the first as MAX_PAGE_BYTES hold, one at least."""
    size = 0
    for number, one in enumerate(stored):
        size += len(one.raw)
        if number and size > MAX_PAGE_BYTES:
            return stored[:number]
    return stored

"""`session.history`: any page of a session's events, on request with the results of tools beside their calls."""

from typing import Final, NotRequired

import msgspec

from trunkline_bus import pages
from trunkline_bus.pages import history_page
from trunkline_bus.stored import Stored
from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.registry import PAGE, EventAt, Page, Params, method
from trunkline_wire import TrunklineError
from trunkline_wire.ids import check_id
from trunkline_wire.turn import ToolCompleted, ToolStarted

MAX_PAGE: Final = 500
MAX_PAGE_BYTES: Final = 4 * 1024 * 1024
"""A page of large events is cut short: the next one goes on behind it."""
MAX_AHEAD: Final = 2_000
"""HistoryPage behind a page that are searched for the results of its calls."""


class History(Params, frozen=True, kw_only=True):
    session: str
    before: str | None = None
    after: str | None = None
    limit: int = PAGE
    join: bool = False
    """Put the result of each tool call beside the call."""


class HistoryEntry(EventAt):
    """`result`: of a tool's call, where results are joined."""

    result: NotRequired[EventAt]


class HistoryPage(Page):
    """`before` and `after` are cursors."""

    events: list[HistoryEntry]
    before: str | None
    after: str | None


@method("session.history", "viewer", History)
async def history(gateway: Gateway, _: Caller, params: History) -> HistoryPage:
    """HistoryPage in order: the latest ones, or those just `before` or just `after` the cursor of an event.

    Pages that go back begin with the start of a message where they can, and may be a little longer for it; `before` and
    `after` of the answer are where the pages around it go on. With `join` a `tool.started` has its `tool.completed` as
    `result`, also one that stands up to MAX_AHEAD events behind the page, and a result is no entry of its own where its call
    is on the page.
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
    results = await _results(gateway, params.session, page, kept) if params.join and kept else {}
    taken = {result.sequence for result in results.values()}

    def told(one: Stored) -> EventAt:
        return {"cursor": gateway.cursors.at(params.session, one.sequence, one.id), "event": msgspec.Raw(one.raw)}

    def entry(one: Stored) -> HistoryEntry:
        result = results.get(one.sequence)
        return {**told(one)} if result is None else {**told(one), "result": told(result)}

    events = [entry(one) for one in kept if one.sequence not in taken]
    return {
        "events": events,
        "total": page.total,
        "has_more": beyond > 0 or len(kept) < len(page.stored),
        "before": told(kept[0])["cursor"] if kept else None,
        "after": told(kept[-1])["cursor"] if kept else None,
    }


class _Head(msgspec.Struct):
    item: str | None = None


def _item(stored: Stored) -> str | None:
    try:
        return msgspec.json.decode(stored.raw, type=_Head).item
    except msgspec.MsgspecError:
        return None


async def _results(gateway: Gateway, session: str, page: pages.Page, kept: list[Stored]) -> dict[int, Stored]:
    """The results of the calls among `kept`, by the sequences of the calls; no more behind them than a page's bytes."""
    calls = {item: one.sequence for one in kept if one.type == ToolStarted.TYPE and (item := _item(one)) is not None}
    found: dict[int, Stored] = {}
    room = MAX_PAGE_BYTES - sum(len(one.raw) for one in kept)
    ahead, behind, last = [one for one in page.stored if one.sequence >= kept[0].sequence], page.after, page.stored[-1]
    searched = 0
    while True:
        for one in ahead:
            if not calls or one.type != ToolCompleted.TYPE:
                continue
            call = calls.pop(_item(one) or "", None)
            beyond = one.sequence > kept[-1].sequence
            if call is not None and (not beyond or len(one.raw) <= room):
                found[call] = one
                room -= len(one.raw) if beyond else 0
        if not calls or not behind or searched >= MAX_AHEAD:
            return found
        following = await history_page(gateway.bus, session, after=last.sequence, limit=MAX_PAGE)
        if not following.stored:
            return found
        ahead, behind, last = following.stored, following.after, following.stored[-1]
        searched += len(ahead)


def _fitting(stored: list[Stored]) -> list[Stored]:
    """As many of the first as MAX_PAGE_BYTES hold, one at least."""
    size = 0
    for number, one in enumerate(stored):
        size += len(one.raw)
        if number and size > MAX_PAGE_BYTES:
            return stored[:number]
    return stored

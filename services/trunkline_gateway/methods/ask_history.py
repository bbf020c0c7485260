"""`ask.history`: every ask with its whole story, for the audit."""

from typing import Final

from trunkline_fold.asks import Ask, AskStatus
from trunkline_fold.stories import Story
from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.registry import Page, Params, method
from trunkline_gateway.sight import Sight, require_sight
from trunkline_gateway.stories import all_records, stories
from trunkline_wire import TrunklineError, parse_time
from trunkline_wire.ids import check_id

MAX_PAGE: Final = 200


class History(Params, frozen=True, kw_only=True):
    """`since` and `until` are times (RFC 3339) of the asks; `by` is a person, `policy`, `agent`, or a rule's name."""

    session: str | None = None
    status: AskStatus | None = None
    since: str | None = None
    until: str | None = None
    by: str | None = None
    tool: str | None = None
    limit: int = 50
    cursor: str | None = None


class AskStories(Page):
    asks: list[Story]
    cursor: str | None


@method("ask.history", "viewer", History, limited="itself")
async def history(gateway: Gateway, caller: Caller, params: History) -> AskStories:
    """Asks with all that became of them, the latest first; `cursor` is where the next page goes on, null on the last."""
    if not 1 <= params.limit <= MAX_PAGE:
        raise TrunklineError("bad_params", f"limit must be between 1 and {MAX_PAGE}", field="limit")
    before = None if params.cursor is None else gateway.cursors.place(params.cursor)
    records = [record for record in await _records(gateway, caller, params.session) if _wanted(record, params)]
    total = len(records)
    if before is not None:
        records = [record for record in records if record.sequence < before]
    records.sort(key=_by_sequence, reverse=True)
    page = records[: params.limit]
    more = len(records) > len(page)
    return {
        "asks": await stories(gateway.bus, gateway.directory, page),
        "cursor": gateway.cursors.at(params.session, page[-1].sequence, page[-1].event) if more else None,
        "total": total,
        "has_more": more,
    }


async def _records(gateway: Gateway, caller: Caller, session: str | None) -> list[Ask]:
    if session is not None:
        await require_sight(gateway.directory, caller.principal, check_id(session, "ses"))
        await gateway.directory.session(session)
        return await all_records(gateway.bus, gateway.directory, session)
    sight = Sight(gateway.directory, caller.principal.scope)
    found: list[Ask] = []
    for state in sight.states():
        found += await all_records(gateway.bus, gateway.directory, state.session)
    return found


def _by_sequence(record: Ask) -> int:
    return record.sequence


def _wanted(record: Ask, params: History) -> bool:
    asked = parse_time(record.time)
    return (
        (params.status is None or record.status == params.status)
        and (params.since is None or asked >= parse_time(params.since))
        and (params.until is None or asked <= parse_time(params.until))
        and (params.by is None or params.by in _by(record))
        and (params.tool is None or getattr(record.requested, "name", None) == params.tool)
    )


def _by(record: Ask) -> set[str | None]:
    """Who and what took part in a record's end: the decider, its rule, those who voted."""
    voters: set[str | None] = {vote.by for vote in record.votes}
    if record.decision is not None:
        return {record.decision.by, record.decision.rule, *voters}
    if record.expired is not None:
        return {"policy", record.routed.rule if record.routed is not None else None, *voters}
    return {"agent", *voters} if record.status in ("withdrawn", "lost") else voters

"""What to append next for a session: the policy's word, an expiry, an answer's outcome; one step at a time. Pure."""

import datetime as dt
from collections.abc import Callable, Sequence

import msgspec

from trunkline_fold.asks import AskRecord, RuleRecord
from trunkline_fold.policy import Ruling
from trunkline_fold.session_rules import covering
from trunkline_permissions.answers import Given, judge
from trunkline_permissions.desk import Desk
from trunkline_wire import Data, parse_time, subjects, timestamp
from trunkline_wire.actors import POLICY
from trunkline_wire.asks import AskDecided, AskExpired, AskOption, AskRouted, PermissionRequested, PlanProposed
from trunkline_wire.events import Source

DEFAULT_RULE = "default"
ROUTED, EXPIRED, REMEMBERED = 0, 1, 2
"""Which result of an ask's event: what the policy said, its expiry, or what a rule of the session said."""

Judge = Callable[[Desk, AskRecord], Ruling]


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """An event to append to the session's permission subject; `src` is [stream, sequence, k], `cause` an id."""

    data: Data
    src: tuple[str, int, int]
    cause: str | None = None
    source: Source | None = None


def next_step(desk: Desk, given: Sequence[Given], now: dt.datetime, ruling: Judge, ruled: set[str]) -> Step | None:
    """The next event that `desk` lacks, None when all is said.

    `given` are the session's answers in stream order, `now` the server's time. `ruled` are the open asks that the policy
    has nothing more to say about; asks are added to it.
    """
    if not desk.exists:
        return None
    for record in desk.asks.open:
        remembered = covering(desk.asks.rules, record.requested)
        if record.routed is not None:
            if remembered is not None and _plain(record):
                return _remembered(record, remembered)
            continue
        if record.ask in ruled and remembered is None:
            continue
        said = ruling(desk, record)
        if remembered is not None and said.plain:
            return _remembered(record, remembered)
        step = policy_step(record, said, arrived(desk, record))
        if step is not None:
            return step
        ruled.add(record.ask)
    due = _first_due(desk, now)
    for answer in given:
        if answer.sequence <= desk.asks.marks.get(subjects.COMMANDS, 0):
            continue
        if desk.answered(answer.answer):
            continue
        # What expired before the answer was given has expired, however late this service sees both.
        if due is not None and expires_at(due) <= _moment(answer.time_ns):
            return _expiry(due)
        return Step(
            data=judge(desk.record(answer.answer.ask), answer, desk.asks.rules),
            src=(subjects.COMMANDS, answer.sequence, 0),
            cause=answer.answer.id,
            source=answer.source,
        )
    return _expiry(due) if due is not None else None


def policy_step(record: AskRecord, ruling: Ruling, asked: dt.datetime) -> Step | None:
    """What the policy's ruling appends: a decision, or how long the ask waits and whom it needs; None: nothing."""
    src, cause = (subjects.EVENTS, record.sequence, ROUTED), record.event
    if ruling.action != "ask":
        data = AskDecided(
            ask=record.ask,
            behaviour=ruling.action,
            by=POLICY,
            rule=ruling.rule or DEFAULT_RULE,
            option=_option(record.requested, ruling.action),
            message=ruling.message,
        )
        return Step(data=data, src=src, cause=cause, source=Source(actor=POLICY))
    if ruling.expires_after is None and ruling.plain:
        return None
    expiry = None if ruling.expires_after is None else asked + dt.timedelta(seconds=ruling.expires_after)
    routed = AskRouted(
        ask=record.ask,
        policy=ruling.policy_version,
        rule=ruling.rule,
        expires_at=None if expiry is None else timestamp(expiry),
        on_expiry=ruling.on_expiry,
        quorum=ruling.quorum,
        role=ruling.role,
        signed=ruling.signed,
    )
    return Step(data=routed, src=src, cause=cause, source=Source(actor=POLICY))


def arrived(desk: Desk, record: AskRecord) -> dt.datetime:
    """When the server stored the ask."""
    return parse_time(desk.arrived.get(record.ask, record.time))


def _plain(record: AskRecord) -> bool:
    """Whether whoever may answer at all may answer this ask alone."""
    routed = record.routed
    return routed is None or (routed.quorum == 1 and routed.role is None and not routed.signed)


def _remembered(record: AskRecord, rule: RuleRecord) -> Step:
    """What a person allowed for good is allowed again, in the rule's name."""
    data = AskDecided(
        ask=record.ask, behaviour="allow", by=POLICY, rule=rule.rule, option=_option(record.requested, "allow")
    )
    src = (subjects.EVENTS, record.sequence, REMEMBERED)
    return Step(data=data, src=src, cause=record.event, source=Source(actor=POLICY))


def next_expiry(desk: Desk) -> dt.datetime | None:
    """When the next of a session's open asks expires."""
    return min((expires_at(record) for record in _expiring(desk)), default=None)


def expires_at(record: AskRecord) -> dt.datetime:
    assert record.routed is not None
    assert record.routed.expires_at is not None
    return parse_time(record.routed.expires_at)


def _expiring(desk: Desk) -> list[AskRecord]:
    if not desk.exists:
        return []
    return [record for record in desk.asks.open if record.routed is not None and record.routed.expires_at is not None]


def _first_due(desk: Desk, now: dt.datetime) -> AskRecord | None:
    due = [record for record in _expiring(desk) if expires_at(record) <= now]
    return min(due, key=expires_at, default=None)


def _expiry(record: AskRecord) -> Step:
    assert record.routed is not None
    data = AskExpired(ask=record.ask, behaviour=record.routed.on_expiry)
    return Step(
        data=data,
        src=(subjects.EVENTS, record.sequence, EXPIRED),
        cause=record.event,
        source=Source(actor=POLICY),
    )


def _option(requested: Data, behaviour: str) -> str | None:
    """The agent's own option that says so, for this time only."""
    options: list[AskOption] = requested.options if isinstance(requested, PermissionRequested | PlanProposed) else []
    kind = "allow_once" if behaviour == "allow" else "reject_once"
    return next((option.id for option in options if option.kind == kind), None)


def _moment(time_ns: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(time_ns / 1e9, dt.UTC)

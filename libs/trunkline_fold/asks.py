"""The fold of one session's asks: each has exactly one end, the first in stream order.

Ends are a decision, an expiry, a withdrawal by the agent, and a claim of the session without the incarnation that asked.
What comes later is counted as `late` and changes nothing.
"""

from collections.abc import Callable
from typing import Any, Final, Literal

import msgspec
from msgspec.structs import replace

from trunkline_fold._bounded import clip, clip_or_none
from trunkline_wire import Data, Event
from trunkline_wire.asks import (
    AnswerRejected,
    AskDecided,
    AskDelivered,
    AskExpired,
    AskRevoked,
    AskRouted,
    AskVoted,
    AskWithdrawn,
    PermissionRequested,
    PlanProposed,
    QuestionAsked,
)
from trunkline_wire.events import PERMISSION_EVENTS, Source
from trunkline_wire.session import SessionClaimed, SessionErased
from trunkline_wire.subjects import Channel

AskStatus = Literal["open", "decided", "expired", "withdrawn", "lost"]
AskKind = Literal["permission", "question", "plan"]

VERSION: Final = 2
"""Version of this fold, as `state.VERSION` is of the session's."""

MAX_ENDED: Final = 500
MAX_VOTES: Final = 20
MAX_REJECTED: Final = 50
MAX_RULES: Final = 200


class RejectedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that did not fit: its id and the error's code."""

    answer: str
    code: str
    message: str = ""


class RuleRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A rule of the session: what a person allowed for good, deciding `ask`; in force until it is revoked."""

    rule: str
    ask: str
    tool: str
    by: str
    time: str
    command: list[str] = []
    revoked_by: str | None = None
    revoked_time: str | None = None
    revoked_answer: str | None = None

    @property
    def in_force(self) -> bool:
        return self.revoked_by is None


class AskRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind"):
    """An ask and what became of it. `sequence` and `ended_sequence` are stream sequences; times are RFC 3339.

    A record that is over (withdrawn, lost, or delivered) keeps names and titles; inputs are in the log at `sequence`.
    """

    ask: str
    session: str
    incarnation: str
    requested: Data
    sequence: int
    time: str
    status: AskStatus
    event: str | None = None
    lane: str | None = None
    turn: str | None = None
    source: Source | None = None
    routed: AskRouted | None = None
    votes: list[AskVoted] = []
    rejected: list[RejectedAnswer] = []
    ended_sequence: int | None = None
    ended_time: str | None = None
    decision: AskDecided | None = None
    expired: AskExpired | None = None
    withdrawn: str | None = None
    delivered: bool = False
    delivered_sequence: int | None = None
    late: int = 0
    """Ends and deliveries that came after the end, or without one."""

    @property
    def kind(self) -> AskKind:
        match self.requested:
            case QuestionAsked():
                return "question"
            case PlanProposed():
                return "plan"
            case _:
                return "permission"

    @property
    def deliverable(self) -> bool:
        """Decided or expired, and the agent does not have it yet."""
        return self.status in ("decided", "expired") and not self.delivered


class PermissionAsk(AskRecord, frozen=True, kw_only=True, omit_defaults=True, tag="permission"):
    requested: PermissionRequested


class QuestionAsk(AskRecord, frozen=True, kw_only=True, omit_defaults=True, tag="question"):
    requested: QuestionAsked


class PlanAsk(AskRecord, frozen=True, kw_only=True, omit_defaults=True, tag="plan"):
    requested: PlanProposed


Ask = PermissionAsk | QuestionAsk | PlanAsk
"""A record of one of the three kinds."""


class AsksState(msgspec.Struct, frozen=True, kw_only=True):
    """One session's asks by id.

    `permission_seq` is the stream sequence of the last message on the session's permission subject, which the derived
    writer expects; `marks` says up to which sequence of each source stream results were written, `parts` which of that
    source's results was the last.
    """

    sequence: int = 0
    asks: dict[str, Ask] = {}
    ended: list[str] = []
    """Ids of ended asks, in order of their ends; the oldest are forgotten beyond MAX_ENDED."""
    permission_seq: int = 0
    marks: dict[str, int] = {}
    parts: dict[str, int] = {}
    incarnation: str | None = None
    late: int = 0
    """Ends of asks that are not known (or no longer)."""
    rules: list[RuleRecord] = []
    """The session's own rules in the order of their making; the oldest are forgotten beyond MAX_RULES, and asked about."""

    @property
    def open(self) -> list[AskRecord]:
        """The open asks in stream order."""
        return sorted((ask for ask in self.asks.values() if ask.status == "open"), key=_by_sequence)

    @property
    def deliverable(self) -> list[AskRecord]:
        """The ended asks that the agent has to be told of, in order of their ends."""
        return [self.asks[ask] for ask in self.ended if ask in self.asks and self.asks[ask].deliverable]


def _by_sequence(ask: AskRecord) -> int:
    return ask.sequence


def fold_asks(state: AsksState, event: Event, sequence: int, channel: Channel | None = None) -> AsksState:
    """The state after `event`, which stands at `sequence`; at or below `state.sequence` nothing changes.

    `channel` is needed only to know an erasure on the permission subject from one elsewhere.
    """
    if sequence <= state.sequence:
        return state
    state = replace(state, sequence=sequence)
    data = event.data
    if channel == "permission" or isinstance(data, PERMISSION_EVENTS):
        state = _mark(state, event, sequence)
    match data:
        case PermissionRequested() | QuestionAsked() | PlanProposed():
            return _requested(state, event, data, sequence)
        case AskRouted():
            return _change(state, data.ask, lambda ask: replace(ask, routed=data))
        case AskVoted():
            return _change(state, data.ask, lambda ask: replace(ask, votes=[*ask.votes, data][-MAX_VOTES:]))
        case AnswerRejected():
            entry = RejectedAnswer(answer=data.answer, code=data.error.code, message=clip(data.error.message))
            return _note(state, data.ask, lambda ask: replace(ask, rejected=[*ask.rejected, entry][-MAX_REJECTED:]))
        case AskDecided():
            return _decided(state, event, sequence, data)
        case AskExpired():
            return _end(state, event, sequence, data.ask, "expired", expired=data)
        case AskRevoked():
            return _revoked(state, event, data)
        case AskWithdrawn():
            return _end(state, event, sequence, data.ask, "withdrawn", withdrawn=data.why)
        case AskDelivered():
            return _delivered(state, data.ask, sequence)
        case SessionClaimed():
            return _claimed(state, event, data, sequence)
        case SessionErased():
            return AsksState(sequence=sequence, permission_seq=state.permission_seq)
        case _:
            return state


def _mark(state: AsksState, event: Event, sequence: int) -> AsksState:
    state = replace(state, permission_seq=sequence)
    if event.src is None:
        return state
    stream, source, part = event.src
    if (source, part) <= (state.marks.get(stream, 0), state.parts.get(stream, -1)):
        return state
    return replace(state, marks={**state.marks, stream: source}, parts={**state.parts, stream: part})


def _requested(
    state: AsksState, event: Event, data: PermissionRequested | QuestionAsked | PlanProposed, sequence: int
) -> AsksState:
    if data.ask in state.asks:
        return state
    about: dict[str, Any] = {
        "ask": data.ask,
        "session": event.session,
        "incarnation": data.incarnation,
        "sequence": sequence,
        "time": event.time,
        "status": "open",
        "event": event.id,
        "lane": event.lane,
        "turn": event.turn,
        "source": event.source,
    }
    match data:
        case PermissionRequested():
            record = PermissionAsk(requested=data, **about)
        case QuestionAsked():
            record = QuestionAsk(requested=data, **about)
        case PlanProposed():
            record = PlanAsk(requested=data, **about)
    return replace(state, asks={**state.asks, data.ask: record})


def _change(state: AsksState, ask: str, change: Callable[[AskRecord], AskRecord]) -> AsksState:
    """Changes an open ask; what concerns an ended one comes too late."""
    record = state.asks.get(ask)
    if record is None:
        return replace(state, late=state.late + 1)
    changed = change(record) if record.status == "open" else replace(record, late=record.late + 1)
    return replace(state, asks={**state.asks, ask: changed})


def _note(state: AsksState, ask: str, change: Callable[[AskRecord], AskRecord]) -> AsksState:
    """Changes an ask, open or ended."""
    record = state.asks.get(ask)
    return state if record is None else replace(state, asks={**state.asks, ask: change(record)})


def _end(state: AsksState, event: Event, sequence: int, ask: str, status: AskStatus, **how: Any) -> AsksState:
    record = state.asks.get(ask)
    if record is None:
        return replace(state, late=state.late + 1)
    if record.status != "open":
        return replace(state, asks={**state.asks, ask: replace(record, late=record.late + 1)})
    record = replace(record, status=status, ended_sequence=sequence, ended_time=event.time, **how)
    if not record.deliverable:
        record = _slim(record)
    asks = {**state.asks, ask: record}
    ended = [*state.ended, ask]
    while len(ended) > MAX_ENDED:
        del asks[ended.pop(0)]
    return replace(state, asks=asks, ended=ended)


def _decided(state: AsksState, event: Event, sequence: int, data: AskDecided) -> AsksState:
    state = _end(state, event, sequence, data.ask, "decided", decision=data)
    record = state.asks.get(data.ask)
    if data.remembers is None or record is None or record.ended_sequence != sequence:
        return state
    made = RuleRecord(
        rule=data.remembers.rule,
        ask=data.ask,
        tool=data.remembers.tool,
        command=data.remembers.command,
        by=data.by,
        time=event.time,
    )
    return replace(state, rules=[*state.rules, made][-MAX_RULES:])


def _revoked(state: AsksState, event: Event, data: AskRevoked) -> AsksState:
    def change(rule: RuleRecord) -> RuleRecord:
        if rule.rule != data.rule or not rule.in_force:
            return rule
        return replace(rule, revoked_by=data.by, revoked_time=event.time, revoked_answer=data.answer)

    return replace(state, rules=[change(rule) for rule in state.rules])


def _delivered(state: AsksState, ask: str, sequence: int) -> AsksState:
    record = state.asks.get(ask)
    if record is None:
        return replace(state, late=state.late + 1)
    if record.deliverable:
        record = _slim(replace(record, delivered=True, delivered_sequence=sequence))
    else:
        record = replace(record, late=record.late + 1)
    return replace(state, asks={**state.asks, ask: record})


def _claimed(state: AsksState, event: Event, data: SessionClaimed, sequence: int) -> AsksState:
    state = replace(state, incarnation=data.incarnation)
    for ask in state.open:
        if ask.incarnation != data.incarnation:
            state = _end(state, event, sequence, ask.ask, "lost")
    asks = {
        key: ask if ask.status == "open" or ask.incarnation == data.incarnation else _slim(ask)
        for key, ask in state.asks.items()
    }
    return replace(state, asks=asks)


def _slim(record: AskRecord) -> AskRecord:
    """The record without what is large: nobody needs it any more but readers of the log."""
    requested = record.requested
    match requested:
        case PermissionRequested():
            slim = replace(
                requested,
                input=None,
                suggestions=None,
                title=clip_or_none(requested.title),
                description=clip_or_none(requested.description),
                reason=clip_or_none(requested.reason),
            )
        case QuestionAsked():
            slim = replace(requested, questions=[], schema=None, message=clip_or_none(requested.message))
        case PlanProposed():
            slim = replace(requested, plan=clip(requested.plan))
        case _:
            slim = requested
    decision = record.decision
    if decision is not None:
        decision = replace(decision, updated_input=None, rule_updates=None, answers=None)
    return replace(record, requested=slim, decision=decision)

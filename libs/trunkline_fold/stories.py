"""The whole story of an ask, for the audit: asked, routed, voted on, answered, ended, delivered, revoked; by whom, and when."""

from collections.abc import Iterable
from typing import Any

import msgspec

from trunkline_fold.asks import AskKind, AskRecord, AskStatus
from trunkline_wire import Data, Event, parse_time
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
    Signature,
)
from trunkline_wire.blocks import Json
from trunkline_wire.events import Source


class Routed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    time: str
    policy: str
    rule: str | None = None
    expires_at: str | None = None
    quorum: int = 1
    role: str | None = None
    signed: bool = False


class Voice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An answer that did not end the ask: a vote, or one that was rejected with `code`."""

    time: str
    answer: str
    by: str | None = None
    via: str | None = None
    behaviour: str | None = None
    code: str | None = None
    message: str | None = None
    signature: Signature | None = None


class Story(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Times are RFC 3339. `took_s` is from the ask to its end, `delivered_s` from there to the agent's having it.

    `by` is a person's actor name, `policy`, `agent` for what it withdrew or lost; `rule` names the rule that decided.
    """

    ask: str
    session: str
    kind: AskKind
    status: AskStatus
    sequence: int
    asked: str
    requested: Json
    lane: str | None = None
    turn: str | None = None
    routed: Routed | None = None
    votes: list[Voice] = []
    rejected: list[Voice] = []
    ended: str | None = None
    took_s: float | None = None
    behaviour: str | None = None
    by: str | None = None
    via: str | None = None
    role: str | None = None
    rule: str | None = None
    answer: str | None = None
    option: str | None = None
    message: str | None = None
    device: str | None = None
    signature: Signature | None = None
    remembers: str | None = None
    why: str | None = None
    delivered: str | None = None
    delivered_s: float | None = None
    revoked: str | None = None
    revoked_by: str | None = None


def tell(record: AskRecord, events: Iterable[Event]) -> Story:
    """The story of an ask from its record, which knows how it ended, and its events in stream order."""
    fields: dict[str, Any] = {"requested": record.requested, "votes": [], "rejected": []}
    for event in events:
        _add(fields, record, event)
    ended = record.ended_time
    if ended is not None:
        fields["ended"] = ended
        fields["took_s"] = _between(record.time, ended)
    if record.delivered and "delivered" in fields and ended is not None:
        fields["delivered_s"] = _between(ended, fields["delivered"])
    if record.status in ("withdrawn", "lost"):
        fields |= {"by": "agent", "why": record.withdrawn or "the agent is gone"}
    return Story(
        ask=record.ask,
        session=record.session,
        kind=record.kind,
        status=record.status,
        sequence=record.sequence,
        asked=record.time,
        lane=record.lane,
        turn=record.turn,
        **fields,
    )


def ask_of(data: Data) -> str | None:
    """The ask that an event is about."""
    match data:
        case PermissionRequested() | QuestionAsked() | PlanProposed() | AskWithdrawn() | AskDelivered():
            return data.ask
        case AskRouted() | AskVoted() | AnswerRejected() | AskDecided() | AskExpired() | AskRevoked():
            return data.ask
        case _:
            return None


def _add(fields: dict[str, Any], record: AskRecord, event: Event) -> None:
    source = event.source or Source(actor="policy")
    match event.data:
        case PermissionRequested() | QuestionAsked() | PlanProposed() as data:
            fields["requested"] = data
        case AskRouted() as data:
            fields["routed"] = Routed(
                time=event.time,
                policy=data.policy,
                rule=data.rule,
                expires_at=data.expires_at,
                quorum=data.quorum,
                role=data.role,
                signed=data.signed,
            )
        case AskVoted() as data:
            voice = Voice(
                time=event.time,
                answer=data.answer,
                by=data.by,
                via=source.via,
                behaviour=data.behaviour,
                signature=data.signature,
            )
            fields["votes"].append(voice)
        case AnswerRejected() as data:
            voice = Voice(
                time=event.time,
                answer=data.answer,
                by=source.actor,
                via=source.via,
                code=data.error.code,
                message=data.error.message,
            )
            fields["rejected"].append(voice)
        case AskDecided() as data if record.status == "decided" and "by" not in fields:
            fields |= {
                "behaviour": data.behaviour,
                "by": data.by,
                "via": source.via,
                "role": source.role,
                "rule": data.rule,
                "answer": data.answer,
                "option": data.option,
                "message": data.message,
                "device": source.device,
                "signature": data.signature,
                "remembers": data.remembers.rule if data.remembers is not None else None,
            }
        case AskExpired() as data if record.status == "expired":
            fields |= {"behaviour": data.behaviour, "by": "policy", "why": "nobody answered in time"}
            fields["rule"] = record.routed.rule if record.routed is not None else None
        case AskDelivered():
            fields.setdefault("delivered", event.time)
        case AskRevoked() as data:
            fields |= {"revoked": event.time, "revoked_by": data.by}
        case _:
            pass


def _between(begin: str, end: str) -> float:
    return round((parse_time(end) - parse_time(begin)).total_seconds(), 3)

"""Messages between members: plain ones, and those of the agents' own protocol, however they are told.

They come as calls of SendMessage, as entries of inbox files, and as `<teammate-message …>` in what a member is prompted with.
"""

import re
from typing import Final

import msgspec

from trunkline_fold.team._json import as_obj, parsed, text, truth
from trunkline_fold.team.board import RequestKind
from trunkline_fold.team.ear import Ear
from trunkline_fold.team.hearing import LEAD, Teller
from trunkline_fold.team.operations import AskFor, Reply
from trunkline_wire.blocks import BlobRef, Json, Text
from trunkline_wire.team import Member, TeamTask

_ENVELOPE: Final = re.compile(r"<teammate-message\b([^>]*)>\n?(.*?)\n?</teammate-message>", re.DOTALL)
_ATTRIBUTE: Final = re.compile(r'(\w+)="([^"]*)"')


class Letter(msgspec.Struct, frozen=True, kw_only=True):
    """One message. `to` absent is a broadcast; `item` stands in for a request's id that nobody has told."""

    kind: str
    sender: str
    to: str | None = None
    content: Text | None = None
    summary: str | None = None
    request: str | None = None
    approve: bool | None = None
    reason: str | None = None
    feedback: str | None = None
    plan: Json = None
    tool: str | None = None
    input: Json = None
    item: str | None = None
    team: str | None = None


def read_letters(ear: Ear, words: str, to: str) -> None:
    """The messages that a member was prompted with."""
    for attributes, body in _ENVELOPE.findall(words):
        named = dict(_ATTRIBUTE.findall(attributes))
        if sender := named.get("teammate_id"):
            receive(ear, "read", letter_of(ear, sender, to, body, summary=named.get("summary")))


def letter_of(
    ear: Ear, sender: str, to: str, words: Text, *, summary: str | None = None, team: str | None = None
) -> Letter:
    """The message that stands in an inbox: a text, which may be JSON with a `type`."""
    body = {} if isinstance(words, BlobRef) else parsed(words)
    sender = ear.name_of(sender)
    approve = truth(body, "approve")
    kind = text(body, "type") or "message"
    if kind in ("shutdown_approved", "shutdown_rejected"):
        approve, kind = kind == "shutdown_approved", "shutdown_response"
    if kind in ("plan_approval_response", "permission_response") and approve is None:
        approve = truth(body, "approved")
        if approve is None and (subtype := text(body, "subtype")) is not None:
            approve = subtype == "success"
    return Letter(
        kind=kind,
        sender=sender,
        to=ear.name_of(to),
        content=words,
        summary=summary,
        request=text(body, "request_id", "requestId"),
        approve=approve,
        reason=text(body, "reason", "description"),
        feedback=text(body, "feedback"),
        plan=body.get("plan") or body.get("planContent"),
        tool=text(body, "tool_name", "toolName"),
        input=body.get("input") or as_obj(body.get("tool_input")) or None,
        team=team,
        item=text(body, "taskId"),
    )


def receive(ear: Ear, teller: Teller, letter: Letter) -> None:
    """What a message means for the board."""
    team = letter.team or ear.here
    match letter.kind:
        case "message" | "broadcast":
            ear.say(teller, letter.sender, letter.to, letter.content or "", letter.summary, team)
        case "shutdown_request":
            _ask(ear, letter, "shutdown", letter.to or "")
        case "shutdown_response":
            _reply(ear, letter, "shutdown", letter.sender)
        case "plan_approval_request":
            _ask(ear, letter, "plan", letter.sender)
        case "plan_approval_response":
            _reply(ear, letter, "plan", letter.to or "")
        case "permission_request":
            _ask(ear, letter, "permission", letter.sender)
        case "permission_response":
            _reply(ear, letter, "permission", letter.to or "")
        case "idle_notification":
            ear.member(Member(name=letter.sender, status="idle"), "known", team)
        case "task_assignment" if letter.item is not None and letter.to not in (None, LEAD):
            ear.task(teller, TeamTask(id=letter.item, owner=letter.to), by=letter.sender, team=team)
        case "teammate_terminated" | "task_assignment":
            return
        case _:
            ear.odd("unknown_value", f"a team message of the type {letter.kind!r} is not known")


def _ask(ear: Ear, letter: Letter, kind: RequestKind, member: str) -> None:
    request = letter.request or letter.item
    if request is None or not member:
        return ear.odd("missing_field", f"a {letter.kind} without an id or a member was skipped")
    ear.ask(
        AskFor(
            team=letter.team or ear.here,
            kind=kind,
            request=request,
            member=member,
            reason=letter.reason,
            plan=letter.plan if kind == "plan" else None,
            tool=letter.tool,
            input=letter.input,
        )
    )
    return None


def _reply(ear: Ear, letter: Letter, kind: RequestKind, member: str) -> None:
    if letter.request is None or letter.approve is None or not member:
        return ear.odd("missing_field", f"a {letter.kind} without an id or an answer was skipped")
    ear.reply(
        Reply(
            team=letter.team or ear.here,
            kind=kind,
            request=letter.request,
            member=member,
            approve=letter.approve,
            reason=letter.reason,
            feedback=letter.feedback if kind == "plan" else None,
        )
    )
    return None

"""The recognizer: a call of a team tool and its result, as operations. Both dialects.

The classic one has TeamCreate, TeamDelete, Task with `team_name` and `name`, and SendMessage with a `type`. Today's has one
implicit team a session, Agent with a `name`, and SendMessage with `to` and a text or a structured message.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from trunkline_fold.team import mail
from trunkline_fold.team._json import Obj, as_obj, ident, idents, parsed, said, text, truth
from trunkline_fold.team.ear import Ear
from trunkline_fold.team.hearing import LEAD, Call
from trunkline_wire.team import Member, TeamTask
from trunkline_wire.turn import ToolCompleted

_CREATED: Final = re.compile(r"^Task #(\S+) created successfully")
_UPDATED: Final = re.compile(r"^Updated task #(\S+)(?: ([^\n]*))?")
_LINE: Final = re.compile(r"^(agent_id|name|team_name): *(\S+)$", re.MULTILINE)
_AGENT_ID: Final = re.compile(r"\bagentId: (\w+)")
_REQUEST: Final = re.compile(r"Request ID: (\S+?)\.?(?:\s|$)")
_TEAM_TOOL: Final = re.compile(r"(?:Team|Task)[A-Z]\w*")
_SPAWNS: Final = frozenset({"Task", "Agent"})
_SILENT: Final = frozenset({"TaskStop", "TaskOutput"})
"""Tools that are named like those of a team, and change none."""
STATUSES: Final = ("pending", "in_progress", "completed", "deleted")


class Done(NamedTuple):
    """A call that went well: what was given to the tool, and what it said, as an object and in words."""

    call: Call
    given: Obj
    result: Obj
    words: str


def concerns(name: str) -> bool:
    """Whether a tool may be one of a team's."""
    return name in _HANDLERS or name in _SILENT or _TEAM_TOOL.fullmatch(name) is not None


def drifted(name: str) -> bool:
    """Whether a tool is named like one of a team's, and not known."""
    return name not in _HANDLERS and name not in _SILENT and _TEAM_TOOL.fullmatch(name) is not None


def spawns(name: str) -> bool:
    return name in _SPAWNS


def claims(call: Call) -> bool:
    """Whether a call takes up a task."""
    given = as_obj(call.input)
    return call.name == "TaskUpdate" and (
        text(given, "status") == "in_progress" or (text(given, "owner") is not None and text(given, "status") is None)
    )


def recognize(ear: Ear, call: Call, result: ToolCompleted) -> None:
    """What a call has come to. A result that is an error, or says `success: false`, changes nothing."""
    handler = _HANDLERS.get(call.name)
    if handler is None or result.status != "completed":
        return
    words = said(result.content)
    structured = as_obj(result.structured) or parsed(words)
    if truth(structured, "success") is False or words.startswith("<tool_use_error>"):
        return
    handler(ear, Done(call, as_obj(call.input), structured, words))


def _missing(ear: Ear, call: Call, field: str) -> None:
    ear.odd("missing_field", f"a {call.name} without {field!r} was skipped")


def _team_create(ear: Ear, done: Done) -> None:
    name = text(done.result, "team_name") or text(done.given, "team_name")
    if name is None:
        return _missing(ear, done.call, "team_name")
    ear.open_team(
        name, created=True, description=text(done.given, "description"), lead=text(done.result, "lead_agent_id")
    )
    return None


def _team_delete(ear: Ear, done: Done) -> None:
    name = text(done.result, "team_name") or ear.deriver.team
    if name is not None:
        ear.end_team(name)


def _spawn(ear: Ear, done: Done) -> None:
    """A member joins: a teammate where the result says so, a sub-agent where it has a name."""
    lines = dict(_LINE.findall(done.words)) if done.words.startswith("Spawned successfully") else {}
    teammate = text(done.result, "status") == "teammate_spawned" or bool(lines)
    name = text(done.result, "name") or lines.get("name") or text(done.given, "name")
    type_ = text(done.given, "subagent_type") or text(done.result, "agent_type", "agentType")
    model = text(done.result, "model", "resolvedModel") or text(done.given, "model")
    if not teammate:
        if name is not None:
            found = _AGENT_ID.search(done.words)
            agent_id = text(done.result, "agentId") or (found[1] if found else None)
            finished = text(done.result, "status") == "completed"
            subagent(ear, done.call, name, Member(name=name, agent_id=agent_id, type=type_, model=model), idle=finished)
        return None
    if name is None:
        return _missing(ear, done.call, "name")
    address = text(done.result, "teammate_id", "agent_id", "agentId") or lines.get("agent_id") or ""
    team = (
        text(done.result, "team_name")
        or lines.get("team_name")
        or (address.partition("@")[2] if "@" in address else None)
        or ear.deriver.team
        or text(done.given, "team_name")
        or ear.implicit
    )
    pane = text(done.result, "tmux_pane_id")
    member = Member(
        name=name,
        agent_id=text(done.result, "agent_id", "agentId", "teammate_id") or lines.get("agent_id"),
        type=type_,
        status="active",
        model=model,
        colour=text(done.result, "color"),
        lane=done.call.item,
        pane=None if pane == "in-process" else pane,
    )
    ear.open_team(team)
    ear.member(member, "spawned", team)
    return None


def subagent(ear: Ear, call: Call, name: str, told: Member, *, idle: bool = False) -> None:
    """A named sub-agent of the session: told when it begins, and again by the call's result."""
    known = ear.mate_of(lane=call.item)
    status = known.status if known is not None else "active"
    ear.open_team(ear.here)
    member = Member(
        name=name,
        agent_id=told.agent_id,
        kind="subagent",
        type=told.type,
        model=told.model,
        lane=call.item,
        status="idle" if idle else status,
    )
    ear.member(member, "known" if known is not None else "spawned")


def _task_create(ear: Ear, done: Done) -> None:
    subject = text(done.given, "subject")
    if subject is None:
        return _missing(ear, done.call, "subject")
    found = _CREATED.match(done.words)
    id = ident(as_obj(done.result.get("task")), "id") or (found[1] if found else None)
    if id is None:
        return _missing(ear, done.call, "task.id")
    task = TeamTask(
        id=id,
        subject=subject,
        description=text(done.given, "description"),
        status="pending",
        active_form=text(done.given, "activeForm"),
    )
    ear.task("stream", task, by=done.call.who)
    return None


def _task_update(ear: Ear, done: Done) -> None:
    id = ident(done.given, "taskId")
    if id is None:
        return _missing(ear, done.call, "taskId")
    found = _UPDATED.match(done.words)
    if not done.result and found is None:
        return None
    status = text(done.given, "status")
    if status not in (None, *STATUSES):
        ear.odd("unknown_value", f"a task can't be {status!r}; its status is left as it was")
    given_owner = done.given.get("owner")
    owner = given_owner if isinstance(given_owner, str) else None
    updated = idents(done.result, "updatedFields") or ((found[2] or "").split(", ") if found else [])
    if owner is None and "owner" in updated and done.call.who not in (None, LEAD):
        # A teammate that takes up a task owns it without saying so.
        owner = done.call.who
    task = TeamTask(
        id=id,
        subject=text(done.given, "subject"),
        description=text(done.given, "description"),
        status=next((one for one in ("pending", "in_progress", "completed", "deleted") if one == status), None),
        owner=owner if owner is None or not owner else ear.name_of(owner),
        active_form=text(done.given, "activeForm"),
    )
    ear.task(
        "stream",
        task,
        by=done.call.who,
        blocks=idents(done.given, "addBlocks"),
        blocked_by=idents(done.given, "addBlockedBy"),
    )
    return None


def _task_list(ear: Ear, done: Done) -> None:
    tasks = done.result.get("tasks")
    for one in tasks if isinstance(tasks, list) else []:
        _read(ear, as_obj(one))


def _task_get(ear: Ear, done: Done) -> None:
    _read(ear, as_obj(done.result.get("task")))


def _read(ear: Ear, one: Obj) -> None:
    """A task as an agent has read it: it may be news where those who changed it are not heard."""
    id, status = ident(one, "id"), text(one, "status")
    if id is None:
        return
    task = TeamTask(
        id=id,
        subject=text(one, "subject"),
        description=text(one, "description"),
        status=next((known for known in ("pending", "in_progress", "completed") if known == status), None),
        owner=text(one, "owner"),
    )
    ear.task("read", task)


def _send_message(ear: Ear, done: Done) -> None:
    message = done.given.get("message")
    structured = as_obj(message)
    kind = text(structured, "type") or (text(done.given, "type") if not isinstance(message, str) else None) or "message"
    to = text(done.given, "to", "recipient")
    sender = done.call.who or "subagent"
    content = message if isinstance(message, str) else text(structured, "content") or text(done.given, "content")
    found = _REQUEST.search(done.words) or _REQUEST.search(text(done.result, "message") or "")
    request = (
        text(done.result, "request_id") or text(structured, "request_id", "requestId") or text(done.given, "request_id")
    )
    letter = mail.Letter(
        kind=kind,
        sender=sender,
        to=None if to in (None, "*") or kind == "broadcast" else ear.name_of(to),
        content=content,
        summary=text(done.given, "summary"),
        request=request or (found[1] if found else None),
        approve=truth(structured, "approve") if structured else truth(done.given, "approve"),
        reason=text(structured, "reason") or (content if kind.startswith("shutdown") else None),
        feedback=text(structured, "feedback") or (content if kind == "plan_approval_response" else None),
        plan=structured.get("plan") or done.given.get("plan") or content,
        item=done.call.item,
    )
    if to is None and kind in ("message", "shutdown_request", "plan_approval_response"):
        return _missing(ear, done.call, "to")
    mail.receive(ear, "stream", letter)
    return None


Handler = Callable[[Ear, Done], None]

_HANDLERS: Final[dict[str, Handler]] = {
    "TeamCreate": _team_create,
    "TeamDelete": _team_delete,
    "Task": _spawn,
    "Agent": _spawn,
    "TaskCreate": _task_create,
    "TaskUpdate": _task_update,
    "TaskList": _task_list,
    "TaskGet": _task_get,
    "SendMessage": _send_message,
}

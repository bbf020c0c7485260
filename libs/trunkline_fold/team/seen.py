"""Hooks, and what is seen on a host of a team's files: the same operations as from the agents' own streams."""

from trunkline_fold.team import mail
from trunkline_fold.team._json import Obj, as_obj, ident, text
from trunkline_fold.team.ear import Ear
from trunkline_fold.team.hearing import MAX_ITEMS, forget_oldest
from trunkline_wire.observed import (
    ActivitySeen,
    HookSeen,
    MailSeen,
    Observation,
    TaskGone,
    TaskSeen,
    TeamGone,
    TeamSeen,
)
from trunkline_wire.team import Member, TeamTask


def observe(ear: Ear, observation: Observation) -> None:
    """What an observation means."""
    deriver = ear.deriver
    deriver.native_session = deriver.native_session or observation.native_session
    match observation.data:
        case HookSeen() as data:
            hook(ear, data.hook_event, as_obj(data.input))
        case TeamSeen() as data:
            _team(ear, data, observation.native_session)
        case TeamGone() as data:
            # One that was made anew meanwhile was not seen yet. What is seen of this name from now on is another team.
            if data.team in deriver.listed:
                ear.end_team(data.team)
            if data.team in deriver.ended:
                deriver.ended.remove(data.team)
        case TaskSeen() as data:
            task = data.task
            ear.task("files", task, blocks=task.blocks, blocked_by=task.blocked_by, team=_list(ear, data.list))
        case TaskGone() as data:
            _gone(ear, data)
        case MailSeen() as data if ear.first_sight(observation.id):
            letter = mail.letter_of(ear, data.sender, data.to, data.text, summary=data.summary, team=data.team)
            mail.receive(ear, "files", letter)
        case ActivitySeen() as data:
            _activity(ear, data)
        case _:
            return


def hook(ear: Ear, event: str, given: Obj) -> None:
    """A hook as the agent called it. It opens no ask: the ask itself comes by the agent's stream or its terminal."""
    agent_id, teammate = text(given, "agent_id"), text(given, "teammate_name")
    team = text(given, "team_name")
    mate = ear.mate_of(agent_id=agent_id) if agent_id else None
    match event:
        case "SubagentStart" if mate is not None:
            mate.resting = False
            ear.status(mate, "active")
        case "SubagentStop" if mate is not None:
            ear.status(mate, "idle")
        case "TeammateIdle" if teammate is not None:
            ear.member(Member(name=ear.name_of(teammate), status="idle"), "seen", team)
        case "TaskCreated" | "TaskCompleted":
            _hooked_task(ear, event, given, teammate, team)
        case "PostToolUse" if text(given, "tool_name") == "TaskUpdate":
            _hooked_update(ear, as_obj(given.get("tool_response")), team)
        case _:
            return


def _hooked_task(ear: Ear, event: str, given: Obj, teammate: str | None, team: str | None) -> None:
    id = ident(given, "task_id")
    if id is None:
        return ear.odd("missing_field", f"a {event} hook without 'task_id' was skipped")
    task = TeamTask(
        id=id,
        subject=text(given, "task_subject"),
        description=text(given, "task_description"),
        # TaskCompleted is asked before a task is completed, and of those in progress whenever a member stops: it is none yet.
        status="pending" if event == "TaskCreated" else None,
    )
    ear.task("hook", task, by=teammate, team=team)
    return None


def _hooked_update(ear: Ear, result: Obj, team: str | None) -> None:
    """What a call of the tool has changed, as its result says."""
    id, status = ident(result, "taskId"), text(as_obj(result.get("statusChange")), "to")
    if id is not None and status in ("pending", "in_progress", "completed", "deleted"):
        ear.task("hook", TeamTask(id=id, status=status), team=team)


def _list(ear: Ear, name: str) -> str:
    """The team whose list bears this name; a list that bears the session's is that of its own team."""
    return ear.here if name == ear.deriver.native_session else name


def _team(ear: Ear, data: TeamSeen, native_session: str | None) -> None:
    deriver = ear.deriver
    if data.team in deriver.ended:
        return
    leads = native_session is None or native_session == deriver.native_session
    ear.open_team(data.team, role="lead" if leads else "member", description=data.description, lead=data.lead)
    names: list[str] = []
    for one in data.members:
        if one.name == mail.LEAD or (data.lead is not None and one.agent_id == data.lead):
            continue
        names.append(one.name)
        member = Member(
            name=one.name,
            agent_id=one.agent_id,
            type=one.type,
            model=one.model,
            colour=one.colour,
            pane=one.pane,
            status="idle" if one.active is False else None,
        )
        ear.member(member, "seen", data.team)
    for name in deriver.listed.get(data.team, []):
        mate = deriver.mates.get(name)
        if name not in names and mate is not None:
            ear.status(mate, "shutdown")
    deriver.listed[data.team] = names


def _gone(ear: Ear, data: TaskGone) -> None:
    """A file that is gone is a deleted task, unless the task was completed: agents tidy those away."""
    where = _list(ear, data.list)
    status = ear.deriver.fields.get(f"{where}/{data.task}/status")
    if status is not None and status.values[-1] not in ("completed", "deleted"):
        ear.task("files", TeamTask(id=data.task, status="deleted"), team=where)


def _activity(ear: Ear, data: ActivitySeen) -> None:
    mate = ear.mate_of(agent_id=data.agent_id) or ear.deriver.mates.get(data.name or "")
    if mate is None:
        return
    if data.usage is not None:
        mate.seen[data.agent_id] = data.usage
        forget_oldest(mate.seen, MAX_ITEMS)
    if data.model is not None:
        ear.member(Member(name=mate.name, kind=mate.kind, model=data.model), "known")
    ear.status(mate, data.state if data.state is not None and mate.status != "shutdown" else mate.status)

"""What an operation changes on the board: one event, or none where the board says so already."""

from typing import Final, TypeVar, assert_never

from msgspec.structs import replace

from trunkline_fold.team.board import BoardTask, MemberStatus, Team, TeamMember, TeamsState
from trunkline_fold.team.fold import MemberEvent, changed, merged, message_key
from trunkline_fold.team.operations import AskFor, EndTeam, Op, OpenTeam, PutMember, PutTask, Reply, Say
from trunkline_wire import Data
from trunkline_wire.team import (
    Member,
    TeamCreated,
    TeamDeleted,
    TeamMemberActive,
    TeamMemberIdle,
    TeamMemberJoined,
    TeamMemberShutdown,
    TeamMessage,
    TeamPermissionAnswered,
    TeamPermissionRequested,
    TeamPlanAnswered,
    TeamPlanRequested,
    TeamShutdownAnswered,
    TeamShutdownRequested,
    TeamTask,
    TeamTaskClaimed,
    TeamTaskCompleted,
    TeamTaskCreated,
    TeamTaskDeleted,
    TeamTaskUpdated,
)

T = TypeVar("T")


def decide(state: TeamsState, op: Op) -> Data | None:
    """The event that `op` calls for in this state; None where nothing changes, or where there is no such team."""
    team = state.live(op.team)
    if isinstance(op, OpenTeam):
        if team is not None:
            return None
        return TeamCreated(team=op.team, description=op.description, lead=op.lead, role=op.role)
    if team is None:
        return None
    match op:
        case EndTeam():
            return TeamDeleted(team=op.team, agents=team.agents)
        case PutMember():
            return _member(team, op)
        case PutTask():
            return _task(team, op)
        case Say():
            if op.count <= team.heard.get(message_key(op.sender, op.to, op.content), 0):
                return None
            return TeamMessage(team=op.team, sender=op.sender, to=op.to, summary=op.summary, content=op.content)
        case AskFor():
            return None if op.request in team.open or op.request in team.answered else _asked(op)
        case Reply():
            return None if op.request in team.answered else _replied(op)
        case _:
            assert_never(op)


def _member(team: Team, op: PutMember) -> Data | None:
    told = op.member
    known = team.members.get(told.name)
    status = told.status or (known.status if known else "active")
    if known is None:
        if op.how == "known":
            return None
        kind = TeamMemberJoined if status == "active" else _EVENTS[status]
        return kind(team=op.team, member=replace(told, status=status), agents=[*team.agents, told.name])
    again = op.how == "spawned" and known.status == "shutdown"
    if known.status == "shutdown" and not again:
        status = "shutdown"
    if op.how != "spawned":
        # Who is a member is known best from its spawning; others only see that it is there.
        told = replace(told, kind=known.kind)
    if merged(known, told, status, known.updated) == known:
        return None
    kind = TeamMemberJoined if again else _EVENTS[status]
    return kind(team=op.team, member=replace(_news(known, told), status=status), agents=team.agents)


_EVENTS: Final[dict[MemberStatus, type[MemberEvent]]] = {
    "active": TeamMemberActive,
    "idle": TeamMemberIdle,
    "shutdown": TeamMemberShutdown,
}


def _news(known: TeamMember, told: Member) -> Member:
    """What is new of a member, and always what it is called."""
    return Member(
        name=told.name,
        kind=told.kind,
        agent_id=told.agent_id or known.agent_id,
        type=_new(known.type, told.type),
        model=_new(known.model, told.model),
        colour=_new(known.colour, told.colour),
        session=_new(known.session, told.session),
        lane=_new(known.lane, told.lane),
        pane=_new(known.pane, told.pane),
        usage=_new(known.usage, told.usage),
    )


def _new(known: T | None, told: T | None) -> T | None:
    return None if told == known else told


def _task(team: Team, op: PutTask) -> Data | None:
    told = op.task
    if told.id in team.gone:
        return None
    known = team.tasks.get(told.id)
    if known is None:
        if op.known or told.status == "deleted":
            return None
        told = _linked(BoardTask(id=told.id, created="", updated=""), op)
        created = replace(told, status=told.status or "pending", owner=told.owner or None)
        return TeamTaskCreated(team=op.team, task=created, by=op.by)
    if told.status == "deleted":
        task = TeamTask(id=told.id, subject=known.subject, status="deleted", owner=known.owner)
        return TeamTaskDeleted(team=op.team, task=task, by=op.by)
    told = _linked(known, op)
    after = changed(known, told, known.by, known.updated)
    if after == known:
        return None
    task = _difference(known, after, told)
    if after.status == "completed" and known.status != "completed":
        return TeamTaskCompleted(team=op.team, task=task, by=op.by)
    claimed = after.owner is not None and after.owner != known.owner
    if claimed or (after.status == "in_progress" and known.status != "in_progress"):
        return TeamTaskClaimed(team=op.team, task=task, by=op.by)
    return TeamTaskUpdated(team=op.team, task=task, by=op.by)


def _linked(known: BoardTask, op: PutTask) -> TeamTask:
    """What is told of the task, its lists whole."""
    told = op.task
    blocks = known.blocks if told.blocks is None else told.blocks
    blocked_by = known.blocked_by if told.blocked_by is None else told.blocked_by
    return replace(
        told,
        blocks=_joined(blocks, op.add_blocks) if op.add_blocks else told.blocks,
        blocked_by=_joined(blocked_by, op.add_blocked_by) if op.add_blocked_by else told.blocked_by,
    )


def _joined(before: list[str], more: list[str]) -> list[str]:
    return [*before, *(one for one in dict.fromkeys(more) if one not in before)]


def _difference(known: BoardTask, after: BoardTask, told: TeamTask) -> TeamTask:
    """What is new of the task, and always what it is called, its status and its owner."""
    return TeamTask(
        id=known.id,
        subject=told.subject if after.subject != known.subject else known.subject,
        description=told.description if after.description != known.description else None,
        status=after.status,
        owner=told.owner if after.owner != known.owner else known.owner,
        active_form=told.active_form if after.active_form != known.active_form else None,
        blocks=after.blocks if after.blocks != known.blocks else None,
        blocked_by=after.blocked_by if after.blocked_by != known.blocked_by else None,
    )


def _asked(op: AskFor) -> Data:
    match op.kind:
        case "shutdown":
            return TeamShutdownRequested(team=op.team, request=op.request, member=op.member, reason=op.reason)
        case "plan":
            return TeamPlanRequested(team=op.team, request=op.request, member=op.member, reason=op.reason, plan=op.plan)
        case "permission":
            return TeamPermissionRequested(
                team=op.team, request=op.request, member=op.member, reason=op.reason, tool=op.tool, input=op.input
            )


def _replied(op: Reply) -> Data:
    match op.kind:
        case "shutdown":
            return TeamShutdownAnswered(
                team=op.team, request=op.request, member=op.member, approve=op.approve, reason=op.reason
            )
        case "plan":
            return TeamPlanAnswered(
                team=op.team,
                request=op.request,
                member=op.member,
                approve=op.approve,
                reason=op.reason,
                feedback=op.feedback,
            )
        case "permission":
            return TeamPermissionAnswered(
                team=op.team, request=op.request, member=op.member, approve=op.approve, reason=op.reason
            )

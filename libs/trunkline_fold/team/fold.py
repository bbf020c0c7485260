"""The fold of `team` events into the board. An event at or below a state's `sequence` changes nothing."""

import hashlib
from collections.abc import Callable, Iterable
from typing import Final

from msgspec.structs import replace

from trunkline_fold._bounded import clip, clip_or_none, last, small_json
from trunkline_fold.team.board import (
    MAX_GONE,
    MAX_HEARD,
    MAX_MEMBERS,
    MAX_MESSAGES,
    MAX_REQUESTS,
    MAX_TASKS,
    MAX_TEAMS,
    MAX_TEXT,
    BoardMessage,
    BoardTask,
    MemberStatus,
    RequestKind,
    Team,
    TeamMember,
    TeamRequest,
    TeamsState,
)
from trunkline_wire import Event
from trunkline_wire.blocks import BlobRef, Text, Usage
from trunkline_wire.session import SessionErased
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

MemberEvent = TeamMemberJoined | TeamMemberActive | TeamMemberIdle | TeamMemberShutdown
TaskEvent = TeamTaskCreated | TeamTaskClaimed | TeamTaskCompleted | TeamTaskUpdated | TeamTaskDeleted
RequestEvent = TeamShutdownRequested | TeamPlanRequested | TeamPermissionRequested
AnswerEvent = TeamShutdownAnswered | TeamPlanAnswered | TeamPermissionAnswered


def fold_teams(state: TeamsState, event: Event, sequence: int) -> TeamsState:
    """The state after `event` of the session's `team` subject, which stands at `sequence` of its stream."""
    if sequence <= state.sequence:
        return state
    if isinstance(event.data, SessionErased):
        return TeamsState(session=state.session, sequence=sequence, team_seq=sequence)
    state = _mark(replace(state, sequence=sequence, team_seq=sequence), event)
    match event.data:
        case TeamCreated() as data:
            return _created(state, event, data)
        case TeamDeleted() as data:
            return _with(state, data.team, lambda team: _deleted(team, event.time))
        case TeamMemberJoined() | TeamMemberActive() | TeamMemberIdle() | TeamMemberShutdown() as data:
            return _with(state, data.team, lambda team: _member(team, event.time, data))
        case (
            TeamTaskCreated() | TeamTaskClaimed() | TeamTaskCompleted() | TeamTaskUpdated() | TeamTaskDeleted() as data
        ):
            return _with(state, data.team, lambda team: _task(team, event.time, data))
        case TeamMessage() as data:
            return _with(state, data.team, lambda team: _message(team, event, data))
        case TeamShutdownRequested() | TeamPlanRequested() | TeamPermissionRequested() as data:
            return _with(state, data.team, lambda team: _requested(team, event.time, data))
        case TeamShutdownAnswered() | TeamPlanAnswered() | TeamPermissionAnswered() as data:
            return _with(state, data.team, lambda team: _answered(team, event.time, data))
        case _:
            return state


def message_key(sender: str, to: str | None, content: Text) -> str:
    """What two sources that tell of the same message have in common."""
    said = content.sha256 if isinstance(content, BlobRef) else content
    return hashlib.sha256("\x00".join((sender, to or "", said)).encode()).hexdigest()[:16]


def add_usage(one: Usage, other: Usage | None) -> Usage:
    """The sum of tokens and known costs; what says how full a context is does not add up, and is left out."""
    if other is None:
        return one
    reasoning = [value for value in (one.reasoning, other.reasoning) if value is not None]
    costs = [value for value in (one.cost_usd, other.cost_usd) if value is not None]
    return Usage(
        input=one.input + other.input,
        output=one.output + other.output,
        cache_write=one.cache_write + other.cache_write,
        cache_read=one.cache_read + other.cache_read,
        reasoning=sum(reasoning) if reasoning else None,
        cost_usd=sum(costs) if costs else None,
        source="computed",
    )


def total_usage(usages: Iterable[Usage | None]) -> Usage:
    total = Usage(source="computed")
    for usage in usages:
        total = add_usage(total, usage)
    return total


def _mark(state: TeamsState, event: Event) -> TeamsState:
    if event.src is None or state.written(event.src):
        return state
    stream, source, part = event.src
    return replace(state, marks={**state.marks, stream: source}, parts={**state.parts, stream: part})


def _created(state: TeamsState, event: Event, data: TeamCreated) -> TeamsState:
    if state.live(data.team) is not None:
        return state
    made = Team(
        name=data.team,
        created=event.time,
        updated=event.time,
        role=data.role,
        description=clip_or_none(data.description, MAX_TEXT),
        lead=data.lead,
        agents=data.agents,
    )
    teams = {name: team for name, team in state.teams.items() if name != data.team}
    while len(teams) >= MAX_TEAMS:
        # The oldest that has ended makes room, else the oldest.
        del teams[next((name for name, team in teams.items() if team.ended is not None), next(iter(teams)))]
    return replace(state, teams={**teams, data.team: made})


def _with(state: TeamsState, name: str, change: Callable[[Team], Team]) -> TeamsState:
    team = state.live(name)
    return state if team is None else replace(state, teams={**state.teams, name: change(team)})


def _deleted(team: Team, time: str) -> Team:
    members = {
        name: replace(member, status="shutdown", updated=time) if member.status != "shutdown" else member
        for name, member in team.members.items()
    }
    return replace(team, ended=time, updated=time, members=members, open={})


def _member(team: Team, time: str, data: MemberEvent) -> Team:
    name = data.member.name
    known = team.members.get(name)
    if known is None:
        if len(team.members) >= MAX_MEMBERS:
            return replace(team, rest=_more(team.rest, "members"))
        known = TeamMember(name=name, joined=time, updated=time)
    member = merged(known, data.member, _STATUS[type(data)], time)
    members = {**team.members, name: member}
    usage = team.usage if data.member.usage is None else total_usage(one.usage for one in members.values())
    return replace(team, updated=time, members=members, agents=list(members), usage=usage)


_STATUS: Final[dict[type[MemberEvent], MemberStatus]] = {
    TeamMemberJoined: "active",
    TeamMemberActive: "active",
    TeamMemberIdle: "idle",
    TeamMemberShutdown: "shutdown",
}


def merged(known: TeamMember, told: Member, status: MemberStatus, time: str) -> TeamMember:
    """A member with what an event says of it."""
    return replace(
        known,
        updated=time,
        status=status,
        kind=told.kind,
        agent_id=told.agent_id or known.agent_id,
        type=told.type or known.type,
        model=told.model or known.model,
        colour=told.colour or known.colour,
        session=told.session or known.session,
        lane=told.lane or known.lane,
        pane=told.pane or known.pane,
        usage=told.usage or known.usage,
    )


def _task(team: Team, time: str, data: TaskEvent) -> Team:
    id = data.task.id
    if isinstance(data, TeamTaskDeleted):
        gone, _ = last([*(one for one in team.gone if one != id), id], MAX_GONE)
        return replace(
            team, updated=time, gone=gone, tasks={one: task for one, task in team.tasks.items() if one != id}
        )
    known = team.tasks.get(id)
    tasks, rest = team.tasks, team.rest
    if known is None:
        if len(tasks) >= MAX_TASKS:
            tasks, rest = _without_one(tasks), _more(rest, "tasks")
        known = BoardTask(id=id, created=time, updated=time)
    return replace(team, updated=time, rest=rest, tasks={**tasks, id: changed(known, data.task, data.by, time)})


def changed(known: BoardTask, told: TeamTask, by: str | None, time: str) -> BoardTask:
    """A task with what an event says of it."""
    return replace(
        known,
        updated=time,
        status=known.status if told.status is None or told.status == "deleted" else told.status,
        subject=clip(told.subject, MAX_TEXT) if told.subject is not None else known.subject,
        description=clip(told.description, MAX_TEXT) if told.description is not None else known.description,
        owner=known.owner if told.owner is None else told.owner or None,
        active_form=clip(told.active_form, MAX_TEXT) if told.active_form is not None else known.active_form,
        blocks=known.blocks if told.blocks is None else told.blocks,
        blocked_by=known.blocked_by if told.blocked_by is None else told.blocked_by,
        by=by or known.by,
    )


def _without_one(tasks: dict[str, BoardTask]) -> dict[str, BoardTask]:
    """Room for one more: the oldest that is completed goes, else the oldest."""
    oldest = next((id for id, task in tasks.items() if task.status == "completed"), next(iter(tasks)))
    return {id: task for id, task in tasks.items() if id != oldest}


def _message(team: Team, event: Event, data: TeamMessage) -> Team:
    said = BoardMessage(
        event=event.id,
        time=event.time,
        sender=data.sender,
        to=data.to,
        summary=clip_or_none(data.summary, MAX_TEXT),
        content=clip(data.content, MAX_TEXT),
    )
    messages, left = last([*team.messages, said], MAX_MESSAGES)
    key = message_key(data.sender, data.to, data.content)
    heard = counted(team.heard, key, team.heard.get(key, 0) + 1)
    rest = _more(team.rest, "messages") if left else team.rest
    return replace(team, updated=event.time, messages=messages, heard=heard, rest=rest)


def counted(heard: dict[str, int], key: str, count: int) -> dict[str, int]:
    """`heard` with `key` said `count` times, as the newest; the oldest beyond MAX_HEARD are forgotten."""
    kept = {one: number for one, number in heard.items() if one != key}
    while len(kept) >= MAX_HEARD:
        del kept[next(iter(kept))]
    return {**kept, key: count}


def request_kind(data: RequestEvent | AnswerEvent) -> RequestKind:
    match data:
        case TeamShutdownRequested() | TeamShutdownAnswered():
            return "shutdown"
        case TeamPlanRequested() | TeamPlanAnswered():
            return "plan"
        case TeamPermissionRequested() | TeamPermissionAnswered():
            return "permission"


def _requested(team: Team, time: str, data: RequestEvent) -> Team:
    if data.request in team.open or data.request in team.answered:
        return team
    asked = TeamRequest(
        request=data.request,
        kind=request_kind(data),
        member=data.member,
        asked=time,
        reason=clip_or_none(data.reason, MAX_TEXT),
        plan=clip(str(data.plan), MAX_TEXT) if isinstance(data, TeamPlanRequested) and data.plan else None,
        tool=data.tool if isinstance(data, TeamPermissionRequested) else None,
        input=small_json(data.input) if isinstance(data, TeamPermissionRequested) else None,
    )
    return replace(team, updated=time, open=_newest({**team.open, data.request: asked}))


def _answered(team: Team, time: str, data: AnswerEvent) -> Team:
    if data.request in team.answered:
        return team
    known = team.open.get(data.request)
    if known is None:
        known = TeamRequest(request=data.request, kind=request_kind(data), member=data.member)
    answered = replace(
        known,
        approve=data.approve,
        answered=time,
        reason=clip_or_none(data.reason, MAX_TEXT) or known.reason,
        plan=None,
        input=None,
        feedback=clip_or_none(data.feedback, MAX_TEXT) if isinstance(data, TeamPlanAnswered) else None,
    )
    waiting = {id: one for id, one in team.open.items() if id != data.request}
    return replace(team, updated=time, open=waiting, answered=_newest({**team.answered, data.request: answered}))


def _newest(requests: dict[str, TeamRequest]) -> dict[str, TeamRequest]:
    return dict(list(requests.items())[-MAX_REQUESTS:])


def _more(rest: dict[str, int], name: str) -> dict[str, int]:
    return {**rest, name: rest.get(name, 0) + 1}

"""Payloads of agent teams, written by the team reducer on the lead's session."""

from typing import ClassVar, Literal

import msgspec

from trunkline_wire._base import Data
from trunkline_wire.blocks import Json, Text, Usage

Category = Literal["team_message", "team_task_update", "team_state_change"]


class Member(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A member as an event changes it: absent fields have not changed. `usage` is the sum of all it has done so far."""

    name: str
    agent_id: str | None = None
    kind: Literal["teammate", "subagent"] = "teammate"
    type: str | None = None
    status: Literal["active", "idle", "shutdown"] | None = None
    model: str | None = None
    colour: str | None = None
    session: str | None = None
    """Its own session on the bus, where it has one."""
    lane: str | None = None
    """The tool call of the lead's session that its events belong to, where they are there."""
    pane: str | None = None
    """The tmux pane it runs in."""
    usage: Usage | None = None


class TeamTask(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A task as an event changes it: absent fields have not changed. An empty `owner` is nobody; lists are whole."""

    id: str
    subject: str | None = None
    description: Text | None = None
    status: Literal["pending", "in_progress", "completed", "deleted"] | None = None
    owner: str | None = None
    active_form: str | None = None
    blocks: list[str] | None = None
    blocked_by: list[str] | None = None


class _Team(Data, frozen=True, kw_only=True):
    team: str
    category: Category = "team_state_change"
    agents: list[str] = []
    """The names of the members after this event, on those that change the members."""


class TeamCreated(_Team, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "team.created"
    description: str | None = None
    lead: str | None = None
    role: Literal["lead", "member"] = "lead"
    """What the session is to the team: its lead, if it created it."""


class TeamDeleted(_Team, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "team.deleted"


class _TeamMember(_Team, frozen=True, kw_only=True):
    member: Member


class TeamMemberJoined(_TeamMember, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "team.member_joined"


class TeamMemberActive(_TeamMember, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "team.member_active"


class TeamMemberIdle(_TeamMember, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "team.member_idle"


class TeamMemberShutdown(_TeamMember, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "team.member_shutdown"


class _TeamTask(_Team, frozen=True, kw_only=True):
    category: Category = "team_task_update"
    task: TeamTask
    by: str | None = None


class TeamTaskCreated(_TeamTask, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "team.task_created"


class TeamTaskClaimed(_TeamTask, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "team.task_claimed"


class TeamTaskCompleted(_TeamTask, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "team.task_completed"


class TeamTaskUpdated(_TeamTask, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "team.task_updated"


class TeamTaskDeleted(_TeamTask, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "team.task_deleted"


class TeamMessage(_Team, frozen=True, kw_only=True):
    """`to` absent is a broadcast."""

    TYPE: ClassVar[str] = "team.message"
    category: Category = "team_message"
    sender: str = msgspec.field(name="from")
    to: str | None = None
    summary: str | None = None
    content: Text = ""


class _TeamRequest(_Team, frozen=True, kw_only=True):
    request: str
    member: str
    reason: str | None = None


class TeamShutdownRequested(_TeamRequest, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "team.shutdown_requested"


class TeamShutdownAnswered(_TeamRequest, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "team.shutdown_answered"
    approve: bool


class TeamPlanRequested(_TeamRequest, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "team.plan_requested"
    plan: Json = None


class TeamPlanAnswered(_TeamRequest, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "team.plan_answered"
    approve: bool
    feedback: Text | None = None


class TeamPermissionRequested(_TeamRequest, frozen=True, kw_only=True):
    """A member waits for a permission that no ask of a session on the bus is about."""

    TYPE: ClassVar[str] = "team.permission_requested"
    tool: str | None = None
    input: Json = None


class TeamPermissionAnswered(_TeamRequest, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "team.permission_answered"
    approve: bool

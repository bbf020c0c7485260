"""What happens in a team, whoever tells of it. Each operation changes the board by at most one event."""

from typing import Literal

import msgspec

from trunkline_fold.team.board import RequestKind
from trunkline_wire.blocks import Json, Text
from trunkline_wire.team import Member, TeamTask


class _Op(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag=True):
    team: str


class OpenTeam(_Op, frozen=True, kw_only=True):
    """There is such a team."""

    role: Literal["lead", "member"] = "lead"
    description: str | None = None
    lead: str | None = None


class EndTeam(_Op, frozen=True, kw_only=True):
    pass


class PutMember(_Op, frozen=True, kw_only=True):
    """What is known of a member; absent fields are not. `how`: it was spawned (again), it was seen, or only if it is one."""

    member: Member
    how: Literal["spawned", "seen", "known"] = "known"


class PutTask(_Op, frozen=True, kw_only=True):
    """What is known of a task; absent fields are not. `known`: only if it is on the board."""

    task: TeamTask
    by: str | None = None
    add_blocks: list[str] = []
    add_blocked_by: list[str] = []
    known: bool = False


class Say(_Op, frozen=True, kw_only=True):
    """A message that its source tells of for the `count`-th time in the same words."""

    sender: str
    to: str | None = None
    summary: str | None = None
    content: Text = ""
    count: int = 1


class AskFor(_Op, frozen=True, kw_only=True):
    kind: RequestKind
    request: str
    member: str
    reason: str | None = None
    plan: Json = None
    tool: str | None = None
    input: Json = None


class Reply(_Op, frozen=True, kw_only=True):
    kind: RequestKind
    request: str
    member: str
    approve: bool
    reason: str | None = None
    feedback: str | None = None


Op = OpenTeam | EndTeam | PutMember | PutTask | Say | AskFor | Reply


CaveatCode = Literal["drift", "missing_field", "unknown_value", "late_call", "calls_dropped"]


class Caveat(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was told and not understood, or not in time: for whoever reads to count and log. Codes are stable."""

    code: CaveatCode
    text: str

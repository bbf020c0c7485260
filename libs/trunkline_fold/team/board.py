"""The board of a session's teams: the fold of `team` events, and of nothing else. What `trunk_teams` holds for a lead's session.

Times are RFC 3339 of the events. Texts are previews: the events themselves have the whole of them.
"""

from typing import Final, Literal

import msgspec

from trunkline_wire import TrunklineError, encode
from trunkline_wire.blocks import Json, Usage

VERSION: Final = 1
"""Version of this fold, as `state.VERSION` is of the session's."""

MAX_TEAMS: Final = 20
MAX_MEMBERS: Final = 200
MAX_TASKS: Final = 1000
MAX_MESSAGES: Final = 200
MAX_HEARD: Final = 2000
MAX_REQUESTS: Final = 200
MAX_GONE: Final = 1000
MAX_TEXT: Final = 500
"""Code points of a description, a message, a reason."""

MemberStatus = Literal["active", "idle", "shutdown"]
TaskStatus = Literal["pending", "in_progress", "completed"]
RequestKind = Literal["shutdown", "plan", "permission"]


class TeamMember(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`usage` is what it has used so far; `lane` the call of the lead's session that its events belong to."""

    name: str
    joined: str
    updated: str
    status: MemberStatus = "active"
    kind: Literal["teammate", "subagent"] = "teammate"
    agent_id: str | None = None
    type: str | None = None
    model: str | None = None
    colour: str | None = None
    session: str | None = None
    lane: str | None = None
    pane: str | None = None
    usage: Usage | None = None


class BoardTask(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`by` is who changed it last. Dependencies may form cycles: agents can write them."""

    id: str
    created: str
    updated: str
    status: TaskStatus = "pending"
    subject: str | None = None
    description: str | None = None
    owner: str | None = None
    active_form: str | None = None
    blocks: list[str] = []
    blocked_by: list[str] = []
    by: str | None = None


class BoardMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`event` is the id of the event that has the whole text; `to` absent is a broadcast."""

    event: str
    time: str
    sender: str = msgspec.field(name="from")
    to: str | None = None
    summary: str | None = None
    content: str = ""


class TeamRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A shutdown that a member was asked for, a plan or a permission that a member waits for. `approve` absent: open."""

    request: str
    kind: RequestKind
    member: str
    asked: str | None = None
    reason: str | None = None
    plan: str | None = None
    tool: str | None = None
    input: Json = None
    approve: bool | None = None
    answered: str | None = None
    feedback: str | None = None


class Team(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`usage` is summed over the members, costs too where they are known. The lead is no member: it is the session itself."""

    name: str
    created: str
    updated: str
    role: Literal["lead", "member"] = "lead"
    description: str | None = None
    lead: str | None = None
    """The lead's id as the agents know it."""
    ended: str | None = None
    agents: list[str] = []
    """The members' names in the order of their joining, those that were shut down among them."""
    members: dict[str, TeamMember] = {}
    tasks: dict[str, BoardTask] = {}
    gone: list[str] = []
    """Ids of deleted tasks; the newest MAX_GONE."""
    messages: list[BoardMessage] = []
    """The newest MAX_MESSAGES."""
    heard: dict[str, int] = {}
    """How often each message was said, by a digest of it: a source that tells of it again adds nothing."""
    open: dict[str, TeamRequest] = {}
    answered: dict[str, TeamRequest] = {}
    """The newest MAX_REQUESTS."""
    usage: Usage = Usage(source="computed")
    rest: dict[str, int] = {}
    """How many entries each capped collection has left out, by its name; no entry: none."""


class TeamsState(msgspec.Struct, frozen=True, kw_only=True):
    """The teams of one session, by name.

    `team_seq` is the stream sequence of the last event on the session's team subject, which the derived writer expects;
    `marks` says up to which sequence of each source stream results were written, `parts` which of that source's was the last.
    """

    session: str
    sequence: int = 0
    team_seq: int = 0
    marks: dict[str, int] = {}
    parts: dict[str, int] = {}
    teams: dict[str, Team] = {}

    def written(self, src: tuple[str, int, int]) -> bool:
        """Whether a result of this source, or of one behind it, is in the log."""
        stream, sequence, part = src
        return (sequence, part) <= (self.marks.get(stream, 0), self.parts.get(stream, -1))

    def live(self, name: str) -> Team | None:
        """The team of this name that has not ended."""
        team = self.teams.get(name)
        return None if team is None or team.ended is not None else team


_states: Final = msgspec.json.Decoder(TeamsState)


def initial_teams(session: str) -> TeamsState:
    """The state before the first team event."""
    return TeamsState(session=session)


def encode_teams(state: TeamsState) -> bytes:
    """The state as JSON; equal states give equal bytes."""
    return encode(state)


def decode_teams(raw: bytes) -> TeamsState:
    """The state that `encode_teams` wrote; TrunklineError `bad_event` if it is none."""
    try:
        return _states.decode(raw)
    except msgspec.MsgspecError as error:
        raise TrunklineError("bad_event", f"not a state of teams: {error}; rebuild the projection") from error

"""What is seen on a host of agents beside their own streams: their hooks, the files of their teams, their transcripts.

One JSON object a message on `trunk.obs.<host>`: the envelope's fields, `type`, and `data` with the type's payload. An
observation says what is there now. To see the same thing again changes nothing, so observers may repeat themselves.
"""

from typing import Any, ClassVar, Final, Literal, Union

import msgspec

from trunkline_wire._base import Data, tagged_family
from trunkline_wire.blocks import Json, Text, Usage
from trunkline_wire.errors import TrunklineError
from trunkline_wire.ids import new_event_id
from trunkline_wire.team import TeamTask


class Observation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """The envelope. `native_session` is the id that the agent itself gives the session of the team's lead."""

    id: str
    """UUIDv7, minted once: what `cause` of a team event names."""
    host: str
    time: str
    """When it was seen: RFC 3339 with microseconds, UTC."""
    native_session: str | None = None
    session: str | None = None
    """The lead's session on the bus, where the observer knows it (it told the agent so in its environment)."""
    path: str | None = None
    """The file it was read from, below the agent's own directory."""
    data: Data


class HookSeen(Data, frozen=True, kw_only=True):
    """A hook of an agent was called. `input` is what the agent said, verbatim; its `session_id` is in the envelope, too."""

    TYPE: ClassVar[str] = "observed.hook"
    hook_event: str
    input: Json = None


class SeenMember(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A member as the team's file lists it. `pane` is the tmux pane it runs in; None for one within the lead's process."""

    name: str
    agent_id: str | None = None
    type: str | None = None
    model: str | None = None
    colour: str | None = None
    pane: str | None = None
    active: bool | None = None
    native_session: str | None = None


class TeamSeen(Data, frozen=True, kw_only=True):
    """`teams/<team>/config.json`. `lead` is the lead's agent id; the lead is among the members."""

    TYPE: ClassVar[str] = "observed.team"
    team: str
    description: str | None = None
    lead: str | None = None
    members: list[SeenMember] = []


class TeamGone(Data, frozen=True, kw_only=True):
    """The team's directory was removed. Observers say so before they say that the files of its tasks are gone."""

    TYPE: ClassVar[str] = "observed.team_gone"
    team: str


class TaskSeen(Data, frozen=True, kw_only=True):
    """`tasks/<list>/<id>.json`, whole: what it lacks, the task has not. The list of a team bears the team's name."""

    TYPE: ClassVar[str] = "observed.task"
    list: str
    task: TeamTask


class TaskGone(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "observed.task_gone"
    list: str
    task: str


class MailSeen(Data, frozen=True, kw_only=True):
    """A new entry of `teams/<team>/inboxes/<to>.json`, verbatim in `text`, which may be JSON of the agents' own protocol."""

    TYPE: ClassVar[str] = "observed.mail"
    team: str
    to: str
    sender: str = msgspec.field(name="from")
    text: Text
    summary: str | None = None
    colour: str | None = None
    message: str | None = None
    """The agent's own id of the message."""
    sent: str | None = None


class ActivitySeen(Data, frozen=True, kw_only=True):
    """A member's transcript (`subagents/agent-*.jsonl`) has grown. `usage` is the sum of all its messages, each counted once."""

    TYPE: ClassVar[str] = "observed.activity"
    agent_id: str
    name: str | None = None
    """The member's own name, where the transcript or its neighbours tell it."""
    team: str | None = None
    model: str | None = None
    state: Literal["active", "idle"] | None = None
    messages: int = 0
    usage: Usage | None = None


OBSERVATIONS: Final[dict[str, type[Data]]] = {
    kind.TYPE: kind for kind in (HookSeen, TeamSeen, TeamGone, TaskSeen, TaskGone, MailSeen, ActivitySeen)
}
"""Every type of observation by name."""

OBSERVATION_KINDS: Final[dict[type[Data], type[Observation]]] = tagged_family(
    Observation, OBSERVATIONS.values(), field="data", tag_field="type"
)

_observations: Final[msgspec.json.Decoder[Observation]] = msgspec.json.Decoder(Union[tuple(OBSERVATION_KINDS.values())])  # type: ignore[arg-type]  # the union is made at import  # noqa: UP007


def make_observation(data: Data, *, host: str, time: str, id: str | None = None, **fields: Any) -> Observation:
    """An observation of `data`'s type. `fields` are the envelope's other fields."""
    return OBSERVATION_KINDS[type(data)](id=id or new_event_id(), host=host, time=time, data=data, **fields)


def decode_observation(raw: bytes) -> Observation:
    """The observation in `raw`, unknown fields left out; TrunklineError `bad_event` for anything else."""
    try:
        return _observations.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise TrunklineError("bad_event", f"not an observation: {error}") from error

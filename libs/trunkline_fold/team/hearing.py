"""What the deriver of one session's team events remembers of what it has read, and the words for what it reads."""

from typing import Final, Literal, TypeVar

import msgspec

from trunkline_fold.team.operations import Caveat, Op
from trunkline_wire import Event, TrunklineError, encode
from trunkline_wire.blocks import Json, Usage
from trunkline_wire.observed import Observation
from trunkline_wire.team import TeamTask

T = TypeVar("T")

LEAD: Final = "team-lead"
"""What agents call the lead among themselves."""

MAX_CALLS: Final = 1000
MAX_NAMES: Final = 64
MAX_ITEMS: Final = 64
MAX_LANES: Final = 2000
MAX_DUE: Final = 1000
MAX_VALUES: Final = 16
MAX_FIELDS: Final = 5000
LATE_S: Final = 30.0
"""Seconds of the log's time after which an open call is late."""

Teller = Literal["stream", "hook", "files", "read"]
"""Who tells: the lead's stream and those of its members, hooks, files, or an agent that has read a list."""


class Input(msgspec.Struct, frozen=True, kw_only=True):
    """A fact of the lead's session or of a member's, or an observation, with where it stands: stream and stream sequence."""

    stream: str
    sequence: int
    what: Event | Observation


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """What one input means: operations in order, of which operation k is result k of its source, and what was odd."""

    stream: str
    sequence: int
    time: str
    cause: str
    """Id of the event or observation."""
    ops: list[Op] = []
    caveats: list[Caveat] = []


class Call(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A call of a team tool without a result. `who` has called: a member's name, LEAD, or None for a nameless sub-agent."""

    item: str
    name: str
    session: str
    input: Json = None
    who: str | None = None
    lane: str | None = None
    turn: str | None = None
    time: str
    late: bool = False


class Mate(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A member as it was heard of. `resting`: it has completed a task and claimed none since."""

    name: str
    kind: Literal["teammate", "subagent"] = "teammate"
    agent_id: str | None = None
    lane: str | None = None
    session: str | None = None
    status: Literal["active", "idle", "shutdown"] = "active"
    resting: bool = False
    done: Usage = Usage(source="computed")
    items: dict[str, Usage] = {}
    """What its newest messages have used, by item: a message that is told in parts counts once."""
    seen: dict[str, Usage] = {}
    """What its transcripts say it has used, by agent: one that was spawned again has another."""
    told: Usage | None = None
    """What the last operation has said."""


class Field(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The values that a field had, newest last, and how far each teller has come in telling them."""

    values: list[Json] = []
    at: dict[str, int] = {}


class Deriver(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What has been heard of one session's teams. `hear` changes it; it can be stored between any two inputs.

    `positions` is the last sequence of each stream: what stands there or before is not heard again.
    """

    session: str
    native_session: str | None = None
    positions: dict[str, int] = {}
    team: str | None = None
    """The team that calls without a team's name are about."""
    ended: list[str] = []
    calls: dict[str, Call] = {}
    lanes: dict[str, str] = {}
    """Members' names by the call that their events belong to."""
    mates: dict[str, Mate] = {}
    listed: dict[str, list[str]] = {}
    """The members in each team's file."""
    todo: dict[str, TeamTask] = {}
    """The session's own list: a team that its agent makes by spawning takes it over."""
    fields: dict[str, Field] = {}
    heard: dict[str, dict[str, int]] = {}
    letters: dict[str, None] = {}
    """Ids of the newest mail that was seen."""
    drift: dict[str, int] = {}
    caveats: dict[str, int] = {}
    """How often each kind of caveat there was."""


def forget_oldest(kept: dict[str, T], limit: int) -> None:
    """Leaves the newest `limit` entries."""
    while len(kept) > limit:
        del kept[next(iter(kept))]


_derivers: Final = msgspec.json.Decoder(Deriver)


def encode_deriver(deriver: Deriver) -> bytes:
    """As JSON; equal derivers give equal bytes."""
    return encode(deriver)


def decode_deriver(raw: bytes) -> Deriver:
    """What `encode_deriver` wrote; TrunklineError `bad_event` if it is none."""
    try:
        return _derivers.decode(raw)
    except msgspec.MsgspecError as error:
        raise TrunklineError("bad_event", f"not a deriver's state: {error}; begin at the start of the log") from error

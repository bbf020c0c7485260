"""The envelope, and the catalogue of all event types.

An event on the wire is one JSON object: the envelope's fields, `type`, and `data` with the type's payload. In Python it
is an `Event` whose `data` is one of the payload classes: `match event.data: case TurnStarted(): …`.
"""

from typing import Any, Final

import msgspec

from trunkline_wire import asks, session, team, turn, work
from trunkline_wire._base import Data, tagged_family
from trunkline_wire.ids import new_event_id

NO_NATIVE: Final = msgspec.Raw(b"null")
"""Stands in `native` where there is no native message."""


class Source(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who asked: actor, the way in (`cli`, `web`, `nats` …), and an extension's own address."""

    actor: str
    via: str | None = None
    route: str | None = None
    role: str | None = None
    """On answers: the role that the gateway knows the actor by."""
    device: str | None = None
    """On answers: the registered device whose signature the gateway has checked."""


class AgentRef(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    adapter: str
    agent: str | None = None
    version: str | None = None


class UnknownData(Data, frozen=True, kw_only=True):
    """The payload of a type that this version does not know, as it came."""

    kind: str
    value: Any = None


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """The envelope. `time` is RFC 3339 with microseconds, UTC; `origin` is [line, part, parts], `src` [stream, sequence, k]."""

    id: str
    """UUIDv7 of the event, minted once."""
    v: int
    """Version of the type."""
    session: str
    """The bus's own session id, never an agent's."""
    time: str
    """When the writer saw it: RFC 3339 with microseconds, UTC."""
    seq: int | None = None
    """1, 2, 3 … over the session's agent events; absent on deltas and on what others write."""
    origin: tuple[int, int, int] | None = None
    """[line, k, n]: part k (from 1) of the n events made from native message `line` of this epoch."""
    src: tuple[str, int, int] | None = None
    """[stream, sequence, k] of the source of a derived event."""
    epoch: int | None = None
    """Ownership epoch of the writer."""
    turn: str | None = None
    item: str | None = None
    """The message or tool call it belongs to."""
    lane: str | None = None
    """The tool call that a subagent's event belongs to."""
    cause: str | None = None
    """Id of the command or event that led to it."""
    source: Source | None = None
    agent: AgentRef | None = None
    data: Data
    native: msgspec.Raw = NO_NATIVE
    """The agent's own message, verbatim, on the first event made from it."""

    @property
    def type(self) -> str:
        if isinstance(self.data, UnknownData):
            return self.data.kind
        return self.data.TYPE

    @property
    def has_native(self) -> bool:
        return bytes(self.native) != b"null"


AGENT_FACTS: Final[tuple[type[Data], ...]] = (
    session.SessionCreated,
    session.SessionClaimed,
    session.SessionInitialized,
    session.SessionUpdated,
    session.SessionStatus,
    session.SessionCompacted,
    session.SessionReset,
    session.SessionResumed,
    session.SessionForked,
    session.SessionArchived,
    session.SessionHandedOver,
    session.SessionErased,
    session.SessionClosed,
    turn.TurnStarted,
    turn.TurnCompleted,
    turn.MessageUser,
    turn.MessageAssistant,
    turn.MessageSystem,
    turn.ToolStarted,
    turn.ToolCompleted,
    turn.ToolSummary,
    turn.TerminalOpened,
    turn.TerminalClosed,
    turn.TerminalScreen,
    work.PlanUpdated,
    work.TaskUpdated,
    work.UsageUpdated,
    work.AuthUpdated,
    work.HookFired,
    work.FileChanged,
    work.FileRewound,
    work.DiffUpdated,
    work.CommandAccepted,
    work.CommandFinished,
    work.CommandFailed,
    work.CommandRejected,
    work.ErrorRaised,
    work.NativeMessage,
    asks.AskDelivered,
)
AGENT_ASKS: Final[tuple[type[Data], ...]] = (
    asks.PermissionRequested,
    asks.QuestionAsked,
    asks.PlanProposed,
    asks.AskWithdrawn,
)
PERMISSION_EVENTS: Final[tuple[type[Data], ...]] = (
    asks.AskRouted,
    asks.AskVoted,
    asks.AnswerRejected,
    asks.AskDecided,
    asks.AskExpired,
    asks.AskRevoked,
)
TEAM_EVENTS: Final[tuple[type[Data], ...]] = (
    team.TeamCreated,
    team.TeamDeleted,
    team.TeamMemberJoined,
    team.TeamMemberActive,
    team.TeamMemberIdle,
    team.TeamMemberShutdown,
    team.TeamTaskCreated,
    team.TeamTaskClaimed,
    team.TeamTaskCompleted,
    team.TeamTaskUpdated,
    team.TeamTaskDeleted,
    team.TeamMessage,
    team.TeamShutdownRequested,
    team.TeamShutdownAnswered,
    team.TeamPlanRequested,
    team.TeamPlanAnswered,
    team.TeamPermissionRequested,
    team.TeamPermissionAnswered,
)
DELTA_TYPES: Final[tuple[type[Data], ...]] = (turn.MessageDelta, turn.ToolProgress, turn.TerminalScreen)

CATALOGUE: Final[dict[str, type[Data]]] = {
    kind.TYPE: kind for kind in (*AGENT_FACTS, *AGENT_ASKS, *PERMISSION_EVENTS, *TEAM_EVENTS, *DELTA_TYPES)
}
"""Every type by name."""

TOLERANT: Final[dict[type[Data], type[Event]]] = tagged_family(
    Event, CATALOGUE.values(), field="data", tag_field="type"
)
STRICT: Final[dict[type[Data], type[Event]]] = tagged_family(
    Event, CATALOGUE.values(), field="data", tag_field="type", strict=True
)


class UnknownEvent(Event, frozen=True, kw_only=True, omit_defaults=True, tag="unknown"):
    """An event of a type that this version does not know; `data` is UnknownData."""


def make_event(data: Data, *, session: str, time: str, id: str | None = None, **fields: Any) -> Event:
    """An event of `data`'s type. `fields` are the envelope's other fields."""
    kind = TOLERANT[type(data)]
    return kind(id=id or new_event_id(), v=data.VERSION, session=session, time=time, data=data, **fields)


def is_ask(data: Data) -> bool:
    """Whether a payload goes to the session's `agent.ask` subject."""
    return isinstance(data, AGENT_ASKS)

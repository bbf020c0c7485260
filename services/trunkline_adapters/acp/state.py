"""What the translator remembers between messages, and the ids it gives."""

from dataclasses import dataclass, field
from typing import Any, Literal

from trunkline_adapters.acp.native import at_path
from trunkline_adapters.acp.profiles import NO_PROFILE, Profile
from trunkline_agentkit.fields import Obj
from trunkline_agentkit.protocol import Context, Fact, Out, Piece
from trunkline_wire import Data
from trunkline_wire.blocks import Block, Choice, Location, ToolKind, Usage
from trunkline_wire.ids import ask_id, item_id
from trunkline_wire.session import Capabilities
from trunkline_wire.turn import Delivery, MessageUser

AskKind = Literal["permission", "plan", "questions", "form", "url"]


@dataclass
class Prompt:
    """A prompt of ours; `key` is that of its request, None while it waits to be sent."""

    command: str | None
    content: list[Block]
    key: bytes | None = None
    said: str = ""
    """Its text as it was sent."""


@dataclass
class Turn:
    number: int
    prompt: Prompt
    interrupted: bool = False
    usage: Usage | None = None
    """Of the model's calls so far, of agents that tell it with each."""
    failure: str | None = None
    """Why it has failed, as far as the agent has said; "" while only that is known."""


@dataclass
class Segment:
    """A message whose chunks are arriving: `blocks` are done, `kind` and `parts` are the block that is being written."""

    item: str
    native: str | None
    first: int
    lane: str | None = None
    blocks: list[Block] = field(default_factory=list[Block])
    kind: Literal["text", "thinking"] | None = None
    parts: list[str] = field(default_factory=list[str])

    @property
    def index(self) -> int:
        """Index of the block that is being written."""
        return self.first + len(self.blocks)


@dataclass
class Tool:
    """A tool call that has not ended. `told` once its start is in the log."""

    native: str
    item: str
    lane: str | None
    name: str | None = None
    kind: ToolKind = "other"
    title: str | None = None
    input: Any = None
    locations: list[Location] = field(default_factory=list[Location])
    content: list[Obj] = field(default_factory=list[Obj])
    output: Any = None
    status: str = "pending"
    told: bool = False
    refused: bool = False
    updates: int = 0


@dataclass
class Terminal:
    """Output and exit code of a terminal that a tool call shows."""

    output: str = ""
    exit_code: int | None = None


@dataclass
class Ask:
    """A request that the agent waits on: `answered` once a decision went out, `cancelled` once we have called it off."""

    ask: str
    key: bytes
    kind: AskKind
    params: Obj
    tool: str | None
    """The agent's id of the tool call."""
    item: str | None
    lane: str | None
    answered: bool = False
    cancelled: bool = False


@dataclass
class Known:
    """What the log knows of the session, so that only changes are told."""

    native_session: str | None = None
    capabilities: Capabilities | None = None
    model: str | None = None
    mode: str | None = None
    thinking: str | None = None
    title: str | None = None
    commands: list[Choice] = field(default_factory=list[Choice])
    models: list[Choice] = field(default_factory=list[Choice])
    modes: list[Choice] = field(default_factory=list[Choice])
    options: list[Obj] = field(default_factory=list[Obj])
    usage: Obj = field(default_factory=dict[str, Any])


@dataclass
class State:
    context: Context
    profile: Profile = NO_PROFILE
    agent: Obj = field(default_factory=dict[str, Any])
    """The answer to `initialize`."""
    account: Obj = field(default_factory=dict[str, Any])
    initialized: bool = False
    loading: bool = False
    """A session was taken up and not prompted yet: what comes is its history, which the log has."""
    copying: bool = False
    """What is loaded is not this session, but the one that it is going to be a copy of."""
    known: Known = field(default_factory=Known)
    requests: dict[bytes, tuple[str, Obj]] = field(default_factory=dict[bytes, "tuple[str, Obj]"])
    """Our requests without an answer, by the key of their id: method and parameters."""
    coming: Prompt | None = None
    """The prompt whose request is about to be sent."""
    sent: list[Prompt] = field(default_factory=list[Prompt])
    """Prompts that the agent has and that no turn has begun of."""
    dropped: list[Prompt] = field(default_factory=list[Prompt])
    """Prompts that will never be sent, which the log does not know yet."""
    signed_out: bool = False
    """The last turn has failed for want of a login."""
    turn: Turn | None = None
    turns: int = 0
    segment: Segment | None = None
    segments: int = 0
    blocks: dict[str, int] = field(default_factory=dict[str, int])
    """Number of blocks told so far, by the message's item."""
    tools: dict[str, Tool] = field(default_factory=dict[str, Tool])
    finished: set[str] = field(default_factory=set[str])
    terminals: dict[str, Terminal] = field(default_factory=dict[str, Terminal])
    asks: dict[bytes, Ask] = field(default_factory=dict[bytes, Ask])
    asked: dict[str, int] = field(default_factory=dict[str, int])
    """How often each tool call has asked."""
    compacting: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Summary so far of each compaction that runs."""
    context_used: int | None = None
    context_size: int | None = None
    cost: float | None = None
    """The cost so far in USD."""
    partial: bool = False
    """What is counted so far is not all of this session, or not of it alone."""
    cost_before: float | None = 0.0
    totals: Usage | None = field(default_factory=Usage)
    """Cost and tokens when the last turn ended; None where an earlier process of the agent has begun to count."""

    def item(self, native: str) -> str:
        return item_id(self.context.session, self.context.incarnation, native)

    def ask(self, native: str) -> str:
        return ask_id(self.context.session, self.context.incarnation, native)

    def lane_of(self, message: Obj) -> str | None:
        """The tool call whose subagent speaks in this message."""
        parent = at_path(message, self.profile.parent_call)
        return self.item(parent) if parent else None


def fact(data: Data, *, item: str | None = None, lane: str | None = None, cause: str | None = None) -> Out:
    return Fact(data=data, item=item, lane=lane, cause=cause)


def passing(state: State, item: str | None = None) -> list[Out]:
    """A message that belongs to what is being streamed, or that the log has already: it says nothing of its own."""
    if item is None:
        item = state.segment.item if state.segment is not None else state.item("session")
    return [Piece(item=item, block=0, kind="text", text="")]


def delivered(state: State, prompt: Prompt, delivery: Delivery) -> Out:
    """The message again, with what became of it: the same item, so it replaces what was told before."""
    data = MessageUser(content=prompt.content, delivery=delivery, command=prompt.command)
    return fact(data, item=state.item(prompt.command or ""))

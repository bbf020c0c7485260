"""What the translator remembers between messages, and the ids it gives."""

from dataclasses import dataclass, field
from typing import Any, Literal

from trunkline_agentkit.fields import Obj, text
from trunkline_agentkit.protocol import Context, Fact, Out, Piece
from trunkline_wire import Data
from trunkline_wire.blocks import Block, Choice
from trunkline_wire.errors import ErrorInfo
from trunkline_wire.ids import ask_id, item_id
from trunkline_wire.session import Capabilities, McpServer
from trunkline_wire.turn import Delivery, Trigger

AskKind = Literal["permission", "question", "plan", "form"]


@dataclass
class Prompt:
    """A user line that we sent. `uuid` None: the CLI will not report its life."""

    uuid: str | None
    command: str | None = None
    content: list[Block] = field(default_factory=list[Block])
    delivery: Delivery = "queued"


@dataclass
class Turn:
    number: int
    trigger: Trigger
    uuids: set[str] = field(default_factory=set[str])
    interrupted: bool = False
    lines_added: int = 0
    lines_removed: int = 0
    error: ErrorInfo | None = None
    """The last error that a message of this turn has told."""


@dataclass
class Tool:
    """A tool call that has no result yet. `native` is the agent's id of it."""

    native: str
    item: str
    name: str
    input: Obj
    lane: str | None


@dataclass
class Ask:
    """A request that the agent waits on. `answered` once our answer went out."""

    ask: str
    request_id: str
    kind: AskKind
    request: Obj
    tool: str | None
    lane: str | None
    answered: bool = False
    mailed: bool = False
    """A teammate has asked it by mail: the CLI says nothing of it."""


@dataclass
class Stream:
    """A message whose pieces are arriving. `block` is the index of its open block."""

    message: str
    item: str
    lane: str | None
    model: str | None = None
    usage: Obj = field(default_factory=dict[str, Any])
    block: int | None = None
    kind: str | None = None


@dataclass
class Known:
    """What the log already knows of the session, so that only changes are told."""

    native_session: str | None = None
    model: str | None = None
    mode: str | None = None
    tools: list[str] = field(default_factory=list[str])
    mcp_servers: list[McpServer] = field(default_factory=list[McpServer])
    commands: list[Choice] = field(default_factory=list[Choice])
    slash: list[str] = field(default_factory=list[str])
    title: str | None = None


@dataclass
class State:
    context: Context
    capabilities: Capabilities
    resumed: bool = False
    """The agent took up an older session: its running totals began before this process."""
    initialized: bool = False
    reply: Obj = field(default_factory=dict[str, Any])
    """The last `initialize` reply."""
    known: Known = field(default_factory=Known)
    condition: str | None = None
    """A condition that was told by `session.status` and has not ended yet."""
    turn: Turn | None = None
    turns: int = 0
    lifecycle: bool = False
    """The CLI reports the life of prompts by uuid."""
    prompts: list[Prompt] = field(default_factory=list[Prompt])
    known_users: set[str] = field(default_factory=set[str])
    """uuids of user messages that the log has: our prompts, and what the CLI has told; after a compaction it tells some again."""
    streams: dict[str | None, Stream] = field(default_factory=dict[str | None, Stream])
    blocks: dict[str, int] = field(default_factory=dict[str, int])
    """Number of blocks told so far, by message id."""
    context_used: int | None = None
    tools: dict[str, Tool] = field(default_factory=dict[str, Tool])
    finished: set[str] = field(default_factory=set[str])
    denied: set[str] = field(default_factory=set[str])
    """Tool calls that we have refused."""
    lanes: dict[str, str] = field(default_factory=dict[str, str])
    """Subagent's id -> the agent's id of the tool call that runs it."""
    asks: dict[str, Ask] = field(default_factory=dict[str, Ask])
    """By request id."""
    asked: dict[str, int] = field(default_factory=dict[str, int])
    """How often each tool call has asked."""
    requests: dict[str, Obj] = field(default_factory=dict[str, Obj])
    """Our own control requests without an answer, by request id."""
    rewinds: dict[str, Obj] = field(default_factory=dict[str, Obj])
    """What a trial rewind said, by the prompt's uuid."""
    commands: dict[str, str] = field(default_factory=dict[str, str])
    """uuid of a prompt -> id of the command that brought it."""
    total_cost: float = 0.0
    models: dict[str, Obj] = field(default_factory=dict[str, Obj])
    """`modelUsage` of the last result."""

    def item(self, native: str) -> str:
        return item_id(self.context.session, self.context.incarnation, native)

    def ask(self, native: str) -> str:
        return ask_id(self.context.session, self.context.incarnation, native)

    def lane_of(self, message: Obj) -> str | None:
        """The tool call whose subagent speaks in this message."""
        parent = text(message, "parent_tool_use_id")
        agent = text(message, "agent_id")
        if parent is None:
            parent = self.lanes.get(agent) if agent else None
        elif agent:
            self.lanes[agent] = parent
        return self.item(parent) if parent else None


def fact(data: Data, *, item: str | None = None, lane: str | None = None, cause: str | None = None) -> Out:
    return Fact(data=data, item=item, lane=lane, cause=cause)


def passing(item: str, *, block: int = 0, lane: str | None = None) -> list[Out]:
    """A message of the stream's bookkeeping: it belongs to the pieces and says nothing of its own."""
    return [Piece(item=item, block=block, kind="text", text="", lane=lane)]

"""What the translator remembers between messages, and the ids it gives."""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from trunkline_adapters.codex.usage import Counts
from trunkline_agentkit import Survivor
from trunkline_agentkit.fields import Obj, text
from trunkline_agentkit.protocol import Context, Fact, Out, Piece
from trunkline_wire import Data
from trunkline_wire.blocks import Block, Choice
from trunkline_wire.errors import ErrorInfo
from trunkline_wire.ids import ask_id, item_id
from trunkline_wire.session import Capabilities, McpServer, SessionUpdated
from trunkline_wire.turn import Trigger

AskKind = Literal["command", "file", "permissions", "tool", "question", "form", "call", "plan"]
"""What is asked for; `tool` is the call of an MCP server's tool, `call` one of a tool that this client offers."""

_REMEMBERED: Final = 512


class Seen:
    """A set of native ids that forgets the oldest above a limit."""

    def __init__(self) -> None:
        self._ids: OrderedDict[str, None] = OrderedDict()

    def add(self, id: str) -> None:
        self._ids[id] = None
        if len(self._ids) > _REMEMBERED:
            self._ids.popitem(last=False)

    def discard(self, id: str) -> None:
        self._ids.pop(id, None)

    def __contains__(self, id: object) -> bool:
        return id in self._ids


@dataclass
class Beginning:
    """A request of ours that begins a turn which has not begun yet. `turn` is the id that its answer named."""

    method: str
    command: str | None
    content: list[Block] = field(default_factory=list[Block])
    schema: bool = False
    turn: str | None = None


@dataclass
class Open:
    """An item without an end. `said` is what its pieces were so far."""

    native: str
    thread: str
    item: str
    kind: str
    body: Obj
    lane: str | None
    said: str = ""
    parts: int = 0
    """Parts that its summary has so far."""
    started: bool = False
    """A `tool.started` was told for it."""
    halved: bool = False
    """Its pieces so far came to another worker: where the next one belongs is not known."""


@dataclass
class Turn:
    id: str
    """What an interruption names: a review has several ids."""
    number: int
    trigger: Trigger
    ids: set[str]
    schema: bool = False
    interrupted: bool = False
    used: Counts = field(default_factory=dict[str, int])
    said: str | None = None
    """The last message of the agent."""
    plan: tuple[str, str] | None = None
    """The last proposed plan: its item's native id, and its text."""
    lines_added: int = 0
    lines_removed: int = 0
    error: ErrorInfo | None = None
    diff: str | None = None
    """The diff of the whole turn that was told last."""


@dataclass
class Ask:
    """A request that the server waits on. `answer` is what we have sent."""

    ask: str
    key: str
    request_id: Any
    kind: AskKind
    params: Obj
    thread: str
    tool: str | None = None
    lane: str | None = None
    answer: Obj | None = None


@dataclass
class Known:
    """What the log already knows of the session, so that only changes are told."""

    model: str | None = None
    mode: str | None = None
    thinking: str | None = None
    title: str | None = None
    workspace: Obj | None = None
    """What the sandbox `workspace-write` allows, where the thread has told it."""


@dataclass
class State:
    context: Context
    capabilities: Capabilities
    join: str | None = None
    """The command that opens a terminal on the server, without the thread's id; None: the server is ours alone."""
    requests: dict[str, Obj] = field(default_factory=dict[str, Obj])
    """Our own requests without an answer, by the JSON text of their id."""
    thread: str | None = None
    """The session's own thread; every other one is a sub-agent's, or none of ours."""
    version: str | None = None
    account: Obj = field(default_factory=dict[str, Any])
    models: list[Obj] = field(default_factory=list[Obj])
    commands: list[Choice] = field(default_factory=list[Choice])
    skills: dict[str, str] = field(default_factory=dict[str, str])
    """Path of each skill's file, by its name."""
    mcp_servers: dict[str, McpServer] = field(default_factory=dict[str, McpServer])
    known: Known = field(default_factory=Known)
    notices: set[str] = field(default_factory=set[str])
    """Warnings that were told: Codex repeats some every turn."""
    condition: str | None = None
    """A condition that was told by `session.status` and has not ended yet."""
    turn: Turn | None = None
    turns: int = 0
    next_command: str | None = None
    """The command behind the next request of ours that can't carry its id."""
    beginnings: dict[str, Beginning] = field(default_factory=dict[str, Beginning])
    """By the JSON text of the request's id."""
    ours: Seen = field(default_factory=Seen)
    """Ids of user messages that we have sent."""
    steered: Seen = field(default_factory=Seen)
    """Those of them that were sent into a running turn, until Codex has taken them."""
    done: Seen = field(default_factory=Seen)
    """Ids of turns that have ended: what still comes of them begins no new one."""
    open: dict[str, Open] = field(default_factory=dict[str, Open])
    finished: Seen = field(default_factory=Seen)
    background: dict[str, str] = field(default_factory=dict[str, str])
    """Commands that went on after their turn: native item -> id of the process."""
    lanes: dict[str, str] = field(default_factory=dict[str, str])
    """Sub-agent's thread -> item of the tool call that started it."""
    unclaimed: dict[str, str] = field(default_factory=dict[str, str])
    """Calls that start a sub-agent whose thread isn't known yet: item -> prompt."""
    denied: Seen = field(default_factory=Seen)
    """Items of calls that we have refused, where Codex only says that they failed."""
    asks: dict[str, Ask] = field(default_factory=dict[str, Ask])
    """By the native key of what is asked."""
    asked: dict[str, int] = field(default_factory=dict[str, int])
    """How often each key was asked for."""
    repeats: list[Ask] = field(default_factory=list[Ask])
    """Asks that we have answered and that came again: the answer was lost."""
    totals: dict[str, Counts] = field(default_factory=dict[str, Counts])
    """Running totals by thread."""
    context_used: int | None = None
    compacting_from: int | None = None
    compact_asked: bool = False
    lost: bool = False
    """The connection was lost: messages may be missing, until the thread's last turns are told."""
    adopting: bool = False
    """It is that of another worker that was lost: the log is to be told when nothing is missing any more."""
    adopted: bool = False
    survivor: Survivor | None = None
    """What the log has of it; until nothing is missing any more."""
    standing: dict[str, bool] = field(default_factory=dict[str, bool])
    """Asks that another worker told: whether they were waiting when it was lost."""
    came_again: set[str] = field(default_factory=set[str])
    """Keys of the asks that came over a new connection, while something is missing."""
    asking: set[str] = field(default_factory=set[str])
    """The threads of these."""
    awaiting: set[str] = field(default_factory=set[str])
    """Threads that say that they wait for an answer, and have not asked again."""
    running: set[str] = field(default_factory=set[str])
    """Sub-agents' threads with a turn that has not ended."""
    reach: int = 2
    """How many of the thread's last turns tell all that may be missing; 0: none do."""
    held: Obj | None = None
    """A `turn/completed` that came meanwhile: what is missing of its turn has to be told before."""

    def native_item(self, thread: str | None, native: str) -> str:
        """An item's name in this session: ids are the model's, so those of other threads are kept apart."""
        return native if thread in (None, self.thread) else f"{thread}:{native}"

    def item(self, native: str) -> str:
        return item_id(self.context.session, self.context.incarnation, native)

    def ask(self, native: str) -> str:
        return ask_id(self.context.session, self.context.incarnation, native)

    def main(self, params: Obj) -> bool:
        """Whether a message is of the session's own thread."""
        return text(params, "threadId") in (None, self.thread)


def changed(state: State, fresh: dict[str, str | None]) -> list[Out]:
    """What of these settings is not known yet; from now on it is."""
    news: dict[str, Any] = {
        name: value for name, value in fresh.items() if value and value != getattr(state.known, name)
    }
    for name, value in news.items():
        setattr(state.known, name, value)
    return [fact(SessionUpdated(**news))] if news else []


def fact(data: Data, *, item: str | None = None, lane: str | None = None, cause: str | None = None) -> Out:
    return Fact(data=data, item=item, lane=lane, cause=cause)


def passing(item: str, *, block: int = 0, lane: str | None = None) -> list[Out]:
    """A message of the stream's bookkeeping: it belongs to the pieces and says nothing of its own."""
    return [Piece(item=item, block=block, kind="text", text="", lane=lane)]

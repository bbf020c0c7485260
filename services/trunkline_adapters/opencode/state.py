"""What the translator remembers between messages, and the ids it gives."""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from trunkline_adapters.opencode.profiles import Profile
from trunkline_adapters.opencode.usage import Counts
from trunkline_agentkit import Survivor
from trunkline_agentkit.fields import Obj, text
from trunkline_agentkit.protocol import Context, Fact, Out, Piece
from trunkline_wire import Data
from trunkline_wire.blocks import Block
from trunkline_wire.errors import ErrorInfo
from trunkline_wire.ids import ask_id, item_id
from trunkline_wire.session import Capabilities
from trunkline_wire.turn import Trigger

_REMEMBERED: Final = 4096


class Seen:
    """A set of native ids that forgets the oldest above a limit."""

    def __init__(self) -> None:
        self._ids: OrderedDict[str, None] = OrderedDict()

    def add(self, id: str) -> None:
        self._ids[id] = None
        if len(self._ids) > _REMEMBERED:
            self._ids.popitem(last=False)

    def __contains__(self, id: object) -> bool:
        return id in self._ids


BeginningKind = Literal["prompt", "command", "shell", "summarize"]


@dataclass
class Beginning:
    """A request of ours that begins a turn, or is taken into a running one; nothing has answered it yet."""

    kind: BeginningKind
    request: str
    """The key of the request."""
    command: str | None
    content: list[Block] = field(default_factory=list[Block])
    message: str | None = None
    """The user message that it became."""


@dataclass
class User:
    """A user message that no answer has come to."""

    id: str
    session: str
    parts: dict[str, Obj] = field(default_factory=dict[str, Obj])


@dataclass
class Message:
    """A message of the model that is not complete, or has calls without an end."""

    id: str
    item: str
    session: str
    lane: str | None
    parent: str | None = None
    blocks: int = 0
    """Texts and thoughts that it has so far."""
    summary: bool = False
    """It is the summary that a compaction leaves."""
    complete: bool = False
    changed: set[str] = field(default_factory=set[str])
    """Files that its tools have told of."""


@dataclass
class Part:
    """A text, a thought or a call without an end."""

    id: str
    kind: Literal["text", "thinking", "tool"]
    message: str
    session: str
    item: str
    lane: str | None
    block: int = 0
    said: str = ""
    """What its pieces were so far; of a call, what it has printed."""
    holed: bool = False
    """Pieces of it were missed: none is told any more, only the whole at its end."""
    started: bool = False
    """A `tool.started` was told for it."""
    body: Obj = field(default_factory=dict[str, Any])
    diff: str | None = None
    """The change that permission was asked for."""


@dataclass
class Turn:
    number: int
    trigger: Trigger
    cause: Beginning | None = None
    interrupted: bool = False
    """We have told the agent to end it."""
    aborted: bool = False
    """The server was restarted."""
    answered: bool = False
    """The model has begun a message in it."""
    idle: bool = False
    """The session was said to be idle, though something of the turn is open or missing."""
    counts: Counts = field(default_factory=Counts)
    said: str | None = None
    """The last text of the model."""
    finish: str | None = None
    structured: Any = None
    error: ErrorInfo | None = None
    refused: bool = False
    hopeless: ErrorInfo | None = None
    """Why it is ended: its model can't be reached."""
    broken: int = 0
    """Answers of the model in a row that broke off."""
    lines_added: int = 0
    lines_removed: int = 0


@dataclass
class Ask:
    """A permission or a question that the server waits for. `answered`: we have sent an answer, `body` is what it was."""

    ask: str
    key: str
    kind: Literal["permission", "question"]
    session: str
    request: Obj
    tool: str | None = None
    lane: str | None = None
    answered: bool = False
    body: Any = None


@dataclass
class Known:
    """What the log already knows of the session, so that only changes are told."""

    model: str | None = None
    mode: str | None = None
    title: str | None = None


@dataclass
class Learned:
    """What the server said about itself, before the session began."""

    version: str | None = None
    config: Obj = field(default_factory=dict[str, Any])
    providers: list[Obj] = field(default_factory=list[Obj])
    defaults: Obj = field(default_factory=dict[str, Any])
    """The default model of each provider."""
    agents: list[Obj] = field(default_factory=list[Obj])
    commands: list[Obj] = field(default_factory=list[Obj])
    tools: list[str] = field(default_factory=list[str])
    mcp: Obj = field(default_factory=dict[str, Any])


@dataclass
class Reading:
    """What is read back after events were missed, until all of it is there."""

    busy: bool = False
    messages: dict[str, list[Obj]] = field(default_factory=dict[str, list[Obj]])
    """By session, the oldest first."""
    permissions: list[Obj] = field(default_factory=list[Obj])


@dataclass
class State:
    context: Context
    profile: Profile
    capabilities: Capabilities
    join: str | None = None
    """The command that opens a terminal on the server, without the session's id; None: the server is ours alone."""
    attempts: int = 8
    """How often a model that fails is asked again before its turn is ended."""
    requests: dict[str, Obj] = field(default_factory=dict[str, Obj])
    """Our requests without an answer, by their number."""
    session: str | None = None
    """The session's own; every other one is a sub-agent's, or none of ours."""
    learned: Learned = field(default_factory=Learned)
    known: Known = field(default_factory=Known)
    condition: str | None = None
    """A condition that was told by `session.status` and has not ended yet."""
    turn: Turn | None = None
    turns: int = 0
    next_command: str | None = None
    """The command behind the next request of ours that can't carry its id."""
    beginnings: list[Beginning] = field(default_factory=list[Beginning])
    """In the order in which they were sent."""
    users: dict[str, User] = field(default_factory=dict[str, User])
    messages: dict[str, Message] = field(default_factory=dict[str, Message])
    done: Seen = field(default_factory=Seen)
    """Ids of messages that are complete, or were told."""
    anchor: str = ""
    """The highest id of a message of a turn that has ended: none up to it is news. Ids grow with time."""
    parts: dict[str, Part] = field(default_factory=dict[str, Part])
    finished: Seen = field(default_factory=Seen)
    """Ids of parts that have ended."""
    lanes: dict[str, str] = field(default_factory=dict[str, str])
    """Sub-agent's session -> item of the call that started it."""
    children: dict[str, str] = field(default_factory=dict[str, str])
    """Sub-agent's session -> its parent's, of those that still run."""
    asks: dict[str, Ask] = field(default_factory=dict[str, Ask])
    """By the server's id of the request."""
    repeats: list[Ask] = field(default_factory=list[Ask])
    """Asks that we have answered and that are open all the same: the answer was lost."""
    totals: Counts = field(default_factory=Counts)
    """Running totals of the session's own messages, as they were told."""
    context_used: int | None = None
    compacting_from: int | None = None
    compact_trigger: str = "manual"
    diffs: dict[str, str] = field(default_factory=dict[str, str])
    """The diffs that were told of the latest user messages, by their ids."""
    lost: bool = False
    """Events may have been missed, until the state is read back."""
    resumed: bool = False
    """The session is an older one: what was said in it before is no news."""
    reading: Reading | None = None
    survivor: Survivor | None = None
    """What the log of another worker holds, until the session is taken up."""

    def item(self, native: str) -> str:
        return item_id(self.context.session, self.context.incarnation, native)

    def ask(self, native: str) -> str:
        return ask_id(self.context.session, self.context.incarnation, native)

    def is_old(self, message: Obj) -> bool:
        """Whether a message is none of the running turn's, nor of a later one."""
        return (text(message, "id") or "") <= self.anchor


def fact(data: Data, *, item: str | None = None, lane: str | None = None, cause: str | None = None) -> Out:
    return Fact(data=data, item=item, lane=lane, cause=cause)


def passing(item: str, *, block: int = 0, lane: str | None = None) -> list[Out]:
    """A message of the stream's bookkeeping: it belongs to the pieces and says nothing of its own."""
    return [Piece(item=item, block=block, kind="text", text="", lane=lane)]

"""The state of a session: everything a list or a screen needs before it reads a single event.

Every list is capped and says in `rest` how many entries it left out; texts are previews. The order of entries is kept in
lists, never in dicts: encoding sorts a dict's keys, and a state that was stored and read back must fold on like the
original.
"""

from typing import Final, Literal

import msgspec

from trunkline_wire import TrunklineError, encode
from trunkline_wire.blocks import Choice, Json, Location, ToolKind, Usage
from trunkline_wire.errors import ErrorInfo
from trunkline_wire.session import (
    Capabilities,
    McpServer,
    SessionClosed,
    SessionErased,
    SessionOptions,
)
from trunkline_wire.turn import Outcome, Trigger
from trunkline_wire.work import PlanEntry

VERSION: Final = 2
"""Version of the fold. A change of what it computes raises it: the projection is then built anew beside the old one."""

Status = Literal[
    "starting",
    "idle",
    "running",
    "waiting",
    "interrupting",
    "compacting",
    "retrying",
    "stalled",
    "authenticating",
    "stopped",
    "closed",
    "archived",
    "degraded",
]
Condition = Literal["starting", "interrupting", "compacting", "authenticating", "retrying", "stalled", "stopped"]
"""What an adapter reports, as opposed to what is folded."""

MAX_ALIASES: Final = 20
MAX_TASKS: Final = 200
MAX_COMMANDS: Final = 500
MAX_CHOICES: Final = 200
MAX_TOOLS: Final = 500
MAX_SERVERS: Final = 100
MAX_PLAN: Final = 200
MAX_OPEN_TOOLS: Final = 200
MAX_OPEN_ASKS: Final = 500
MAX_COUNTED: Final = 64
MAX_PENDING: Final = 20
MAX_ENDED_ASKS: Final = 50


class OpenTurn(msgspec.Struct, frozen=True, kw_only=True):
    """`id` is the turn's, `cause` the command or event that started it, `started` a time."""

    id: str | None
    number: int
    started: str
    cause: str | None = None
    trigger: Trigger = "prompt"


class LastTurn(msgspec.Struct, frozen=True, kw_only=True):
    id: str | None
    number: int
    outcome: Outcome
    completed: str
    trigger: Trigger = "prompt"
    cause: str | None = None
    started: str | None = None
    duration_ms: int | None = None
    cost_usd: float | None = None
    error: ErrorInfo | None = None


class OpenTool(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    started: str
    kind: ToolKind = "other"
    title: str | None = None
    turn: str | None = None
    lane: str | None = None
    locations: list[Location] = []


class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """The agent tries a request again: attempt, of how many, and the wait before it in milliseconds, counted from `time`."""

    attempt: int | None = None
    max_attempts: int | None = None
    after_ms: int | None = None
    reason: str | None = None
    time: str | None = None


class TaskState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    task: str
    started: str
    updated: str
    kind: str | None = None
    status: Literal["pending", "running", "completed", "failed", "stopped"] | None = None
    description: str | None = None
    summary: str | None = None
    background: bool | None = None
    usage: Json = None
    tool: str | None = None
    output_file: str | None = None


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """How much of the model's context is used, in tokens."""

    used: int | None = None
    size: int | None = None


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    prompts: int = 0
    messages: int = 0
    tools: int = 0
    tools_failed: int = 0
    asks: int = 0
    errors: int = 0
    files: int = 0
    compactions: int = 0
    native_known: int = 0
    native_unknown: int = 0
    unknown_types: int = 0


class Counted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message whose usage is in the totals. `settled`: its turn has ended, later repetitions count for nothing."""

    item: str
    usage: Usage | None = None
    settled: bool = False


class Metering(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the totals come about: `done` is of ended turns, `live` of the messages of the open one that are no longer in
    `counted`. `cost_base` is what earlier native sessions cost, `cost_total` the agent's running total in `cost_native`.
    """

    done: Usage = Usage()
    live: Usage = Usage()
    counted: list[Counted] = []
    cost_base: float = 0.0
    cost_total: float | None = None
    cost_native: str | None = None
    cost_extra: float | None = None
    """Costs reported by turn or message since the last running total."""


class Terminal(msgspec.Struct, frozen=True, kw_only=True):
    columns: int
    rows: int
    title: str | None = None


class Auth(msgspec.Struct, frozen=True, kw_only=True):
    authenticating: bool
    methods: list[str] = []
    error: str | None = None


class LastError(msgspec.Struct, frozen=True, kw_only=True):
    code: str
    message: str
    time: str


class SessionState(msgspec.Struct, frozen=True, kw_only=True):
    """Times are RFC 3339 of the events; `sequence` is the stream sequence that the state is folded up to."""

    session: str
    status: Status = "idle"
    status_since: str | None = None
    retry: Retry | None = None
    condition: Condition | None = None
    condition_since: str | None = None
    condition_reason: str | None = None

    sequence: int = 0
    seq: int = 0
    epoch: int = 0
    cmd_seq: int = 0
    created: str | None = None
    updated: str | None = None
    worker: str | None = None
    incarnation: str | None = None

    adapter: str | None = None
    agent: str | None = None
    version: str | None = None
    cwd: str | None = None
    host: str | None = None
    workspace: str | None = None
    placement: Literal["host", "any"] = "host"
    parent: str | None = None
    forked_at: str | None = None
    spawn: str | None = None
    options: SessionOptions = SessionOptions()
    title: str | None = None
    native_session: str | None = None
    aliases: list[str] = []
    """Every native session id so far, in order of appearance, the current one among them."""
    interface: Literal["structured", "terminal"] = "structured"
    terminal: Terminal | None = None
    attach: str | None = None
    """The command that opens the agent's own terminal on the running session."""
    auth: Auth | None = None
    account: Json = None

    model: str | None = None
    mode: str | None = None
    thinking: str | None = None
    initialized: bool = False
    capabilities: Capabilities | None = None
    commands: list[Choice] = []
    models: list[Choice] = []
    modes: list[Choice] = []
    agents: list[Choice] = []
    tools: list[str] = []
    mcp_servers: list[McpServer] = []
    config_options: Json = None
    suggestion: str | None = None

    turn: OpenTurn | None = None
    last_turn: LastTurn | None = None
    turns: int = 0
    pending: list[str] = []
    """Prompts that the agent has and that no turn has begun for: command ids (event ids where there is no command)."""
    open_tools: dict[str, OpenTool] = {}
    open_asks: list[str] = []
    ended_asks: list[str] = []
    tasks: list[TaskState] = []
    plan: list[PlanEntry] = []

    usage: Usage = Usage()
    cost_usd: float | None = None
    usage_by_model: dict[str, Usage] = {}
    context: Context = Context()
    rate_limits: Json = None
    metering: Metering = Metering()

    counts: Counts = Counts()
    rest: dict[str, int] = {}
    """How many entries each capped list has left out, by the list's name; no entry: none."""
    last_text: str | None = None
    last_author: Literal["user", "assistant"] | None = None
    last_error: LastError | None = None
    closed: SessionClosed | None = None
    archived: bool = False
    erased: SessionErased | None = None


STATIC_FIELDS: Final = frozenset(
    {
        "session",
        "created",
        "adapter",
        "agent",
        "version",
        "cwd",
        "host",
        "workspace",
        "placement",
        "parent",
        "forked_at",
        "spawn",
        "options",
        "account",
        "capabilities",
        "commands",
        "models",
        "modes",
        "agents",
        "tools",
        "mcp_servers",
        "config_options",
    }
)
"""Fields that seldom change and are most of a state's bytes: a store may keep them under a key of their own."""

_states: Final = msgspec.json.Decoder(SessionState)


def initial(session: str) -> SessionState:
    """The state before the first event."""
    return SessionState(session=session)


def encode_state(state: SessionState) -> bytes:
    """The state as JSON; equal states give equal bytes."""
    return encode(state)


def decode_state(raw: bytes) -> SessionState:
    """The state that `encode_state` wrote; TrunklineError `bad_event` if it is none."""
    try:
        return _states.decode(raw)
    except msgspec.MsgspecError as error:
        raise TrunklineError("bad_event", f"not a session's state: {error}; rebuild the projection") from error


def split_state(state: SessionState) -> tuple[bytes, bytes]:
    """The state in two JSON objects: (the STATIC_FIELDS, all the others). `join_state` is the inverse."""
    whole = msgspec.to_builtins(state)
    static = {name: value for name, value in whole.items() if name in STATIC_FIELDS}
    hot = {name: value for name, value in whole.items() if name not in STATIC_FIELDS}
    return encode(static), encode(hot)


def join_state(static: bytes, hot: bytes) -> SessionState:
    """The state of two parts that `split_state` wrote; TrunklineError `bad_event` if they are none."""
    try:
        return msgspec.convert({**msgspec.json.decode(static), **msgspec.json.decode(hot)}, SessionState)
    except (msgspec.MsgspecError, TypeError) as error:
        raise TrunklineError("bad_event", f"not a session's state: {error}; rebuild the projection") from error

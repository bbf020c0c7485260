"""Payloads about a session as a whole."""

from typing import Any, ClassVar, Literal

import msgspec

from trunkline_wire._base import Data
from trunkline_wire.blocks import Choice, Json, Text

Availability = Literal["local", "remote", "both"]
Hold = Literal["auto", "child", "detached", "tmux"]
Thinking = Literal["off", "low", "medium", "high", "max"]


class Capabilities(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a session's agent can do: data, never a question of which agent it is."""

    streaming: bool = False
    interrupt: bool = False
    resume: bool = False
    fork: bool = False
    rewind: bool = False
    model_switching: bool = False
    mode_switching: bool = False
    thinking: bool = False
    slash_commands: bool = False
    mcp: bool = False
    structured_output: bool = False
    image_input: bool = False
    file_checkpointing: bool = False
    cost_tracking: bool = False
    teams: bool = False
    permissions: bool = False
    questions: bool = False
    plans: bool = False
    steering: bool = False
    queueing: bool = False
    compaction: bool = False
    archive: bool = True
    terminal: bool = False
    native_protocol: bool = False
    availability: Availability = "local"
    hold: tuple[Hold, ...] = ("child",)
    options: tuple[str, ...] = ()
    """The session options (names of SessionOptions' fields) that the adapter honours."""
    heuristic: tuple[str, ...] = ()
    """What is read from a screen and may be wrong: names of capabilities, `turns` and `messages`."""


class SessionOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a session is to be run. What an adapter can't honour is refused with `unsupported`, by name.

    `environment` is kept in the log like every option: a secret belongs into a variable that the adapter's manifest names.
    """

    model: str | None = None
    mode: str | None = None
    thinking: Thinking | None = None
    environment: dict[str, str] = {}
    system_prompt: str | None = None
    append_system_prompt: str | None = None
    allowed_tools: list[str] | None = None
    disallowed_tools: list[str] | None = None
    mcp_servers: dict[str, Json] = {}
    agents: dict[str, Json] = {}
    budget_usd: float | None = None
    max_turns: int | None = None
    output_schema: Json = None
    prompt: str | None = None
    hold: Hold = "auto"
    """What becomes of the agent without its worker. `child` (what `auto` is): it ends. `detached`, `tmux`: it goes on."""
    resume_native: str | None = None
    """A native session id to take up instead of starting a new native session."""
    keep_native: Literal["all", "lossy", "none"] = "all"
    native: dict[str, Json] = {}
    """Options of one adapter, by the adapter's own names."""


class SessionCreated(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "session.created"
    adapter: str
    cwd: str
    host: str
    workspace: str
    agent: str | None = None
    title: str | None = None
    options: SessionOptions = SessionOptions()
    placement: Literal["host", "any"] = "host"
    parent: str | None = None
    spawn: str | None = None
    """Id of the spawn request: a repeated request gets the same session."""


class SessionClaimed(Data, frozen=True, kw_only=True):
    """Ownership begins: nothing of an older epoch follows. `incarnation` names the agent process if it survived."""

    TYPE: ClassVar[str] = "session.claimed"
    worker: str
    host: str
    incarnation: str | None = None


class McpServer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    status: str | None = None
    error: str | None = None
    tools: int | None = None


class SessionInitialized(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "session.initialized"
    capabilities: Capabilities
    native_session: str | None = None
    incarnation: str | None = None
    model: str | None = None
    mode: str | None = None
    tools: list[str] = []
    mcp_servers: list[McpServer] = []
    commands: list[Choice] = []
    models: list[Choice] = []
    modes: list[Choice] = []
    agents: list[Choice] = []
    account: dict[str, Any] = {}
    version: str | None = None
    attach: str | None = None
    """The command with which a person on this host opens the agent's own terminal on the running session; no secret is in it."""


class SessionUpdated(Data, frozen=True, kw_only=True):
    """Any of these has changed; what is absent has not."""

    TYPE: ClassVar[str] = "session.updated"
    model: str | None = None
    mode: str | None = None
    thinking: str | None = None
    title: str | None = None
    native_session: str | None = None
    commands: list[Choice] | None = None
    models: list[Choice] | None = None
    tools: list[str] | None = None
    mcp_servers: list[McpServer] | None = None
    config_options: Json = None
    suggestion: str | None = None


class SessionStatus(Data, frozen=True, kw_only=True):
    """What can't be folded from other events. `status` None ends the reported condition."""

    TYPE: ClassVar[str] = "session.status"
    status: (
        Literal["starting", "interrupting", "compacting", "authenticating", "retrying", "stalled", "stopped"] | None
    ) = None
    attempt: int | None = None
    max_attempts: int | None = None
    after_ms: int | None = None
    since: str | None = None
    reason: str | None = None


class SessionCompacted(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "session.compacted"
    trigger: str
    before: int | None = None
    after: int | None = None
    duration_ms: int | None = None


class SessionReset(Data, frozen=True, kw_only=True):
    """The agent's conversation is left behind: the next prompt begins a new one, in this session. The history stays."""

    TYPE: ClassVar[str] = "session.reset"
    by: str | None = None


class SessionResumed(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "session.resumed"
    how: Literal["native", "adopted", "reopened", "unarchived"]
    native_session: str | None = None


class SessionForked(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "session.forked"
    parent: str
    at: str | None = None
    native_session: str | None = None


class SessionArchived(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "session.archived"
    by: str | None = None


class SessionHandedOver(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "session.handed_over"
    to: Literal["structured", "terminal"]
    by: str | None = None


class SessionErased(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "session.erased"
    by: str
    reason: str | None = None


class SessionClosed(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "session.closed"
    reason: str
    exit_code: int | None = None
    signal: int | None = None
    last_error: Text | None = None
    cmd_seq: int = 0

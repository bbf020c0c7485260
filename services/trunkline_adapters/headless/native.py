"""What a line of an agent can say, in words that all dialects share. A dialect puts its messages into them, and is pure.

A dialect is a function of one message: None where it does not know its kind, an empty sequence where the kind is known to
say nothing to a reader.
"""

from collections.abc import Callable, Sequence
from typing import Final, Literal

import msgspec

from trunkline_agentkit.fields import Obj, obj, text
from trunkline_wire.blocks import Block, Json, ToolKind, Usage
from trunkline_wire.session import McpServer
from trunkline_wire.turn import ModelUsage, Outcome, ToolStatus


class Began(msgspec.Struct, frozen=True, kw_only=True):
    """The run has begun. `session` is the native session's id, where the agent says one."""

    session: str | None = None
    model: str | None = None
    mode: str | None = None
    version: str | None = None
    tools: tuple[str, ...] = ()
    mcp_servers: tuple[McpServer, ...] = ()


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """What follows is of this message. `lane` is the native id of the call whose subagent speaks."""

    message: str
    lane: str | None = None


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of the block that is being written; one of another kind begins the next block."""

    text: str
    kind: Literal["text", "thinking"] = "text"
    lane: str | None = None


class Spoke(msgspec.Struct, frozen=True, kw_only=True):
    """Finished blocks: the first is the one that was written in pieces, if one was. `message` names theirs, where nothing has `Opened` it."""

    content: tuple[Block, ...]
    message: str | None = None
    lane: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    usage: Usage | None = None


class Called(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call begins."""

    id: str
    name: str
    input: Json = None
    lane: str | None = None


class Printed(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of the output of a tool call that goes on."""

    id: str
    text: str


class Returned(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call ends. `said` is its output as text."""

    id: str
    status: ToolStatus
    said: str | None = None
    exit_code: int | None = None
    duration_ms: int | None = None
    structured: Json = None


class Noticed(msgspec.Struct, frozen=True, kw_only=True):
    """A word of the program to its user."""

    text: str
    level: Literal["info", "warning", "error"] = "info"


class Retrying(msgspec.Struct, frozen=True, kw_only=True):
    attempt: int | None = None
    most: int | None = None
    after_ms: int | None = None
    reason: str | None = None


class Used(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of the run so far."""

    usage: Usage


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """The turn is over. `error` is what the agent says of its failure."""

    outcome: Outcome
    error: str | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    total_cost_usd: float | None = None
    duration_ms: int | None = None
    api_duration_ms: int | None = None
    stop_reason: str | None = None
    result: str | None = None
    models: tuple[ModelUsage, ...] = ()
    steps: int | None = None


Said = Began | Opened | Piece | Spoke | Called | Printed | Returned | Noticed | Retrying | Used | Ended
Dialect = Callable[[Obj], Sequence[Said] | None]

TOOL_KINDS: Final[dict[str, ToolKind]] = {
    "agent": "think",
    "apply_patch": "edit",
    "bash": "execute",
    "codebase_search": "search",
    "create_file": "edit",
    "delete": "delete",
    "edit": "edit",
    "edit_file": "edit",
    "editor": "edit",
    "enter_plan_mode": "switch_mode",
    "exit_plan_mode": "switch_mode",
    "fetch_web_content": "fetch",
    "finder": "search",
    "glob": "search",
    "google_web_search": "fetch",
    "grep": "search",
    "grep_search": "search",
    "list_directory": "search",
    "ls": "search",
    "notebook_edit": "edit",
    "read": "read",
    "read_file": "read",
    "read_files": "read",
    "read_many_files": "read",
    "read_web_page": "fetch",
    "replace": "edit",
    "run_commands": "execute",
    "run_shell_command": "execute",
    "search_codebase": "search",
    "shell": "execute",
    "spawn_agent": "think",
    "task": "think",
    "todo_write": "think",
    "updatetodos": "think",
    "web_fetch": "fetch",
    "web_search": "fetch",
    "write": "edit",
    "write_file": "edit",
}
"""Tools by their names in small letters."""


def kind_of(message: Obj) -> str:
    """A message's kind as drift is counted by: its type, and what it is of that type."""
    main = text(message, "type") or "untyped"
    inner = text(message, "subtype") or text(message, "hookEventName") or text(obj(message, "event"), "type")
    return f"{main}/{inner}" if inner else main

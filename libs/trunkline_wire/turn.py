"""Payloads about turns, messages and tools."""

from typing import Any, ClassVar, Literal

import msgspec

from trunkline_wire._base import Data
from trunkline_wire.blocks import Block, Json, Location, Text, ToolKind, Usage
from trunkline_wire.errors import ErrorInfo

Outcome = Literal[
    "success", "interrupted", "refused", "max_turns", "max_budget", "max_structured_output", "error", "aborted"
]
Trigger = Literal["prompt", "background", "other"]
Delivery = Literal["sent", "queued", "steered", "cancelled"]
DeltaKind = Literal["text", "thinking", "tool_input", "tool_output", "plan"]
ToolStatus = Literal["completed", "failed", "rejected", "cancelled"]


class TurnStarted(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "turn.started"
    number: int
    trigger: Trigger = "prompt"


class ModelUsage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    model: str
    usage: Usage


class TurnCompleted(Data, frozen=True, kw_only=True):
    """A turn's only end. `usage` and `cost_usd` are of this turn alone; `total_cost_usd` is the agent's running total."""

    TYPE: ClassVar[str] = "turn.completed"
    outcome: Outcome
    trigger: Trigger = "prompt"
    error: ErrorInfo | None = None
    structured_output: Json = None
    usage: Usage | None = None
    cost_usd: float | None = None
    total_cost_usd: float | None = None
    duration_ms: int | None = None
    api_duration_ms: int | None = None
    stop_reason: str | None = None
    result: Text | None = None
    lines_added: int | None = None
    lines_removed: int | None = None
    models: list[ModelUsage] = []
    steps: int | None = None


class MessageUser(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "message.user"
    content: list[Block]
    author: str | None = None
    delivery: Delivery = "sent"
    synthetic: bool = False
    """The agent wrote it in the user's name (a summary, a command's output)."""
    command: str | None = None


class MessageAssistant(Data, frozen=True, kw_only=True):
    """One finished block or message as the agent gave it; messages that share `item` are one message."""

    TYPE: ClassVar[str] = "message.assistant"
    content: list[Block]
    block: int | None = None
    """Index of the first block of `content` in the message, the `block` of its deltas."""
    model: str | None = None
    stop_reason: str | None = None
    usage: Usage | None = None
    aborted: bool = False
    error: ErrorInfo | None = None


class MessageSystem(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "message.system"
    text: Text
    level: Literal["info", "warning", "error"] = "info"
    kind: str | None = None


class MessageDelta(Data, frozen=True, kw_only=True):
    """A piece of a block that is being written. `at` is its offset in the block, in Unicode code points.

    `after` is the seq of the last fact before it. A piece with `at` 0 that is longer than what is known is the whole block so far.
    """

    TYPE: ClassVar[str] = "message.delta"
    block: int
    kind: DeltaKind = "text"
    at: int
    text: str
    after: int = 0


class ToolStarted(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "tool.started"
    name: str
    kind: ToolKind = "other"
    title: str | None = None
    input: Json = None
    locations: list[Location] = []
    native_id: str | None = None


class ToolProgress(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "tool.progress"
    elapsed_s: float | None = None
    output: str | None = None
    after: int = 0


class ToolCompleted(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "tool.completed"
    status: ToolStatus
    content: list[Block] = []
    exit_code: int | None = None
    duration_ms: int | None = None
    structured: Json = None
    """The tool's own structured result, as the agent gave it."""
    reason: str | None = None


class ToolSummary(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "tool.summary"
    summary: Text
    tools: list[str] = []


class TerminalOpened(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "terminal.opened"
    columns: int
    rows: int
    title: str | None = None


class TerminalClosed(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "terminal.closed"
    exit_code: int | None = None


class TerminalScreen(Data, frozen=True, kw_only=True):
    """The screen's text. A delta while a turn runs, a fact at its end. `cursor` is column and row, from 0.

    `attributes` are `[row, column, length, style]` for what does not look plain. `recording`, in facts, is what the terminal has
    printed since the fact of a screen before: an asciicast v2.
    """

    TYPE: ClassVar[str] = "terminal.screen"
    text: Text
    columns: int
    rows: int
    cursor: tuple[int, int] | None = None
    attributes: Any = None
    recording: Text | None = None
    after: int = 0

"""Payloads about plans, tasks, usage, files, commands, hooks, errors, and what has no translation."""

from typing import Any, ClassVar, Literal

import msgspec

from trunkline_wire._base import Data
from trunkline_wire.blocks import Json, Text, Usage
from trunkline_wire.errors import ErrorInfo


class PlanEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    content: str
    status: Literal["pending", "in_progress", "completed"] = "pending"
    priority: Literal["high", "medium", "low"] | None = None


class PlanUpdated(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "plan.updated"
    entries: list[PlanEntry]


class TaskUpdated(Data, frozen=True, kw_only=True):
    """A background or subagent task. `task` is the agent's own id of it; absent fields have not changed."""

    TYPE: ClassVar[str] = "task.updated"
    task: str
    kind: str | None = None
    status: Literal["pending", "running", "completed", "failed", "stopped"] | None = None
    description: str | None = None
    summary: Text | None = None
    background: bool | None = None
    usage: Json = None
    name: str | None = None
    """What the agent calls who does it, where it has a name of its own."""
    tool: str | None = None
    """Item id of the tool call that started it."""
    output_file: str | None = None


class UsageUpdated(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "usage.updated"
    usage: Usage | None = None
    total_cost_usd: float | None = None
    rate_limits: Json = None


class AuthUpdated(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "auth.updated"
    authenticating: bool = False
    methods: list[str] = []
    output: list[str] = []
    error: str | None = None


class HookFired(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "hook.fired"
    hook_event: str
    name: str | None = None
    status: Literal["started", "completed", "failed"] = "completed"
    output: Text | None = None
    exit_code: int | None = None
    hook: str | None = None
    input: Json = None
    """What the agent told the hook, verbatim."""


class FileChanged(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "file.changed"
    path: str
    kind: Literal["created", "modified", "deleted", "renamed"] = "modified"
    diff: Text | None = None


class FileRewound(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "file.rewound"
    to: str
    paths: list[str] = []
    lines_added: int | None = None
    lines_removed: int | None = None


class DiffUpdated(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "diff.updated"
    diff: Text


class CommandAccepted(Data, frozen=True, kw_only=True):
    """Written before the effect. `cmd_seq` is the command's sequence in COMMANDS, of commands to this session the highest so far."""

    TYPE: ClassVar[str] = "command.accepted"
    command: str
    verb: str
    cmd_seq: int


class CommandFinished(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "command.finished"
    command: str
    how: Literal["native", "emulated", "pty"] = "native"
    result: Json = None


class CommandFailed(Data, frozen=True, kw_only=True):
    """The command was accepted and had no, or an unknown, effect (`outcome_unknown`)."""

    TYPE: ClassVar[str] = "command.failed"
    command: str
    error: ErrorInfo


class CommandRejected(Data, frozen=True, kw_only=True):
    """The command was refused before any effect."""

    TYPE: ClassVar[str] = "command.rejected"
    command: str
    cmd_seq: int
    verb: str | None = None
    error: ErrorInfo


class ErrorRaised(Data, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "error"
    code: str
    message: str
    recoverable: bool = True
    retry_after_ms: int | None = None
    details: dict[str, Any] = {}


class NativeMessage(Data, frozen=True, kw_only=True):
    """A message without a translation; the message itself is in the envelope's `native`.

    `known` False is protocol drift, and counted; True is on the adapter's reviewed list.
    """

    TYPE: ClassVar[str] = "native.message"
    known: bool
    kind: str
    reason: str | None = None

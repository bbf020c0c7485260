"""The demo agent's messages, as far as the translator reads their fields."""

from typing import Any, Literal

import msgspec


class Ready(msgspec.Struct, kw_only=True):
    session: str
    version: str
    model: str
    mode: str
    models: list[str] = []
    modes: list[str] = []


class TurnStarted(msgspec.Struct, kw_only=True):
    prompt: str | None = None
    trigger: Literal["prompt", "background"] = "prompt"


class TextPiece(msgspec.Struct, kw_only=True):
    message: str
    text: str


class Message(msgspec.Struct, kw_only=True):
    message: str
    text: str
    aborted: bool = False


class ToolStarted(msgspec.Struct, kw_only=True):
    tool: str
    name: str
    input: Any = None


class ToolOutput(msgspec.Struct, kw_only=True):
    tool: str
    text: str


class ToolDone(msgspec.Struct, kw_only=True):
    tool: str
    status: Literal["completed", "failed", "rejected", "cancelled"]
    output: str = ""


class Ask(msgspec.Struct, kw_only=True):
    ask: str
    tool: str
    name: str
    input: Any = None


class Question(msgspec.Struct, kw_only=True):
    ask: str
    text: str
    options: list[str] = []


class AskCancelled(msgspec.Struct, kw_only=True):
    ask: str


class Changed(msgspec.Struct, kw_only=True):
    model: str
    mode: str


class Tokens(msgspec.Struct, kw_only=True):
    input: int = 0
    output: int = 0
    cost_usd: float | None = None


class TurnDone(msgspec.Struct, kw_only=True):
    outcome: Literal["success", "interrupted", "error"]
    trigger: Literal["prompt", "background"] = "prompt"
    error: str | None = None
    usage: Tokens = msgspec.field(default_factory=Tokens)

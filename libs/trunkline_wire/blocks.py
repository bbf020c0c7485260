"""Content blocks, usage, and the small structures that several events share."""

from typing import Any, Literal

import msgspec


class BlobRef(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Stands where a large value was: the value is in the blob store under its sha256 (hex)."""

    sha256: str
    size: int
    media_type: str = "text/plain"
    preview: str = ""


Text = str | BlobRef
"""A text that may have been moved to the blob store."""

Json = Any
"""Any JSON value, kept as the agent gave it."""


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tokens and cost in USD; `source` says who counted (`agent`, `computed`)."""

    input: int = 0
    output: int = 0
    cache_write: int = 0
    cache_read: int = 0
    reasoning: int | None = None
    cost_usd: float | None = None
    context_used: int | None = None
    context_size: int | None = None
    source: str = "agent"


class _Block(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    pass


class TextBlock(_Block, frozen=True, kw_only=True, tag="text"):
    text: Text


class ThinkingBlock(_Block, frozen=True, kw_only=True, tag="thinking"):
    text: Text
    duration_ms: int | None = None
    signature: str | None = None


class ToolUseBlock(_Block, frozen=True, kw_only=True, tag="tool_use"):
    id: str
    name: str
    input: Json = None


class ToolResultBlock(_Block, frozen=True, kw_only=True, tag="tool_result"):
    tool: str
    content: Json = None
    is_error: bool = False


class ImageBlock(_Block, frozen=True, kw_only=True, tag="image"):
    """An image: base64 `data` (or its blob), or a `url`."""

    media_type: str
    data: Text | None = None
    url: str | None = None


class FileBlock(_Block, frozen=True, kw_only=True, tag="file"):
    path: str | None = None
    name: str | None = None
    media_type: str | None = None
    data: Text | None = None


class DiffBlock(_Block, frozen=True, kw_only=True, tag="diff"):
    path: str
    old: Text | None = None
    new: Text | None = None
    unified: Text | None = None


class CodeBlock(_Block, frozen=True, kw_only=True, tag="code"):
    text: Text
    language: str | None = None


class TerminalBlock(_Block, frozen=True, kw_only=True, tag="terminal"):
    output: Text
    exit_code: int | None = None


class ResourceBlock(_Block, frozen=True, kw_only=True, tag="resource"):
    uri: str
    name: str | None = None
    media_type: str | None = None
    text: Text | None = None


Block = (
    TextBlock
    | ThinkingBlock
    | ToolUseBlock
    | ToolResultBlock
    | ImageBlock
    | FileBlock
    | DiffBlock
    | CodeBlock
    | TerminalBlock
    | ResourceBlock
)

ToolKind = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"]


class Location(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    path: str
    line: int | None = None


class Choice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something to choose from: a model, a mode, a command."""

    id: str
    name: str | None = None
    description: str | None = None
    hint: str | None = None
    current: bool | None = None


def text_of(value: Text | None) -> str:
    """The text itself, or the preview of what was moved to the blob store."""
    if value is None:
        return ""
    return value.preview if isinstance(value, BlobRef) else value


def join_text(content: list[Block]) -> str:
    """The text blocks of a message, joined."""
    return "".join(text_of(block.text) for block in content if isinstance(block, TextBlock))

"""What every adapter does to content: a prompt's blocks as text where an agent has no type for them, and JSON as a block."""

from typing import Any

from trunkline_wire import TrunklineError, encode
from trunkline_wire.blocks import (
    BlobRef,
    Block,
    CodeBlock,
    DiffBlock,
    FileBlock,
    ImageBlock,
    ResourceBlock,
    TerminalBlock,
    Text,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)


def plain(value: Text | None) -> str:
    """Text or base64 that stands in the block itself. Raises TrunklineError `blob_missing` for a reference."""
    if isinstance(value, BlobRef):
        raise TrunklineError("blob_missing", f"the content {value.sha256!r} was not fetched from the blob store")
    return value or ""


def as_text(block: Block) -> str:
    """A prompt's block as text for a model. Raises TrunklineError `bad_params` for what no text stands for."""
    match block:
        case TextBlock():
            return plain(block.text)
        case CodeBlock():
            return f"```{block.language or ''}\n{plain(block.text)}\n```"
        case DiffBlock():
            return f"```diff\n{plain(block.unified or block.new)}\n```"
        case TerminalBlock():
            return f"```\n{plain(block.output)}\n```"
        case ResourceBlock():
            said = plain(block.text) if block.text is not None else ""
            return f"{block.uri}\n{said}".rstrip()
        case FileBlock(data=None, path=str(path)):
            return f"@{path}"
        case FileBlock():
            return f"<file name={(block.name or block.path or 'file')!r}>\n{plain(block.data)}\n</file>"
        case ImageBlock():
            raise TrunklineError("bad_params", "an image has no text: send it as an image or a file")
        case ThinkingBlock() | ToolUseBlock() | ToolResultBlock():
            raise TrunklineError(
                "bad_params", "a prompt can't hold thinking or tool blocks: send text, images or files"
            )


def json_block(native: Any) -> Block:
    """Content of the agent that has no counterpart, kept as its JSON."""
    return CodeBlock(text=encode(native).decode(), language="json")

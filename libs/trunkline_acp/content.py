"""Content blocks: ours as an editor takes them, and a prompt's as ours. Pure."""

import posixpath
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

from trunkline_acp.blocks import known_block
from trunkline_agentkit.fields import Obj, as_obj, objects
from trunkline_wire import TrunklineError, encode
from trunkline_wire.blocks import (
    BlobRef,
    Block,
    CodeBlock,
    DiffBlock,
    FileBlock,
    ImageBlock,
    Json,
    ResourceBlock,
    TerminalBlock,
    Text,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)

_PATHS: Final = ("file_path", "path", "abs_path", "absolute_path", "notebook_path")
_EDITS: Final = (("old_string", "new_string"), ("old_str", "new_str"), ("old_text", "new_text"), (None, "content"))
"""What tools that edit call the text before and after; a tool that writes a file has the latter alone."""


def words(value: Text | None) -> str:
    """A text; of one in the blob store its beginning, which says so."""
    if isinstance(value, BlobRef):
        return f"{value.preview}\n… ({value.size:,} bytes in all: the rest is in the session's log)"
    return value or ""


def fenced(said: str, language: str = "") -> str:
    """A text that is shown as it is: the fence is longer than any in it."""
    fence = "```"
    while fence in said:
        fence += "`"
    return f"{fence}{language}\n{said.rstrip()}\n{fence}"


def text_content(said: str) -> Obj:
    return {"type": "text", "text": said}


def content_of(block: Block) -> Obj:
    """A block as a ContentBlock of the protocol."""
    match block:
        case TextBlock() | ThinkingBlock():
            return text_content(words(block.text))
        case ImageBlock(data=str(data)):
            return {"type": "image", "mimeType": block.media_type, "data": data}
        case ImageBlock(url=str(url)):
            return _link(url, url, block.media_type)
        case ImageBlock():
            return text_content(f"[an image of type {block.media_type}: it is in the session's log]")
        case ResourceBlock(text=None):
            return _link(block.uri, block.name or block.uri, block.media_type)
        case ResourceBlock():
            return _embedded(block.uri, {"text": words(block.text)}, block.media_type)
        case FileBlock(path=str(path), data=None):
            return _link(_uri(path), block.name or posixpath.basename(path), block.media_type)
        case FileBlock(data=str(data)) if (block.media_type or "text/plain").startswith("text/"):
            return _embedded(_uri(block.path or block.name or "file"), {"text": data}, block.media_type)
        case FileBlock(data=str(data)):
            return _embedded(_uri(block.path or block.name or "file"), {"blob": data}, block.media_type)
        case FileBlock():
            return text_content(f"[the file {block.name or block.path or ''!r}: it is in the session's log]")
        case CodeBlock():
            return text_content(fenced(words(block.text), block.language or ""))
        case DiffBlock():
            return text_content(fenced(words(block.unified or block.new or block.old), "diff"))
        case TerminalBlock():
            return text_content(fenced(words(block.output), "console"))
        case ToolUseBlock() | ToolResultBlock():
            return text_content(fenced(encode(block).decode(), "json"))


def tool_content(blocks: Sequence[Block], cwd: str | None, *, printed: bool = False) -> list[Obj]:
    """The blocks of a tool's result; `printed` says that its texts are what a program has printed."""
    return [_tool_content(block, cwd, printed=printed) for block in blocks]


def _tool_content(block: Block, cwd: str | None, *, printed: bool) -> Obj:
    match block:
        case DiffBlock(unified=None):
            return diff(block.path, None if block.old is None else words(block.old), words(block.new), cwd)
        case TextBlock() if printed:
            return wrapped(text_content(fenced(words(block.text), "console")))
        case _:
            return wrapped(content_of(block))


def wrapped(content: Obj) -> Obj:
    """A ContentBlock as content of a tool call."""
    return {"type": "content", "content": content}


def diff(path: str, old: str | None, new: str, cwd: str | None) -> Obj:
    """A change of a file; the protocol wants its whole path."""
    return {"type": "diff", "path": posixpath.join(cwd or "/", path), "oldText": old, "newText": new}


def edit_of(given: Json, cwd: str | None) -> Obj | None:
    """The change that a tool's input describes, where it names a file and its text in words that are in use for it."""
    values = as_obj(given)
    path = next((values[name] for name in _PATHS if isinstance(values.get(name), str)), None)
    if path is None:
        return None
    for before, after in _EDITS:
        new, old = values.get(after), None if before is None else values.get(before)
        if isinstance(new, str) and (before is None or isinstance(old, str)):
            return diff(path, old if isinstance(old, str) else None, new, cwd)
    return None


def prompt_blocks(params: Obj) -> list[Block]:
    """A prompt's content. Raises TrunklineError `bad_params` for what can't be told to any agent."""
    return [block_of(one) for one in objects(params, "prompt")]


def block_of(native: Obj) -> Block:
    if (block := known_block(native)) is None:
        kind = native.get("type")
        raise TrunklineError("bad_params", f"content of type {kind!r} can't be sent: send text, images or files")
    return block


def _link(uri: str, name: str, media_type: str | None) -> Obj:
    link: Obj = {"type": "resource_link", "uri": uri, "name": name}
    return link | ({"mimeType": media_type} if media_type else {})


def _embedded(uri: str, body: dict[str, Any], media_type: str | None) -> Obj:
    return {"type": "resource", "resource": {"uri": uri, **body} | ({"mimeType": media_type} if media_type else {})}


def _uri(path: str) -> str:
    return path if "://" in path else f"file://{quote(path if path.startswith('/') else '/' + path)}"

"""Content blocks: the agent's into the log's, and a prompt's into the agent's."""

from typing import Any

from trunkline_adapters.claude.native import Obj, as_obj, items, obj, text
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


def blocks_of(content: Any) -> list[Block]:
    """The blocks of a message's `content`, which is a string or a list."""
    if isinstance(content, str):
        return [TextBlock(text=content)] if content else []
    return [block_of(as_obj(value)) for value in items({"content": content}, "content")]


def block_of(native: Obj) -> Block:
    """One content block. What has no counterpart is kept as its JSON."""
    match native.get("type"):
        case "text":
            return TextBlock(text=text(native, "text") or "")
        case "thinking":
            return ThinkingBlock(text=text(native, "thinking") or "", signature=text(native, "signature"))
        case "redacted_thinking":
            return ThinkingBlock(text="", signature=text(native, "data"))
        case "image":
            return _image(obj(native, "source")) or _json(native)
        case "document":
            source = obj(native, "source")
            return FileBlock(
                name=text(native, "title"), media_type=text(source, "media_type"), data=text(source, "data")
            )
        case "resource_link":
            return ResourceBlock(uri=text(native, "uri") or "", name=text(native, "name"))
        case _:
            return _json(native)


def _image(source: Obj) -> Block | None:
    media_type = text(source, "media_type") or "image/png"
    if url := text(source, "url"):
        return ImageBlock(media_type=media_type, url=url)
    data = text(source, "data")
    return ImageBlock(media_type=media_type, data=data) if data else None


def _json(native: Obj) -> Block:
    return CodeBlock(text=encode(native).decode(), language="json")


def native_content(content: list[Block]) -> str | list[Obj]:
    """A prompt's content as the CLI takes it. Raises TrunklineError `bad_params` for what can't be sent."""
    if len(content) == 1 and isinstance(content[0], TextBlock):
        return _plain(content[0].text)
    return [_native(block) for block in content]


def _native(block: Block) -> Obj:
    match block:
        case TextBlock():
            return {"type": "text", "text": _plain(block.text)}
        case ImageBlock(url=str(url)) if block.data is None:
            return {"type": "image", "source": {"type": "url", "url": url}}
        case ImageBlock():
            source = {"type": "base64", "media_type": block.media_type, "data": _plain(block.data)}
            return {"type": "image", "source": source}
        case FileBlock(data=None, path=str(path)):
            return {"type": "text", "text": f"@{path}"}
        case FileBlock():
            return _document(block)
        case CodeBlock():
            return {"type": "text", "text": f"```{block.language or ''}\n{_plain(block.text)}\n```"}
        case DiffBlock():
            return {"type": "text", "text": f"```diff\n{_plain(block.unified or block.new)}\n```"}
        case TerminalBlock():
            return {"type": "text", "text": f"```\n{_plain(block.output)}\n```"}
        case ResourceBlock():
            said = _plain(block.text) if block.text is not None else ""
            return {"type": "text", "text": f"{block.uri}\n{said}".rstrip()}
        case ThinkingBlock() | ToolUseBlock() | ToolResultBlock():
            raise TrunklineError(
                "bad_params", "a prompt can't hold thinking or tool blocks: send text, images or files"
            )


def _document(block: FileBlock) -> Obj:
    media_type = block.media_type or "text/plain"
    data = _plain(block.data)
    if media_type.startswith("text/"):
        return {"type": "text", "text": f"<file name={(block.name or block.path or 'file')!r}>\n{data}\n</file>"}
    source = {"type": "base64", "media_type": media_type, "data": data}
    document = {"type": "document", "source": source}
    return document | ({"title": block.name} if block.name else {})


def _plain(value: Text | None) -> str:
    if isinstance(value, BlobRef):
        raise TrunklineError("blob_missing", f"the content {value.sha256!r} was not fetched from the blob store")
    return value or ""


def result_text(content: Any) -> str:
    """The text of a tool result's `content`."""
    if isinstance(content, str):
        return content
    return "\n".join(text(as_obj(part), "text") or "" for part in items({"content": content}, "content"))

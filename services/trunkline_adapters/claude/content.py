"""Content blocks: the agent's into the log's, and a prompt's into the agent's."""

from typing import Any

from trunkline_agentkit.fields import Obj, as_obj, items, obj, text
from trunkline_agentkit.prompts import as_text, json_block, plain
from trunkline_wire.blocks import (
    Block,
    FileBlock,
    ImageBlock,
    ResourceBlock,
    TextBlock,
    ThinkingBlock,
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
            return _image(obj(native, "source")) or json_block(native)
        case "document":
            source = obj(native, "source")
            return FileBlock(
                name=text(native, "title"), media_type=text(source, "media_type"), data=text(source, "data")
            )
        case "resource_link":
            return ResourceBlock(uri=text(native, "uri") or "", name=text(native, "name"))
        case _:
            return json_block(native)


def _image(source: Obj) -> Block | None:
    media_type = text(source, "media_type") or "image/png"
    if url := text(source, "url"):
        return ImageBlock(media_type=media_type, url=url)
    data = text(source, "data")
    return ImageBlock(media_type=media_type, data=data) if data else None


def native_content(content: list[Block]) -> str | list[Obj]:
    """A prompt's content as the CLI takes it. Raises TrunklineError `bad_params` for what can't be sent."""
    if len(content) == 1 and isinstance(content[0], TextBlock):
        return plain(content[0].text)
    return [_native(block) for block in content]


def _native(block: Block) -> Obj:
    match block:
        case ImageBlock(url=str(url)) if block.data is None:
            return {"type": "image", "source": {"type": "url", "url": url}}
        case ImageBlock():
            source = {"type": "base64", "media_type": block.media_type, "data": plain(block.data)}
            return {"type": "image", "source": source}
        case FileBlock() if block.data is not None and not (block.media_type or "text/plain").startswith("text/"):
            return _document(block)
        case _:
            return {"type": "text", "text": as_text(block)}


def _document(block: FileBlock) -> Obj:
    source = {"type": "base64", "media_type": block.media_type, "data": plain(block.data)}
    document = {"type": "document", "source": source}
    return document | ({"title": block.name} if block.name else {})


def result_text(content: Any) -> str:
    """The text of a tool result's `content`."""
    if isinstance(content, str):
        return content
    return "\n".join(text(as_obj(part), "text") or "" for part in items({"content": content}, "content"))

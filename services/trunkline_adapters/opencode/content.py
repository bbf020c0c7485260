"""Content blocks: the parts of OpenCode's messages into the log's, and a prompt's blocks into parts."""

import mimetypes
from pathlib import PurePosixPath
from typing import Final

from trunkline_agentkit.fields import Obj, obj, text
from trunkline_agentkit.prompts import as_text, json_block, plain
from trunkline_wire.blocks import Block, FileBlock, ImageBlock, TextBlock

COMMAND: Final = "trunkline"
"""Name in the metadata of a text part of ours: the id of the command that brought it, which the server keeps with the part."""


def blocks_of(parts: list[Obj]) -> list[Block]:
    """The parts of a user message as content."""
    return [block for part in parts if (block := block_of(part)) is not None]


def block_of(part: Obj) -> Block | None:
    """One part; None for what is no content. What has no counterpart is kept as its JSON."""
    match text(part, "type"):
        case "text":
            said = text(part, "text")
            return TextBlock(text=said) if said else None
        case "file":
            return file_block(part)
        case "agent":
            return TextBlock(text=f"@{text(part, 'name') or 'agent'}")
        case "subtask":
            return TextBlock(text=text(part, "prompt") or text(part, "description") or "")
        case "compaction" | "patch" | "retry" | "snapshot" | "step-finish" | "step-start":
            return None
        case _:
            return json_block(part)


def file_block(part: Obj) -> Block:
    """A file part, whose content stands in its URL or on the host."""
    kind, url, name = text(part, "mime") or "", text(part, "url") or "", text(part, "filename")
    data = _data(url)
    if kind.startswith("image/"):
        return ImageBlock(media_type=kind, data=data) if data is not None else ImageBlock(media_type=kind, url=url)
    path = text(obj(part, "source"), "path") or (url.removeprefix("file://") if url.startswith("file://") else None)
    return FileBlock(path=path, name=name, media_type=kind or None, data=data)


def _data(url: str) -> str | None:
    """The base64 of a data URL."""
    head, comma, data = url.partition(",")
    return data if url.startswith("data:") and comma and head.endswith(";base64") else None


def native_parts(content: list[Block], command: str | None = None) -> list[Obj]:
    """A prompt's content as parts; `command` is noted in its texts. Raises TrunklineError `bad_params` for what can't be sent."""
    parts = [_native(block) for block in content]
    if command is not None:
        for part in parts:
            if part["type"] == "text":
                part["metadata"] = {COMMAND: command}
    return parts


def native_text(said: str | None) -> list[Block]:
    return [TextBlock(text=said)] if said else []


def command_of(parts: list[Obj]) -> str | None:
    """The command that is noted in a message's parts."""
    return next((command for part in parts if (command := text(obj(part, "metadata"), COMMAND))), None)


def _native(block: Block) -> Obj:
    match block:
        case ImageBlock(url=str(url)) if block.data is None:
            return _file(block.media_type, url, None)
        case ImageBlock():
            return _file(block.media_type, f"data:{block.media_type};base64,{plain(block.data)}", None)
        case FileBlock(data=None, path=str(path)):
            kind = block.media_type or mimetypes.guess_type(path)[0] or "text/plain"
            absolute = PurePosixPath(path).is_absolute()
            return _file(kind, f"file://{path}", block.name or path) if absolute else _text(as_text(block))
        case FileBlock() if block.media_type is not None and not block.media_type.startswith("text/"):
            return _file(block.media_type, f"data:{block.media_type};base64,{plain(block.data)}", block.name)
        case _:
            return _text(as_text(block))


def _file(kind: str, url: str, name: str | None) -> Obj:
    return {"type": "file", "mime": kind, "url": url} | ({} if name is None else {"filename": name})


def _text(said: str) -> Obj:
    return {"type": "text", "text": said}

"""Content blocks: Codex's into the log's, and a prompt's into Codex's input."""

from typing import Any

from trunkline_agentkit.fields import Obj, as_obj, items, text
from trunkline_agentkit.prompts import as_text, json_block, plain
from trunkline_wire import TrunklineError
from trunkline_wire.blocks import (
    Block,
    FileBlock,
    ImageBlock,
    ResourceBlock,
    TextBlock,
)


def blocks_of(content: list[Any]) -> list[Block]:
    """The blocks of a user message, a tool's result or an output; what has no counterpart is kept as its JSON."""
    return [block_of(as_obj(part)) for part in content]


def block_of(native: Obj) -> Block:
    """One part: Codex's user input, its output for the model, or content of MCP."""
    match native.get("type"):
        case "text" | "inputText" | "outputText":
            return TextBlock(text=text(native, "text") or "")
        case "image" | "inputImage":
            return _image(native) or json_block(native)
        case "localImage":
            return FileBlock(path=text(native, "path"), media_type="image/*")
        case "localAudio":
            return FileBlock(path=text(native, "path"), media_type="audio/*")
        case "mention" | "skill":
            return ResourceBlock(uri=text(native, "path") or "", name=text(native, "name"))
        case "resource_link":
            return ResourceBlock(uri=text(native, "uri") or "", name=text(native, "name"))
        case _:
            return json_block(native)


def _image(native: Obj) -> Block | None:
    url = text(native, "url") or text(native, "imageUrl")
    if url is not None and url.startswith("data:"):
        head, _, data = url.removeprefix("data:").partition(",")
        media_type, _, coding = head.partition(";")
        if coding == "base64" and data:
            return ImageBlock(media_type=media_type or "image/png", data=data)
    if url is not None:
        return ImageBlock(media_type="image/*", url=url)
    data = text(native, "data")
    return ImageBlock(media_type=text(native, "mimeType") or "image/png", data=data) if data else None


def result_blocks(result: Obj) -> list[Block]:
    """The content of an MCP tool's result."""
    return blocks_of(items(result, "content"))


def native_content(content: list[Block]) -> list[Obj]:
    """A prompt's content as input of a turn. Raises TrunklineError `bad_params` for what can't be sent."""
    return [_native(block) for block in content]


def plain_text(content: list[Block]) -> str:
    """A prompt as text alone, for `codex exec`. Raises TrunklineError `unsupported` for images."""
    parts = native_content(content)
    if any(part["type"] != "text" for part in parts):
        raise TrunklineError(
            "unsupported", "this Codex has no app-server, and `codex exec` takes text alone", capability="image_input"
        )
    return "\n".join(part["text"] for part in parts)


def _native(block: Block) -> Obj:
    match block:
        case ImageBlock(url=str(url)) if block.data is None:
            return {"type": "image", "url": url}
        case ImageBlock():
            return {"type": "image", "url": f"data:{block.media_type};base64,{plain(block.data)}"}
        case FileBlock(data=None, path=str(path)) if (block.media_type or "").startswith("image/"):
            return {"type": "localImage", "path": path}
        case FileBlock(data=None, path=str(path)):
            return {"type": "mention", "name": block.name or path.rpartition("/")[2], "path": path}
        case FileBlock():
            return _file(block)
        case _:
            return _text(as_text(block))


def _file(block: FileBlock) -> Obj:
    media_type = block.media_type or "text/plain"
    if media_type.startswith("image/"):
        return {"type": "image", "url": f"data:{media_type};base64,{plain(block.data)}"}
    if media_type.startswith("text/"):
        return _text(as_text(block))
    raise TrunklineError(
        "bad_params", f"Codex takes no {media_type!r}: send text or an image, or the path of a file on its host"
    )


def _text(said: str) -> Obj:
    return {"type": "text", "text": said, "text_elements": []}

"""Content blocks: the agent's into the log's, and a prompt's into the agent's."""

from pathlib import PurePosixPath
from urllib.parse import quote

from trunkline_acp.blocks import known_block
from trunkline_adapters.acp.state import Terminal
from trunkline_agentkit.fields import Obj, as_obj, obj, objects, text
from trunkline_agentkit.prompts import as_text, json_block, plain
from trunkline_wire import TrunklineError
from trunkline_wire.blocks import (
    Block,
    DiffBlock,
    FileBlock,
    ImageBlock,
    ResourceBlock,
    TerminalBlock,
)


def block_of(native: Obj) -> Block:
    """A ContentBlock of the protocol. What has no counterpart is kept as its JSON."""
    return known_block(native) or json_block(native)


def tool_blocks(content: list[Obj], terminals: dict[str, Terminal]) -> list[Block]:
    """The blocks of a tool call's `content`: contents, diffs and terminals."""
    blocks: list[Block] = []
    for native in content:
        match native.get("type"):
            case "content":
                blocks.append(block_of(obj(native, "content")))
            case "diff":
                new, old = native.get("newText"), native.get("oldText")
                blocks.append(
                    DiffBlock(
                        path=text(native, "path") or "",
                        old=old if isinstance(old, str) else None,
                        new=new if isinstance(new, str) else None,
                    )
                )
            case "terminal":
                shown = terminals.get(text(native, "terminalId") or "", Terminal())
                blocks.append(TerminalBlock(output=shown.output, exit_code=shown.exit_code))
            case _:
                blocks.append(json_block(native))
    return blocks


def text_of_tool(content: list[Obj]) -> str:
    """The texts among a tool call's `content`."""
    return "\n".join(_string(obj(one, "content"), "text") for one in content if one.get("type") == "content")


def native_content(content: list[Block], supported: Obj) -> list[Obj]:
    """A prompt's content as the agent takes it; `supported` are its `promptCapabilities`.

    What it does not take is sent as text or a link where that can be. Raises TrunklineError `unsupported`, `bad_params`.
    """
    return [_native(block, supported) for block in content]


def _native(block: Block, supported: Obj) -> Obj:
    match block:
        case ImageBlock():
            return _image(block, supported)
        case FileBlock(data=None, path=str(path)):
            return {"type": "resource_link", "uri": _uri(path), "name": block.name or PurePosixPath(path).name}
        case FileBlock():
            return _file(block, supported)
        case ResourceBlock(text=None):
            link: Obj = {"type": "resource_link", "uri": block.uri, "name": block.name or block.uri}
            return link | ({"mimeType": block.media_type} if block.media_type else {})
        case ResourceBlock():
            return _embedded(block.uri, {"text": plain(block.text)}, block.media_type, supported)
        case _:
            return _text(as_text(block))


def _image(block: ImageBlock, supported: Obj) -> Obj:
    if not supported.get("image"):
        raise TrunklineError("unsupported", "the agent takes no images", capability="image_input")
    if block.data is None:
        raise TrunklineError("bad_params", "the agent takes an image's data, not its address")
    return {"type": "image", "mimeType": block.media_type, "data": plain(block.data)}


def _file(block: FileBlock, supported: Obj) -> Obj:
    media_type = block.media_type or "text/plain"
    name = block.path or block.name or "file"
    data = plain(block.data)
    if media_type.startswith("audio/") and supported.get("audio"):
        return {"type": "audio", "mimeType": media_type, "data": data}
    if media_type.startswith("text/"):
        return _embedded(_uri(name), {"text": data}, media_type, supported)
    if not supported.get("embeddedContext"):
        raise TrunklineError(
            "unsupported", f"the agent takes no file of type {media_type!r}: name its path instead", capability="files"
        )
    return _embedded(_uri(name), {"blob": data}, media_type, supported)


def _embedded(uri: str, body: Obj, media_type: str | None, supported: Obj) -> Obj:
    if not supported.get("embeddedContext"):
        return _text(f"{uri}\n{body.get('text', '')}")
    resource: Obj = {"uri": uri, **body}
    return {"type": "resource", "resource": resource | ({"mimeType": media_type} if media_type else {})}


def _text(value: str) -> Obj:
    return {"type": "text", "text": value}


def _uri(path: str) -> str:
    return path if "://" in path else f"file://{quote(path if path.startswith('/') else '/' + path)}"


def _string(native: Obj, key: str) -> str:
    value = native.get(key)
    return value if isinstance(value, str) else ""


def prompt_text(prompt: list[Obj]) -> str:
    """The text of a `session/prompt`."""
    return "".join(_string(one, "text") for one in prompt if one.get("type") == "text")


def prompt_blocks(params: Obj) -> list[Block]:
    return [block_of(as_obj(one)) for one in objects(params, "prompt")]

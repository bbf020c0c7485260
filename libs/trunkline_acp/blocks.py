"""A ContentBlock of the protocol as a block of the log, whichever side it comes from. Pure."""

from urllib.parse import unquote, urlsplit

from trunkline_agentkit.fields import Obj, obj, text
from trunkline_wire.blocks import Block, FileBlock, ImageBlock, ResourceBlock, TextBlock


def known_block(native: Obj) -> Block | None:
    """None for content that has no counterpart."""
    media_type = text(native, "mimeType")
    match native.get("type"):
        case "text":
            return TextBlock(text=text(native, "text") or "")
        case "image" if (data := text(native, "data")) is not None:
            return ImageBlock(media_type=media_type or "image/png", data=data)
        case "image" if (uri := text(native, "uri")) is not None:
            return ImageBlock(media_type=media_type or "image/png", url=uri)
        case "audio":
            return FileBlock(media_type=media_type or "audio/wav", data=text(native, "data"))
        case "resource_link":
            return ResourceBlock(uri=text(native, "uri") or "", name=text(native, "name"), media_type=media_type)
        case "resource":
            return _resource(obj(native, "resource"))
        case _:
            return None


def _resource(native: Obj) -> Block:
    uri, media_type = text(native, "uri") or "", text(native, "mimeType")
    if (data := text(native, "blob")) is not None:
        return FileBlock(path=_path(uri), name=uri, media_type=media_type, data=data)
    return ResourceBlock(uri=uri, media_type=media_type, text=text(native, "text") or "")


def _path(uri: str) -> str | None:
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == "file" else None

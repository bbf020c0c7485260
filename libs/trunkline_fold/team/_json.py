"""Tolerant access to the JSON that agents pass to their team tools: what is missing or of another type is absent."""

from typing import Any, cast

from trunkline_wire.blocks import Block, TextBlock, text_of
from trunkline_wire.codec import BROKEN, decode_json

Obj = dict[str, Any]


def as_obj(value: object) -> Obj:
    return cast("Obj", value) if isinstance(value, dict) else {}


def text(value: Obj, *keys: str) -> str | None:
    """The first of `keys` that has a text which is not empty."""
    return next((found for key in keys if isinstance(found := value.get(key), str) and found), None)


def ident(value: Obj, *keys: str) -> str | None:
    """The first of `keys` that has an id: a text, or a number as models write it now and then."""
    for key in keys:
        found = value.get(key)
        if isinstance(found, int) and not isinstance(found, bool):
            return str(found)
        if isinstance(found, str) and found:
            return found
    return None


def truth(value: Obj, key: str) -> bool | None:
    found = value.get(key)
    return found if isinstance(found, bool) else None


def idents(value: Obj, key: str) -> list[str]:
    found = value.get(key)
    entries = cast("list[Any]", found) if isinstance(found, list) else []
    return [id for entry in entries if (id := ident({"id": entry}, "id"))]


def said(content: list[Block]) -> str:
    """The text of a result."""
    return "".join(text_of(block.text) for block in content if isinstance(block, TextBlock))


def parsed(raw: str) -> Obj:
    """The object that a text is the JSON of, else an empty one."""
    if not raw.lstrip().startswith("{"):
        return {}
    try:
        return as_obj(decode_json(raw))
    except BROKEN:
        return {}

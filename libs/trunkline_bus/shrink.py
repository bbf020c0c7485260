"""Make a message fit: its largest fields become references to the blob store. Pure; `blobs` stores what was taken out."""

import hashlib
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from trunkline_wire import TrunklineError
from trunkline_wire.blocks import BlobRef
from trunkline_wire.codec import decode_json, encode

MAX_MESSAGE: Final = 512 * 1024
"""Bytes of a whole encoded message, headers included."""
HEADERS_ROOM: Final = 1024
"""Bytes left for the headers."""
LIMIT: Final = MAX_MESSAGE - HEADERS_ROOM
PREVIEW: Final = 512
"""Code points of a text that stay in its reference."""
_SMALLEST: Final = 1024
"""A value below this many bytes of JSON stays where it is: its reference would be no smaller."""
_TEXTS: Final = 16
"""Texts taken out one by one; what still is too large then consists of many small ones, and goes as a list or object."""

Fits = Callable[[bytes], object]
"""Raises TrunklineError or msgspec.MsgspecError where the schema wants a value itself and takes no reference."""


class Shrunk(msgspec.Struct, frozen=True):
    """The message that fits, and what was taken out of it: (bytes, media type)."""

    raw: bytes
    taken: list[tuple[bytes, str]] = []


class _Value(msgspec.Struct, frozen=True):
    holder: dict[str, Any] | list[Any]
    key: Any
    size: int
    """Bytes of its JSON."""


def reference(data: bytes, media_type: str) -> BlobRef:
    """The reference to `data`; with a preview if it is text."""
    text = data[: 4 * PREVIEW].decode("utf-8", "ignore")[:PREVIEW] if media_type.startswith("text/") else ""
    return BlobRef(sha256=hashlib.sha256(data).hexdigest(), size=len(data), media_type=media_type, preview=text)


def shrink(raw: bytes, fits: Fits, *, limit: int = LIMIT, first: tuple[str, ...] = ()) -> Shrunk:
    """Replace values in the JSON object `raw` until it has at most `limit` bytes: `first` the named top-level fields,
    whole; then the largest texts; then the largest lists and objects.

    A text is kept as its UTF-8 (`text/plain`), anything else as JSON (`application/json`).
    Raises TrunklineError `too_large` where nothing is left that may be replaced.
    """
    if len(raw) <= limit:
        return Shrunk(raw)
    tree: dict[str, Any] = decode_json(raw)
    taken: list[tuple[bytes, str]] = []
    size = len(raw)
    for name in first:
        if size > limit and name in tree:
            size -= _take(_Value(tree, name, len(encode(tree[name]))), taken, json=True)
    for _ in range(_TEXTS):
        if size <= limit or not (saved := _take_largest(tree, _texts, fits, taken)):
            break
        size -= saved
    while size > limit:
        saved = _take_largest(tree, _containers, fits, taken)
        if not saved:
            raise TrunklineError(
                "too_large", f"a message of {len(raw)} bytes can't be made smaller than {size}", size=size
            )
        size -= saved
    return Shrunk(encode(tree), taken)


def _take_largest(
    tree: dict[str, Any],
    kind: Callable[[Any], Iterator[tuple[dict[str, Any] | list[Any], Any]]],
    fits: Fits,
    taken: list[tuple[bytes, str]],
) -> int:
    """Take out the largest value of a kind for which the schema allows it; the bytes saved, 0 where there is none."""
    values = [_Value(holder, key, len(encode(holder[key]))) for holder, key in kind(tree)]
    for value in sorted(values, key=lambda value: value.size, reverse=True):
        if value.size < _SMALLEST:
            break
        if _allowed(tree, value, fits):
            return _take(value, taken)
    return 0


def _allowed(tree: dict[str, Any], value: _Value, fits: Fits) -> bool:
    kept = value.holder[value.key]
    value.holder[value.key] = msgspec.to_builtins(reference(b"", "text/plain"))
    try:
        fits(encode(_outline(tree)))
    except (TrunklineError, msgspec.MsgspecError):
        return False
    else:
        return True
    finally:
        value.holder[value.key] = kept


def _take(value: _Value, taken: list[tuple[bytes, str]], *, json: bool = False) -> int:
    content = value.holder[value.key]
    as_text = isinstance(content, str) and not json
    data, media_type = (content.encode(), "text/plain") if as_text else (encode(content), "application/json")
    stand_in = msgspec.to_builtins(reference(data, media_type))
    saved = value.size - len(encode(stand_in))
    if saved <= 0:
        return 0
    value.holder[value.key] = stand_in
    taken.append((data, media_type))
    return saved


def _outline(node: Any) -> Any:
    """The same shape with short texts: enough to ask the schema, and quick where a text has megabytes."""
    match node:
        case dict():
            return {key: _outline(value) for key, value in node.items()}
        case list():
            return [_outline(value) for value in node]
        case str() if len(node) >= _SMALLEST:
            return "-"
        case _:
            return node


def _texts(tree: Any) -> Iterator[tuple[dict[str, Any] | list[Any], Any]]:
    # A text this short has less than _SMALLEST bytes however it is escaped.
    return (
        (holder, key) for holder, key, value in _walk(tree) if isinstance(value, str) and len(value) > _SMALLEST // 6
    )


def _containers(tree: Any) -> Iterator[tuple[dict[str, Any] | list[Any], Any]]:
    return ((holder, key) for holder, key, value in _walk(tree) if isinstance(value, dict | list))


def _walk(tree: Any) -> Iterator[tuple[dict[str, Any] | list[Any], Any, Any]]:
    stack: list[Any] = [tree]
    while stack:
        holder = stack.pop()
        items: list[tuple[Any, Any]] = list(holder.items()) if isinstance(holder, dict) else list(enumerate(holder))
        for key, value in items:
            yield holder, key, value
            if isinstance(value, dict | list):
                stack.append(value)

"""What keeps a state small: clipped texts, capped lists, and JSON values that are kept only while they are small."""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from trunkline_wire import encode
from trunkline_wire.blocks import Choice, Text, text_of

T = TypeVar("T")

PREVIEW: Final = 200
"""Code points of a preview."""

SMALL_JSON: Final = 2048
"""Bytes up to which a JSON value is kept in a state."""


def clip(value: Text | None, limit: int = PREVIEW) -> str:
    """The first `limit` code points of a text (of its preview, if the text is in the blob store)."""
    return text_of(value)[:limit]


def clip_or_none(value: Text | None, limit: int = PREVIEW) -> str | None:
    return None if value is None else clip(value, limit)


def one_line(value: str, limit: int) -> str:
    """`value` on one line, without double spaces, at most `limit` code points."""
    return " ".join(value.split())[:limit]


def small_json(value: Any) -> Any:
    """`value` if its JSON has at most SMALL_JSON bytes, else None: the event itself keeps the whole of it."""
    return value if len(encode(value)) <= SMALL_JSON else None


def first(values: Sequence[T], limit: int) -> tuple[list[T], int]:
    """The first `limit` values and how many were left out."""
    return list(values[:limit]), max(0, len(values) - limit)


def last(values: Sequence[T], limit: int) -> tuple[list[T], int]:
    """The last `limit` values and how many were left out."""
    rest = max(0, len(values) - limit)
    return list(values[rest:]), rest


def upsert(values: Sequence[T], value: T, same: Callable[[T], bool]) -> list[T]:
    """`values` with `value` in the place of the one that is the `same`, or at the end."""
    found = False
    result: list[T] = []
    for old in values:
        if same(old):
            result.append(value)
            found = True
        else:
            result.append(old)
    if not found:
        result.append(value)
    return result


def clip_choice(choice: Choice) -> Choice:
    """A choice whose description is a preview."""
    if choice.description is None or len(choice.description) <= PREVIEW:
        return choice
    return Choice(
        id=choice.id,
        name=choice.name,
        description=choice.description[:PREVIEW],
        hint=choice.hint,
        current=choice.current,
    )

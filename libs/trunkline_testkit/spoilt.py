"""Native messages with something missing or of another type, for a translator that has to survive them."""

from collections.abc import Iterator
from typing import Any, Final, cast

Obj = dict[str, Any]

WRONG: Final = (None, 7, "text", [], {}, [None], True)
"""Values of every type of JSON."""


def shorter(value: object, *, keep: str | None = None) -> Iterator[Obj]:
    """Every copy of an object with one field less, at any depth, but for `keep`; of a list only the first is looked into."""
    if not isinstance(value, dict):
        return
    whole = cast("Obj", value)
    for key, inner in whole.items():
        if key != keep:
            yield {other: kept for other, kept in whole.items() if other != key}
        for one in shorter(inner, keep=keep):
            yield {**whole, key: one}
        if isinstance(inner, list) and inner:
            first, *rest = cast("list[Any]", inner)
            for one in shorter(first, keep=keep):
                yield {**whole, key: [one, *rest]}


def wronged(value: Obj, depth: int, *, keep: str | None = None) -> Iterator[Obj]:
    """Every copy of an object with one field of another type, down to `depth` objects within it, but for `keep`."""
    for key, inner in value.items():
        if key != keep:
            for wrong in WRONG:
                yield {**value, key: wrong}
        if isinstance(inner, dict) and depth:
            for one in wronged(cast("Obj", inner), depth - 1, keep=keep):
                yield {**value, key: one}

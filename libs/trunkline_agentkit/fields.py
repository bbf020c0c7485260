"""Tolerant access to the JSON objects of a native protocol: a field that is missing or of another type never raises.

Agents' versions differ in what they send, so an adapter treats every field as optional and says what its absence means.
"""

from collections.abc import Iterable
from typing import Any, cast

Obj = dict[str, Any]
"""One JSON object of a native protocol."""


def as_obj(value: object) -> Obj:
    """`value` if it is an object, else an empty one."""
    return cast("Obj", value) if isinstance(value, dict) else {}


def obj(message: Obj, key: str) -> Obj:
    """The object at `key`, else an empty one."""
    return as_obj(message.get(key))


def items(message: Obj, key: str) -> list[Any]:
    """The array at `key`, else an empty one."""
    value = message.get(key)
    return cast("list[Any]", value) if isinstance(value, list) else []


def objects(message: Obj, key: str) -> list[Obj]:
    """The objects in the array at `key`; what else stands in it is left out."""
    return [cast("Obj", value) for value in items(message, key) if isinstance(value, dict)]


def strings(values: Iterable[Any]) -> list[str]:
    """The strings of `values`; what else stands there is left out."""
    return [value for value in values if isinstance(value, str)]


def text(message: Obj, key: str) -> str | None:
    """A string that is not empty, else None."""
    value = message.get(key)
    return value if isinstance(value, str) and value else None


def whole(message: Obj, key: str) -> int | None:
    """A number as an integer, else None."""
    value = message.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if value == value and abs(value) < 1e18 else None  # noqa: PLR0124  # NaN is not itself


def number(message: Obj, key: str) -> float | None:
    """A number, else None."""
    value = message.get(key)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def truth(message: Obj, key: str) -> bool:
    """Whether `true` stands at `key`."""
    return message.get(key) is True

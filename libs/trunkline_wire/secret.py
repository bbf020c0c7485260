"""Fields that nothing shows: what is marked as secret is in no repr, and so in no log, traceback or failed assertion."""

import functools
from typing import Annotated, Any, Final, get_args

import msgspec
from msgspec.structs import fields

SECRET: Final = "secret"  # noqa: S105 - the name of a mark, no secret
MASK: Final = "********"
Secret = Annotated[str, msgspec.Meta(extra={SECRET: True})]
"""A text that reprs, logs, errors and `--check` never show."""
SecretBytes = Annotated[bytes, msgspec.Meta(extra={SECRET: True})]


class Discreet(msgspec.Struct, frozen=True):
    """A struct whose repr has a mask in place of what is marked as secret."""

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        hidden = secret_fields(type(self))
        return [(name, MASK if name in hidden else getattr(self, name)) for name in self.__struct_fields__]

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"{type(self).__name__}({shown})"


@functools.cache
def secret_fields(kind: type[msgspec.Struct]) -> frozenset[str]:
    """The names of the fields of a struct that are marked, in whatever their type is made of."""
    return frozenset(field.name for field in fields(kind) if _marked(field.type))


def _marked(hint: Any) -> bool:
    here = (mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, msgspec.Meta))
    return any((mark.extra or {}).get(SECRET) for mark in here) or any(_marked(part) for part in get_args(hint))

"""The base of every event's payload, and how a family of tagged envelopes is made from payload classes."""

from collections.abc import Iterable
from typing import ClassVar, TypeVar, cast

import msgspec

E = TypeVar("E", bound=msgspec.Struct)


class Data(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A payload. `TYPE` is the type's name on the wire, `VERSION` the version that this code writes."""

    TYPE: ClassVar[str] = ""
    VERSION: ClassVar[int] = 1


def tagged_family(
    envelope: type[E], kinds: Iterable[type[Data]], *, field: str, tag_field: str, strict: bool = False
) -> dict[type[Data], type[E]]:
    """One subclass of `envelope` for each payload class, tagged with its TYPE, its `field` of that class.

    Together they are a tagged union that msgspec decodes in one pass although the tag stands beside the payload.
    """
    family = {
        kind: msgspec.defstruct(
            f"{kind.__name__}{envelope.__name__}",
            [(field, kind)],
            bases=(envelope,),
            tag=kind.TYPE,
            tag_field=tag_field,
            kw_only=True,
            frozen=True,
            omit_defaults=True,
            forbid_unknown_fields=strict,
            module=envelope.__module__,
        )
        for kind in kinds
    }
    return cast("dict[type[Data], type[E]]", family)

"""Hypothesis strategies for everything in the schema, made from the classes themselves (needs the `dev` extra)."""

import datetime as dt
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from hypothesis import strategies as st
from msgspec import inspect as mi

from trunkline_wire import Data, Event, make_event, timestamp

Overrides = Mapping[str, st.SearchStrategy[Any]]
"""Strategies for fields of these names, in whatever class they stand."""

_EPOCH: Final = dt.datetime(2026, 11, 27, tzinfo=dt.UTC)

json_values: Final[st.SearchStrategy[Any]] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)
times: Final[st.SearchStrategy[str]] = st.integers(0, 172_800).map(
    lambda seconds: timestamp(_EPOCH + dt.timedelta(seconds=seconds))
)


def values(type_: Any, overrides: Overrides | None = None) -> st.SearchStrategy[Any]:
    """Values of a type: of each field whatever its annotation allows."""
    return _of(mi.type_info(type_), overrides or {})


def datas(kind: type[Data], overrides: Overrides | None = None) -> st.SearchStrategy[Data]:
    """Payloads of one type."""
    return values(kind, overrides)


def events(
    kind: type[Data], *, session: str, overrides: Overrides | None = None, envelope: Overrides | None = None
) -> st.SearchStrategy[Event]:
    """Events of one type; `envelope` overrides the envelope's fields, `overrides` the payload's."""
    fields: dict[str, st.SearchStrategy[Any]] = {}
    for field in msgspec.structs.fields(Event):
        if field.name not in ("id", "v", "session", "time", "data", "native"):
            fields[field.name] = values(field.type)
    fields["time"] = times
    fields["native"] = json_values.map(lambda value: msgspec.Raw(msgspec.json.encode(value)))
    fields |= dict(envelope or {})

    def make(data: Data, about: dict[str, Any]) -> Event:
        return make_event(data, session=session, **about)

    return st.builds(make, datas(kind, overrides), st.fixed_dictionaries(fields))


def _of(info: mi.Type, overrides: Overrides) -> st.SearchStrategy[Any]:
    match info:
        case mi.AnyType() | mi.RawType():
            return json_values
        case mi.NoneType():
            return st.none()
        case mi.BoolType():
            return st.booleans()
        case mi.IntType():
            return st.integers(0, 2**53)
        case mi.FloatType():
            return st.floats(0, 1e9, allow_nan=False)
        case mi.StrType():
            return st.text(max_size=12)
        case mi.LiteralType():
            return st.sampled_from(list(info.values))
        case mi.UnionType():
            return st.one_of([_of(member, overrides) for member in info.types])
        case mi.ListType() | mi.VarTupleType():
            made = st.lists(_of(info.item_type, overrides), max_size=3)
            return made.map(tuple) if isinstance(info, mi.VarTupleType) else made
        case mi.TupleType():
            return st.tuples(*(_of(item, overrides) for item in info.item_types))
        case mi.DictType():
            return st.dictionaries(st.text(max_size=6), _of(info.value_type, overrides), max_size=2)
        case mi.StructType():
            fields = {
                field.name: overrides[field.name] if field.name in overrides else _of(field.type, overrides)
                for field in info.fields
            }
            return st.builds(info.cls, **fields)
        case _:
            raise TypeError(f"the schema has no values of {info!r}: add a strategy")

"""What a JSON value holds beyond its type: msgspec tolerates unknown fields, tests must not."""

import functools
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect as mi


def unknown_fields(value: Any, type_: Any) -> list[str]:
    """Paths (`data.options.colour`) of the fields of `value`, decoded JSON that fits `type_`, that the type does not have.

    Fields of type Any and Raw may hold anything: an agent's own JSON is not ours to judge.
    """
    return list(_walk(value, _info(type_), ""))


@functools.lru_cache(maxsize=1024)
def _info(type_: Any) -> mi.Type:
    return mi.type_info(type_)


def _walk(value: Any, info: mi.Type, path: str) -> Iterator[str]:
    match info:
        case mi.StructType():
            if isinstance(value, dict):
                yield from _struct(value, info, path)
        case mi.UnionType():
            fitting = _member(value, info)
            if fitting is not None:
                yield from _walk(value, fitting, path)
        case mi.ListType() | mi.VarTupleType() if isinstance(value, list):
            for n, entry in enumerate(value):
                yield from _walk(entry, info.item_type, f"{path}[{n}]")
        case mi.TupleType() if isinstance(value, list):
            for n, (entry, item_type) in enumerate(zip(value, info.item_types, strict=False)):
                yield from _walk(entry, item_type, f"{path}[{n}]")
        case mi.DictType() if isinstance(value, dict):
            for key, entry in value.items():
                yield from _walk(entry, info.value_type, f"{path}.{key}".lstrip("."))
        case _:
            return


def _struct(value: dict[str, Any], info: mi.StructType, path: str) -> Iterator[str]:
    fields = {field.encode_name: field.type for field in info.fields}
    for key, entry in value.items():
        where = f"{path}.{key}".lstrip(".")
        if key in fields:
            yield from _walk(entry, fields[key], where)
        elif key != info.tag_field:
            yield where


def _member(value: Any, info: mi.UnionType) -> mi.Type | None:
    """The member of a union that a value belongs to: a struct by its tag, a list or dict by its form."""
    if isinstance(value, list):
        return next((t for t in info.types if isinstance(t, mi.ListType | mi.VarTupleType | mi.TupleType)), None)
    if not isinstance(value, dict):
        return None
    structs = [t for t in info.types if isinstance(t, mi.StructType)]
    for struct in structs:
        if struct.tag_field is None or value.get(struct.tag_field) == struct.tag:
            return struct
    return next((t for t in info.types if isinstance(t, mi.DictType)), None)


def check_strict(raw: bytes, value: msgspec.Struct) -> list[str]:
    """The unknown fields of `raw`, which was decoded to `value`."""
    return unknown_fields(msgspec.json.decode(raw), type(value))

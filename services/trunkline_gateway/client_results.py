"""What the methods answer, as TypedDicts of the Python client: source text made from the types in the registry."""

import keyword
from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import inspect as structure

_PLAIN: Final[dict[type[structure.Type], str]] = {
    structure.StrType: "str",
    structure.IntType: "int",
    structure.FloatType: "float",
    structure.BoolType: "bool",
    structure.NoneType: "None",
}
_HEAD: Final = '''"""What the gateway's methods answer. Generated from its registry by `just schema`: a test compares them.

A later gateway may add fields, and members to any union.
"""

# fmt: off

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict
'''


def source(types: Iterable[Any]) -> str:
    """The whole module; the same types give the same text."""
    found = _used(types)
    return _HEAD + "".join(_class(name, found[name]) for name in sorted(found))


def whole(types: Iterable[Any]) -> set[str]:
    """The names of the structs that are told with all their fields, whatever these are."""
    return {name for name, kind in _used(types).items() if isinstance(kind, structure.StructType) and _is_whole(kind)}


def _used(types: Iterable[Any]) -> dict[str, structure.StructType | structure.TypedDictType]:
    found: dict[str, structure.StructType | structure.TypedDictType] = {}
    for type_ in structure.multi_type_info(list(types)):
        _collect(type_, found)
    return found


def _is_whole(kind: structure.StructType) -> bool:
    return not kind.cls.__struct_config__.omit_defaults


def name_of(type_: Any) -> str:
    """How a method's result is written, from outside the module."""
    shown = structure.type_info(type_)
    return f"results.{_name(shown)}" if isinstance(shown, structure.TypedDictType) else "Any"


def _name(kind: structure.StructType | structure.TypedDictType) -> str:
    return kind.cls.__name__


def _collect(kind: structure.Type, found: dict[str, structure.StructType | structure.TypedDictType]) -> None:
    match kind:
        case structure.StructType() | structure.TypedDictType():
            known = found.setdefault(_name(kind), kind)
            if known.cls is not kind.cls:
                raise ValueError(f"two classes are called {_name(kind)}: their names are public, give one another")
            if known is kind:
                for field in kind.fields:
                    _collect(field.type, found)
        case structure.ListType(item_type=item) | structure.VarTupleType(item_type=item):
            _collect(item, found)
        case structure.DictType(value_type=value):
            _collect(value, found)
        case structure.UnionType(types=types):
            for one in types:
                _collect(one, found)
        case _:
            pass


def _class(name: str, kind: structure.StructType | structure.TypedDictType) -> str:
    fields = {field.encode_name: _field(kind, field) for field in kind.fields}
    if isinstance(kind, structure.StructType) and kind.tag_field is not None:
        fields = {kind.tag_field: f"Literal[{kind.tag!r}]".replace("'", '"')} | fields
    if any(keyword.iskeyword(field) for field in fields):
        shown = ", ".join(f'"{field}": {type_}' for field, type_ in fields.items())
        return f'\n\n{name} = TypedDict("{name}", {{{shown}}})\n'
    lines = "".join(f"    {field}: {type_}\n" for field, type_ in fields.items()) or "    pass\n"
    return f"\n\nclass {name}(TypedDict):\n{lines}"


def _field(kind: structure.StructType | structure.TypedDictType, field: structure.Field) -> str:
    shown = _type(field.type)
    told = field.required or (isinstance(kind, structure.StructType) and _is_whole(kind))
    return shown if told else f"NotRequired[{shown}]"


def _type(kind: structure.Type) -> str:
    match kind:
        case structure.StructType() | structure.TypedDictType():
            return _name(kind)
        case structure.LiteralType(values=values):
            return "Literal[" + ", ".join(msgspec.json.encode(value).decode() for value in values) + "]"
        case structure.ListType(item_type=item) | structure.VarTupleType(item_type=item):
            return f"list[{_type(item)}]"
        case structure.TupleType():
            return "list[Any]"
        case structure.DictType(value_type=value):
            return f"dict[str, {_type(value)}]"
        case structure.UnionType(types=types):
            shown = list(dict.fromkeys(_type(one) for one in types))
            return "Any" if "Any" in shown else " | ".join(shown)
        case structure.Metadata(type=type_):
            return _type(type_)
        case _:
            return _PLAIN.get(type(kind), "Any")

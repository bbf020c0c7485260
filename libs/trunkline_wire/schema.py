"""The JSON Schemas of events and commands, made from the classes themselves.

Docstrings become descriptions, those below a field the field's. Unknown fields are allowed, as they are in production.
"""

import ast
import functools
import inspect
import itertools
import sys
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from trunkline_wire._base import Data
from trunkline_wire.commands import COMMAND_KINDS, Answer, Command, Spawn
from trunkline_wire.events import CATALOGUE, TOLERANT, Event
from trunkline_wire.observed import OBSERVATION_KINDS, Observation

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

Schema = dict[str, Any]


def events_schema() -> Schema:
    """One schema for all events: `oneOf` over the types, told apart by `type`."""
    kinds = dict(zip(CATALOGUE, event_envelopes(CATALOGUE.values()), strict=True))
    return _document("Trunkline events", "An event on the wire: the envelope, `type`, and `data`.", kinds, "type")


def commands_schema() -> Schema:
    """One schema for all commands, with Answer and Spawn among its `$defs`."""
    kinds = dict(zip((kind.TYPE for kind in COMMAND_KINDS), command_envelopes(), strict=True))
    return _document(
        "Trunkline commands",
        "A command to a session. An answer to an ask and a request for a session are in `$defs`: Answer, Spawn.",
        kinds,
        "verb",
        others=(Answer, Spawn),
    )


def event_name(kind: type[Data]) -> str:
    """The name under `$defs` of the event, or the observation, with this payload."""
    return (TOLERANT.get(kind) or OBSERVATION_KINDS[kind]).__name__


def components(types: Iterable[Any], *, template: str) -> Schema:
    """The schemas of classes and of all that they use, by name, with descriptions."""
    by_name: dict[str, Any] = {}
    types = list(types)
    for type_ in types:
        _collect(type_, by_name)
    _, schemas = msgspec.json.schema_components(types, ref_template=template)
    return {name: _described(schema, by_name.get(name)) for name, schema in sorted(schemas.items())}


def event_envelopes(kinds: Iterable[type[Data]]) -> list[type[msgspec.Struct]]:
    """The classes whose schemas are those of the events with these payloads."""
    return [_envelope(kind, Event, tag_field="type", tag=kind.TYPE) for kind in kinds]


def command_envelopes() -> list[type[msgspec.Struct]]:
    """The classes whose schemas are those of the commands, one for each verb."""
    return [_envelope(kind, Command, tag_field="verb", tag=kind.TYPE, field="args") for kind in COMMAND_KINDS]


def observation_envelopes() -> list[type[msgspec.Struct]]:
    """The classes whose schemas are those of the observations, one for each type."""
    return [_envelope(kind, Observation, tag_field="type", tag=kind.TYPE) for kind in OBSERVATION_KINDS]


def _document(
    title: str, description: str, kinds: dict[str, type[msgspec.Struct]], tag_field: str, others: tuple[Any, ...] = ()
) -> Schema:
    template = "#/$defs/{name}"
    return {
        "$schema": DIALECT,
        "title": title,
        "description": description,
        "oneOf": [{"$ref": template.format(name=kind.__name__)} for kind in kinds.values()],
        "discriminator": {
            "propertyName": tag_field,
            "mapping": {name: template.format(name=kind.__name__) for name, kind in kinds.items()},
        },
        "$defs": components((*kinds.values(), *others), template=template),
    }


def _envelope(
    kind: type[Data], base: type[msgspec.Struct], *, tag_field: str, tag: str, field: str = "data"
) -> type[msgspec.Struct]:
    """A class with the schema of `base` around `kind`. `native` is any JSON here: Raw has no schema of its default."""
    fields: list[Any] = []
    for info in msgspec.structs.fields(base):
        type_ = kind if info.name == field else Any if info.type is msgspec.Raw else info.type
        default = None if info.type is msgspec.Raw else info.default
        fields.append((info.name, type_) if info.required else (info.name, type_, default))
    made = msgspec.defstruct(f"{kind.__name__}{base.__name__}", fields, kw_only=True, tag=tag, tag_field=tag_field)
    made.__doc__ = f"{tag}: {_summary(kind)}" if _summary(kind) else None
    _BASES[made] = base
    return made


_BASES: Final[dict[type, type]] = {}
"""The class that an envelope was made from, which has its fields' descriptions."""


def _summary(kind: type) -> str:
    return inspect.cleandoc(kind.__dict__.get("__doc__") or "")


def _collect(type_: Any, by_name: dict[str, Any]) -> None:
    """Every struct that `type_` is made of, by name."""
    pending: list[msgspec.inspect.Type] = [msgspec.inspect.type_info(type_)]
    while pending:
        info = pending.pop()
        match info:
            case msgspec.inspect.StructType():
                if info.cls.__name__ in by_name:
                    continue
                by_name[info.cls.__name__] = info.cls
                pending.extend(field.type for field in info.fields)
            case msgspec.inspect.UnionType():
                pending.extend(info.types)
            case msgspec.inspect.ListType() | msgspec.inspect.VarTupleType():
                pending.append(info.item_type)
            case msgspec.inspect.TupleType():
                pending.extend(info.item_types)
            case msgspec.inspect.DictType():
                pending.append(info.value_type)
            case _:
                continue


def _described(schema: Schema, cls: type | None) -> Schema:
    if cls is None:
        return schema
    text = _summary(cls)
    described: Schema = {name: value for name, value in schema.items() if name != "description"}
    if text:
        described["description"] = text
    properties: Schema = described.get("properties", {}).copy()
    for name, words in _field_docs(_BASES.get(cls, cls)).items():
        encoded = next((f.encode_name for f in msgspec.structs.fields(cls) if f.name == name), name)
        if encoded in properties:
            properties[encoded] = {**properties[encoded], "description": words}
    return {**described, "properties": properties}


def _field_docs(cls: type) -> dict[str, str]:
    """The texts that stand below the fields of a class or of its bases."""
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("trunkline_"):
            docs |= _module_docs(base.__module__).get(base.__name__, {})
    return docs


@functools.cache
def _module_docs(module: str) -> dict[str, dict[str, str]]:
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: dict(_class_docs(node)) for node in tree.body if isinstance(node, ast.ClassDef)}


def _class_docs(node: ast.ClassDef) -> Iterable[tuple[str, str]]:
    for before, after in itertools.pairwise(node.body):
        match before, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                yield name, inspect.cleandoc(words)
            case _:
                continue

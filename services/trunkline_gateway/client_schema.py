"""`python -m trunkline_gateway.client_schema` prints, as one JSON Schema, what the TypeScript client's types are made from."""

import json
from typing import Any, Final, cast

import msgspec

from trunkline_fold.asks import Ask
from trunkline_fold.state import SessionState
from trunkline_gateway import client_results
from trunkline_gateway.blocks import OpenBlock
from trunkline_gateway.client_source import minted
from trunkline_gateway.methods import ALL
from trunkline_gateway.registry import Method
from trunkline_gateway.subscribe import Subscribe
from trunkline_wire import ERRORS, ErrorInfo
from trunkline_wire.events import CATALOGUE
from trunkline_wire.schema import DIALECT, Schema, components, event_envelopes

_REF: Final = "#/$defs/{name}"


def document() -> Schema:
    """Parameters and results by method, every event, and what snapshots have; `x-` is what programs need as values."""
    kinds: dict[str, Any] = {name: ALL[name].params for name in sorted(ALL)}
    results = [ALL[name].result for name in kinds]
    events = event_envelopes(CATALOGUE.values())
    others = (Subscribe, ErrorInfo, SessionState, OpenBlock, Ask)
    every = (*kinds.values(), *results, *events, *others)
    refs, _ = msgspec.json.schema_components(every, ref_template=_REF)
    known = components(every, template=_REF)
    named = {name: _named(known, ref, ALL[name]) for name, ref in zip(kinds, refs, strict=False)}
    answered = dict(zip(kinds, refs[len(kinds) :], strict=False))
    told = refs[2 * len(kinds) : -len(others)]
    subscribe, error, state, block, ask = refs[-len(others) :]
    known["Ask"] = {"title": "Ask", **ask}
    taken = [field.type for kind in kinds.values() for field in msgspec.structs.fields(kind)]
    for name in client_results.whole(results) - client_results.whole(taken):
        known[name]["required"] = sorted(known[name]["properties"])
    known["KnownEvent"] = {"title": "KnownEvent", "oneOf": told}
    known["Snapshot"] = _object("Snapshot", _snapshot(state, block), ["asks", "blocks"])
    properties = {
        "params": _object("Params", named),
        "results": _object("Results", answered),
        "subscribe": subscribe,
        "event": {"$ref": _REF.format(name="KnownEvent")},
        "snapshot": {"$ref": _REF.format(name="Snapshot")},
        "error": error,
        "code": {"title": "ErrorCode", "enum": sorted(ERRORS)},
    }
    return {
        "$schema": DIALECT,
        **_object("Schema", properties),
        "$defs": {name: _referring(schema) for name, schema in known.items()},
        "x-events": sorted(CATALOGUE),
        "x-minted": {name: field for name in kinds if (field := minted(ALL[name])) is not None},
    }


def _snapshot(state: Schema, block: Schema) -> Schema:
    """Of one session `state`, of all `sessions`, the first of `total`."""
    return {
        "state": {"anyOf": [state, {"type": "null"}]},
        "sessions": {"type": "array", "items": state},
        "total": {"type": "integer"},
        "asks": {"type": "array", "items": {"$ref": _REF.format(name="Ask")}},
        "blocks": {"type": "array", "items": block},
    }


def _object(title: str, properties: Schema, required: list[str] | None = None) -> Schema:
    needed = list(properties) if required is None else required
    return {"title": title, "type": "object", "properties": properties, "required": needed}


def _referring(schema: Any) -> Any:
    """Stored events stand in results as their title alone."""
    if schema == {"title": "KnownEvent"}:
        return {"$ref": _REF.format(name="KnownEvent")}
    if isinstance(schema, dict):
        return {name: _referring(one) for name, one in cast("Schema", schema).items()}
    return [_referring(one) for one in cast("list[Any]", schema)] if isinstance(schema, list) else schema


def _named(known: Schema, ref: Schema, method: Method) -> Schema:
    """The same parameters under their method's name: classes of two methods may have one name."""
    schema = known[ref["$ref"].removeprefix(_REF.format(name=""))] if "$ref" in ref else ref
    return {**schema, "title": _title(method.name), "description": method.summary}


def _title(method: str) -> str:
    return "".join(part.title() for part in method.replace(".", "_").split("_")) + "Params"


if __name__ == "__main__":
    print(json.dumps(document(), sort_keys=True))  # noqa: T201 - its output

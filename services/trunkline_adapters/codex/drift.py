"""What Codex's generated schema names, and what of it this adapter does not handle. Pure.

`names.json` holds the names that the tested version has, reviewed: a newer Codex is compared with it by `news`.
"""

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any, Final

from trunkline_adapters.codex.native import ASKING, KNOWN, REALTIME, TRANSLATED
from trunkline_adapters.codex.translate_items import ITEM_TYPES

Names = dict[str, list[str]]
"""Sorted names by kind: `notifications` and `requests` of the server, types of `items`, `methods` that a client may call."""

FILES: Final = {
    "methods": "ClientRequest.json",
    "notifications": "ServerNotification.json",
    "requests": "ServerRequest.json",
}
BUNDLE: Final = "codex_app_server_protocol.v2.schemas.json"
"""The file of the generated schema that defines `ThreadItem`."""


def reviewed() -> Names:
    """The names of the tested version."""
    return json.loads(resources.files("trunkline_adapters.codex").joinpath("names.json").read_bytes())


def names_of(files: Mapping[str, Any]) -> Names:
    """The names in a generated schema: `files` are its documents by file name."""
    found = {kind: sorted(_methods(files[file])) for kind, file in FILES.items()}
    items = files[BUNDLE]["definitions"]["ThreadItem"]["oneOf"]
    return found | {"items": sorted(item["properties"]["type"]["enum"][0] for item in items)}


def _methods(schema: dict[str, Any]) -> list[str]:
    return [one["properties"]["method"]["enum"][0] for one in schema["oneOf"]]


def news(now: Names, before: Names) -> dict[str, tuple[list[str], list[str]]]:
    """(names that came, names that went) by kind, where something changed."""
    kinds = sorted({*now, *before})
    changed = {
        kind: (
            sorted({*now.get(kind, [])} - {*before.get(kind, [])}),
            sorted({*before.get(kind, [])} - {*now.get(kind, [])}),
        )
        for kind in kinds
    }
    return {kind: both for kind, both in changed.items() if any(both)}


def lines(now: Names) -> list[str]:
    """What a version has that was not reviewed, and what it lacks: a line each, with what nobody here handles first."""
    unknown = unhandled(now)
    found = [f"new {kind} without a translation: {', '.join(names)}" for kind, names in unknown.items()]
    for kind, (came, went) in news(now, reviewed()).items():
        if other := [name for name in came if name not in unknown.get(kind, [])]:
            found.append(f"new {kind}: {', '.join(other)}")
        if went:
            found.append(f"{kind} that are gone: {', '.join(went)}")
    return found


def unhandled(names: Names) -> Names:
    """What the server may say and this adapter neither translates nor knows to mean nothing."""
    known = KNOWN | TRANSLATED | ASKING
    spoken = {
        kind: [name for name in names[kind] if name not in known and not name.startswith(REALTIME)]
        for kind in ("notifications", "requests")
    }
    left = spoken | {"items": [name for name in names["items"] if name not in ITEM_TYPES]}
    return {kind: found for kind, found in left.items() if found}

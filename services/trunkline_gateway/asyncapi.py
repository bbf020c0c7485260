"""The WebSockets as AsyncAPI 3; methods and events are made from the registry and the classes: they can't go stale."""

from typing import Any, Final

import msgspec

from trunkline_gateway.followed import Switch, Unsubscribe
from trunkline_gateway.methods import ALL
from trunkline_gateway.subscribe import Subscribe
from trunkline_gateway.ws import Hello
from trunkline_wire import ERRORS, ErrorInfo
from trunkline_wire.events import CATALOGUE
from trunkline_wire.schema import event_envelopes
from trunkline_wire.terminal import MAX_HISTORY, MAX_KEYS, TerminalState

_SCHEMAS: Final = "#/components/schemas/{name}"
_PROTOCOL: Final = {"hello": Hello, "subscribe": Subscribe, "unsubscribe": Unsubscribe, "session.switch": Switch}
_TOLD: Final = {
    "hello": "Say who one is, first: `token` where neither a cookie nor a header has said it.",
    "subscribe": "Follow a session, or all that one may see, from a cursor, the start, a snapshot, or now.",
    "unsubscribe": "End a subscription.",
    "session.switch": "Follow another session in place of the one that was followed: nothing ends unless the new one begins.",
}


_FRAME: Final = (
    "a byte for the kind, eight for the terminal, eight for the number of bytes printed before (big-endian), then the content; "
    "`o`: what was printed; `p`: columns and rows as JSON, a line end, and what a terminal has to print to look like that one"
)
_TEXTS: Final[dict[str, tuple[str, dict[str, Any], list[str]]]] = {
    "hello": (
        "First: who one is. `viewer` names one that comes back; `history` is the lines above the screen that a painting may bring.",
        {
            "token": {"type": "string"},
            "viewer": {"type": "string"},
            "history": {"type": "integer", "minimum": 0, "maximum": MAX_HISTORY},
        },
        [],
    ),
    "take": (
        "Type from now on; `force` takes the keyboard from whoever has it. Needs the role `participant`.",
        {"force": {"type": "boolean"}},
        [],
    ),
    "release": ("Leave the keyboard.", {}, []),
    "resize": (
        "The size, for everybody: who types sets it.",
        {"columns": {"type": "integer"}, "rows": {"type": "integer"}},
        ["columns", "rows"],
    ),
    "ack": (
        "How many bytes of binary messages have come so far; at least every 32 KB.",
        {"bytes": {"type": "integer"}},
        ["bytes"],
    ),
    "ping": ("Whether the connection lives: `pong` is the answer, at once. Where `hello` said `answers`.", {}, []),
}


def document(version: str) -> dict[str, Any]:
    """The whole document, as JSON values."""
    kinds: dict[str, Any] = {**_PROTOCOL, **{name: method.params for name, method in ALL.items()}}
    envelopes = event_envelopes(CATALOGUE.values())
    schemas, components = msgspec.json.schema_components(
        [*kinds.values(), *envelopes, TerminalState, ErrorInfo], ref_template=_SCHEMAS
    )
    params = dict(zip(kinds, schemas, strict=False))
    events, state, error = schemas[len(kinds) : -2], schemas[-2], schemas[-1]
    terminal = _terminal(state, error)
    messages: dict[str, Any] = {name: _request(name, params[name]) for name in kinds}
    messages |= {
        "answer": _message(
            "The answer to a request.",
            {"type": {"const": "res"}, "id": {}, "ok": {"type": "boolean"}, "payload": {}, "error": error},
            ["type", "id", "ok"],
        ),
        "event": _message(
            "An event of a subscription. The client that comes back with `cursor` gets what comes after it.",
            {
                "type": {"const": "event"},
                "subscription": {"type": "string"},
                "event": {"type": "string"},
                "cursor": {"type": "string"},
                "payload": {"oneOf": events},
            },
            ["type", "subscription", "event", "cursor", "payload"],
        ),
        "gap": _message(
            "Events are missing, for the reason that is named; the snapshot says how things are, and what follows is whole.",
            {
                "type": {"const": "event"},
                "subscription": {"type": "string"},
                "event": {"const": "gap"},
                "payload": {
                    "type": "object",
                    "properties": {"reason": {"type": "string"}, "cursor": {"type": "string"}, "snapshot": {}},
                },
            },
            ["type", "subscription", "event", "payload"],
        ),
        "presence": _message(
            "Everybody who watches a session, whenever that changes.",
            {
                "type": {"const": "presence"},
                "subscription": {"type": "string"},
                "session": {"type": "string"},
                "who": {"type": "array", "items": {"type": "object"}},
            },
            ["type", "subscription", "session", "who"],
        ),
        "heartbeat": _message(
            "Every 15 s; the cursors of subscriptions move with it though nothing happens.",
            {"type": {"const": "heartbeat"}, "cursor": {"type": "string"}, "cursors": {"type": "object"}},
            ["type"],
        ),
    }
    told = ("answer", "event", "gap", "presence", "heartbeat")
    return {
        "asyncapi": "3.0.0",
        "info": {"title": "Trunkline gateway, WebSocket", "version": version},
        "channels": {
            "ws": {"address": "/ws", "messages": {name: _ref("messages", name) for name in messages}},
            "terminal": {
                "address": "/ws/terminal/{session}",
                "parameters": {"session": {"description": "The session whose terminal it is."}},
                "messages": {name: _ref("messages", f"terminal_{name}") for name in terminal},
            },
        },
        "operations": {
            "ask": {
                "action": "send",
                "channel": {"$ref": "#/channels/ws"},
                "messages": [{"$ref": f"#/channels/ws/messages/{name}"} for name in kinds],
                "reply": {
                    "channel": {"$ref": "#/channels/ws"},
                    "messages": [{"$ref": "#/channels/ws/messages/answer"}],
                },
            },
            "hear": {
                "action": "receive",
                "channel": {"$ref": "#/channels/ws"},
                "messages": [{"$ref": f"#/channels/ws/messages/{name}"} for name in told],
            },
            "look": {
                "action": "receive",
                "channel": {"$ref": "#/channels/terminal"},
                "messages": [{"$ref": f"#/channels/terminal/messages/{name}"} for name in _SHOWN],
            },
            "type": {
                "action": "send",
                "channel": {"$ref": "#/channels/terminal"},
                "messages": [{"$ref": f"#/channels/terminal/messages/{name}"} for name in (*_TEXTS, "keys")],
            },
        },
        "components": {
            "messages": messages | {f"terminal_{name}": one for name, one in terminal.items()},
            "schemas": components,
        },
        "x-error-codes": {code: known.meaning for code, known in sorted(ERRORS.items())},
    }


_SHOWN: Final = ("welcome", "state", "lost", "pong", "error", "frame")
"""Messages to a viewer of a terminal."""


def _terminal(state: dict[str, Any], error: dict[str, Any]) -> dict[str, Any]:
    """Messages of a terminal's connection."""

    def text(summary: str, type_: str, fields: dict[str, Any], required: list[str]) -> dict[str, Any]:
        return _message(summary, {"type": {"const": type_}, **fields}, ["type", *required])

    name: dict[str, Any] = {"type": "string"}
    welcome = {"viewer": name, "actor": name, "role": name, "answers": {"type": "boolean"}}
    asked = {kind: text(summary, kind, fields, required) for kind, (summary, fields, required) in _TEXTS.items()}
    told = (
        text("Who one is here, and whether pings are answered.", "hello", welcome, ["viewer", "actor", "role"]),
        text("Of the terminal, whenever it changes.", "state", {"state": state}, ["state"]),
        text("Its owner is gone; a painting follows once there is another one.", "lost", {}, []),
        text("The answer to `ping`.", "pong", {}, []),
        text("What was refused, and why.", "error", {"of": name, "error": error}, ["error"]),
        {"summary": "What the terminal shows.", "contentType": "application/octet-stream", "description": _FRAME},
    )
    keys = {"summary": f"Keys, at most {MAX_KEYS} bytes.", "contentType": "application/octet-stream"}
    return {**asked, "keys": keys, **dict(zip(_SHOWN, told, strict=True))}


def _request(name: str, params: dict[str, Any]) -> dict[str, Any]:
    method = ALL.get(name)
    summary = _TOLD[name] if method is None else f"{method.summary} Needs the role `{method.role}`."
    properties = {
        "type": {"const": "req"},
        "id": {"type": ["string", "integer"]},
        "method": {"const": name},
        "params": params,
    }
    return _message(summary, properties, ["type", "id", "method"])


def _message(summary: str, properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"summary": summary, "payload": {"type": "object", "properties": properties, "required": required}}


def _ref(kind: str, name: str) -> dict[str, str]:
    return {"$ref": f"#/components/{kind}/{name}"}

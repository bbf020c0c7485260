"""The WebSocket as AsyncAPI 3, made from the registry of methods and the classes of events: it can't go stale."""

from typing import Any, Final

import msgspec

from trunkline_gateway.methods import ALL
from trunkline_gateway.subscribe import Subscribe
from trunkline_gateway.ws import Hello, Unsubscribe
from trunkline_wire import ERRORS, ErrorInfo
from trunkline_wire.events import CATALOGUE
from trunkline_wire.schema import event_envelopes

_SCHEMAS: Final = "#/components/schemas/{name}"
_PROTOCOL: Final = {"hello": Hello, "subscribe": Subscribe, "unsubscribe": Unsubscribe}
_TOLD: Final = {
    "hello": "Say who one is, first: `token` where neither a cookie nor a header has said it.",
    "subscribe": "Follow a session, or all that one may see, from a cursor, the start, a snapshot, or now.",
    "unsubscribe": "End a subscription.",
}


def document(version: str) -> dict[str, Any]:
    """The whole document, as JSON values."""
    kinds: dict[str, Any] = {**_PROTOCOL, **{name: method.params for name, method in ALL.items()}}
    envelopes = event_envelopes(CATALOGUE.values())
    schemas, components = msgspec.json.schema_components(
        [*kinds.values(), *envelopes, ErrorInfo], ref_template=_SCHEMAS
    )
    params = dict(zip(kinds, schemas, strict=False))
    events, error = schemas[len(kinds) : -1], schemas[-1]
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
        "channels": {"ws": {"address": "/ws", "messages": {name: _ref("messages", name) for name in messages}}},
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
        },
        "components": {"messages": messages, "schemas": components},
        "x-error-codes": {code: known.meaning for code, known in sorted(ERRORS.items())},
    }


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

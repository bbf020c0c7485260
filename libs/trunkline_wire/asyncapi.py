"""The AsyncAPI 3 document: what a program with a NATS client can read from and write to Trunkline, subject by subject."""

import inspect
from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec

from trunkline_wire import ids, subjects
from trunkline_wire._base import Data
from trunkline_wire.commands import Answer, Command, DeadLetter, Spawn, SystemRecord
from trunkline_wire.events import AGENT_ASKS, AGENT_FACTS, CATALOGUE, DELTA_TYPES, PERMISSION_EVENTS, TEAM_EVENTS
from trunkline_wire.observed import OBSERVATION_KINDS
from trunkline_wire.schema import (
    Schema,
    command_envelopes,
    components,
    event_envelopes,
    event_name,
    observation_envelopes,
)

VERSION: Final = "1.0.0"
"""Of the protocol: the major number changes with a type's version, the minor one with an added type or field."""

_SCHEMAS: Final = "#/components/schemas/{name}"

_PARAMETERS: Final[dict[str, Schema]] = {
    "partition": {"description": f"crc32 of the session's id, modulo {ids.PARTITIONS}; readers of one session use `*`"},
    "session": {"description": "the session's id: ses_ and 32 lower-case hex digits"},
    "user": {"description": "the publisher's own token; its NATS permission allows no other"},
    "host": {"description": "a host's id, or `any` where it does not matter"},
    "adapter": {"description": "an adapter's name"},
    "kind": {"description": "the kind of record: sign-ins, tokens, devices, policies, erasures, operator acts"},
    "service": {"description": "the service that could not apply a message"},
}


class _Channel(msgspec.Struct, frozen=True):
    """A family of subjects: what it is for, its stream, its messages, and what a client may do with it."""

    address: str
    stream: str
    action: Literal["receive", "send"]
    description: str
    events: Sequence[type[Data]] = ()
    records: Sequence[type[msgspec.Struct]] = ()


def _event_channel(name: subjects.Channel) -> str:
    return f"trunk.ev.{{partition}}.{{session}}.{name}"


_CHANNELS: Final[dict[str, _Channel]] = {
    "facts": _Channel(
        _event_channel("agent.fact"), subjects.EVENTS, "receive", "What happened in a session, kept.", AGENT_FACTS
    ),
    "asks": _Channel(
        _event_channel("agent.ask"), subjects.EVENTS, "receive", "What an agent wants decided.", AGENT_ASKS
    ),
    "permission": _Channel(
        _event_channel("permission"), subjects.EVENTS, "receive", "How asks were routed and ended.", PERMISSION_EVENTS
    ),
    "team": _Channel(_event_channel("team"), subjects.EVENTS, "receive", "Teams, on the lead's session.", TEAM_EVENTS),
    "deltas": _Channel(
        "trunk.delta.{partition}.{session}",
        subjects.DELTAS,
        "receive",
        "Pieces of what is being written. They age out after an hour, and no state depends on them.",
        DELTA_TYPES,
    ),
    "commands": _Channel(
        "trunk.cmd.{session}.{user}",
        subjects.COMMANDS,
        "send",
        "Commands to a session, idempotent by id.",
        records=(Command,),
    ),
    "answers": _Channel(
        "trunk.answer.{session}.{user}", subjects.COMMANDS, "send", "Answers to asks.", records=(Answer,)
    ),
    "spawn": _Channel(
        "trunk.spawn.{host}.{adapter}", subjects.SPAWN, "send", "Requests for sessions.", records=(Spawn,)
    ),
    "observed": _Channel(
        "trunk.obs.{host}",
        subjects.OBSERVED,
        "receive",
        "What is seen on a host of agents beside their own streams: hooks, team files, transcripts.",
        events=tuple(OBSERVATION_KINDS),
    ),
    "system": _Channel("trunk.sys.{kind}", subjects.SYSTEM, "receive", "The audit.", records=(SystemRecord,)),
    "dead_letters": _Channel(
        "trunk.dlq.{service}", subjects.DEADLETTER, "receive", "What could not be applied.", records=(DeadLetter,)
    ),
}


def asyncapi() -> Schema:
    """The document, as data."""
    events = event_envelopes(CATALOGUE.values())
    commands = command_envelopes()
    observations = observation_envelopes()
    schemas = components(
        [*events, *commands, *observations, Answer, Spawn, SystemRecord, DeadLetter], template=_SCHEMAS
    )
    schemas["Command"] = {
        "description": "A command, told apart by `verb`.",
        "oneOf": [{"$ref": _SCHEMAS.format(name=command.__name__)} for command in commands],
    }
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Trunkline",
            "version": VERSION,
            "description": (
                "Coding agents on an append-only NATS JetStream log. The application described here is a client: it"
                " receives events and sends commands. The type of an event is in `type` and in the header Trunk-Type."
            ),
        },
        "defaultContentType": "application/json",
        "servers": {
            "local": {
                "host": "127.0.0.1:4222",
                "protocol": "nats",
                "description": "`~/.trunkline/state.json` names the URL of a running Trunkline.",
            }
        },
        "channels": {name: _channel(channel) for name, channel in _CHANNELS.items()},
        "operations": {
            f"{channel.action}_{name}": {
                "action": channel.action,
                "channel": {"$ref": f"#/channels/{name}"},
                "summary": channel.description,
            }
            for name, channel in _CHANNELS.items()
        },
        "components": {
            "schemas": {name: _draft7(schema) for name, schema in schemas.items()},
            "messages": {
                name: message for channel in _CHANNELS.values() for name, message in _messages(channel).items()
            },
            "messageTraits": {"event": {"headers": _HEADERS}},
        },
    }


_HEADERS: Final[Schema] = {
    "type": "object",
    "properties": {
        subjects.HEADER_ID: {"type": "string", "description": "the event's id"},
        subjects.HEADER_TYPE: {"type": "string", "description": "the event's type"},
        subjects.HEADER_TRACE: {"type": "string", "description": "W3C trace context"},
    },
}


def _channel(channel: _Channel) -> Schema:
    parameters = {name: about for name, about in _PARAMETERS.items() if f"{{{name}}}" in channel.address}
    return {
        "address": channel.address,
        "description": f"{channel.description} Stream {channel.stream}.",
        "parameters": parameters,
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in _messages(channel)},
    }


def _messages(channel: _Channel) -> dict[str, Schema]:
    events = {
        kind.TYPE: {
            "name": kind.TYPE,
            "summary": inspect.cleandoc(kind.__dict__.get("__doc__") or kind.TYPE),
            "payload": {"$ref": _SCHEMAS.format(name=event_name(kind))},
            "traits": [{"$ref": "#/components/messageTraits/event"}],
        }
        for kind in channel.events
    }
    records = {
        record.__name__: {
            "name": record.__name__,
            "summary": inspect.cleandoc(record.__doc__ or record.__name__),
            "payload": {"$ref": _SCHEMAS.format(name=record.__name__)},
        }
        for record in channel.records
    }
    return {**events, **records}


def _draft7(schema: Any) -> Any:
    """A schema in the words of AsyncAPI's own dialect: tuples as in draft 7, and unions without OpenAPI's discriminator."""
    match schema:
        case {"prefixItems": items, **rest}:
            return {**_draft7({k: v for k, v in rest.items() if k != "items"}), "items": _draft7(items)}
        case {"discriminator": {"propertyName": _}, **rest}:
            return _draft7(rest)
        case dict():
            return {name: _draft7(value) for name, value in schema.items()}
        case list():
            return [_draft7(value) for value in schema]
        case _:
            return schema

"""Events, commands, ids, subjects, errors: Trunkline's one schema. No I/O."""

from trunkline_wire._base import Data
from trunkline_wire.codec import (
    decode_answer,
    decode_command,
    decode_event,
    decode_json,
    decode_spawn,
    encode,
    parse_time,
    replace_lone_surrogates,
    timestamp,
)
from trunkline_wire.commands import Answer, Command, DeadLetter, Spawn, SystemRecord, make_command
from trunkline_wire.errors import ERRORS, ErrorInfo, TrunklineError
from trunkline_wire.events import CATALOGUE, NO_NATIVE, AgentRef, Event, Source, UnknownData, make_event

__all__ = [
    "CATALOGUE",
    "ERRORS",
    "NO_NATIVE",
    "AgentRef",
    "Answer",
    "Command",
    "Data",
    "DeadLetter",
    "ErrorInfo",
    "Event",
    "Source",
    "Spawn",
    "SystemRecord",
    "TrunklineError",
    "UnknownData",
    "decode_answer",
    "decode_command",
    "decode_event",
    "decode_json",
    "decode_spawn",
    "encode",
    "make_command",
    "make_event",
    "parse_time",
    "replace_lone_surrogates",
    "timestamp",
]

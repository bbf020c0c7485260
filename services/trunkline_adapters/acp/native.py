"""The protocol as data: its words, the reviewed lists of what means nothing, and tolerant access.

Agent Client Protocol, version 1 (https://agentclientprotocol.com/protocol/v1). Every field is optional here: agents leave out
what the schema requires and add what it lacks, and no field may raise.
"""

from typing import Any, Final, cast

from trunkline_wire.turn import Outcome

Obj = dict[str, Any]
"""One JSON object of the protocol."""

VERSION: Final = 1
AUTH_REQUIRED: Final = -32000
NOT_FOUND: Final = -32002
CODES: Final = {-32601: "unsupported", -32602: "bad_params", AUTH_REQUIRED: "agent_auth"}
"""Error codes of the protocol -> ours; every other one is `agent_failed`."""

CANCEL_REQUEST: Final = "$/cancel_request"
PERMISSION: Final = "session/request_permission"
ELICITATION: Final = "elicitation/create"
ASKED: Final = frozenset({PERMISSION, ELICITATION})
"""Requests of the agent that somebody decides."""

SERVED: Final = frozenset(
    {
        "fs/read_text_file",
        "fs/write_text_file",
        "terminal/create",
        "terminal/kill",
        "terminal/output",
        "terminal/release",
        "terminal/wait_for_exit",
    }
)
"""Requests of the agent that are done for it: what comes of them stands in its tool calls."""

BEGINNINGS: Final = frozenset({"session/new", "session/load", "session/resume", "session/fork"})
"""Requests of ours whose answer describes the session."""

REPLAYING: Final = BEGINNINGS - {"session/new"}
"""Of them, those that the agent may answer with the history: the log has it."""

SILENT: Final = frozenset({"elicitation/complete", "session_message", "session_message_chunk"})
"""Notifications and updates that say nothing of their own."""

TOOL_KINDS: Final = frozenset(
    {"read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"}
)
OUTCOMES: Final[dict[str, Outcome]] = {
    "end_turn": "success",
    "max_tokens": "success",
    "max_turn_requests": "max_turns",
    "refusal": "refused",
    "cancelled": "interrupted",
}
"""Stop reasons. At `max_tokens` the answer is cut off, and the turn did not fail: the stop reason says it."""


def as_obj(value: object) -> Obj:
    """`value` if it is an object, else an empty one."""
    return cast("Obj", value) if isinstance(value, dict) else {}


def obj(message: Obj, key: str) -> Obj:
    return as_obj(message.get(key))


def items(message: Obj, key: str) -> list[Any]:
    value = message.get(key)
    return cast("list[Any]", value) if isinstance(value, list) else []


def objects(message: Obj, key: str) -> list[Obj]:
    return [cast("Obj", value) for value in items(message, key) if isinstance(value, dict)]


def text(message: Obj, key: str) -> str | None:
    """A string that is not empty, else None."""
    value = message.get(key)
    return value if isinstance(value, str) and value else None


def whole(message: Obj, key: str) -> int | None:
    """A number as an integer, else None."""
    value = message.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if value == value and abs(value) < 1e18 else None  # noqa: PLR0124  # NaN is not itself


def number(message: Obj, key: str) -> float | None:
    value = message.get(key)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def at_path(message: Obj, path: str | None) -> str | None:
    """The string at a dotted path, as profiles name places: `_meta.tool.name`."""
    if not path:
        return None
    *way, last = path.split(".")
    for key in way:
        message = obj(message, key)
    return text(message, last)

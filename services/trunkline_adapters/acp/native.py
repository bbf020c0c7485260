"""The protocol as data: its words, the reviewed lists of what means nothing, and tolerant access.

Agent Client Protocol, version 1 (https://agentclientprotocol.com/protocol/v1). Every field is optional here: agents leave out
what the schema requires and add what it lacks, and no field may raise.
"""

from typing import Final

from trunkline_agentkit.fields import Obj, obj, objects, text
from trunkline_wire.turn import Outcome

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


def at_path(message: Obj, path: str | None) -> str | None:
    """The string at a dotted path, as profiles name places: `_meta.tool.name`."""
    holder, last = _holder(message, path)
    return text(holder, last)


def objects_at(message: Obj, path: str | None) -> list[Obj]:
    """The objects in the list at a dotted path."""
    holder, last = _holder(message, path)
    return objects(holder, last)


def _holder(message: Obj, path: str | None) -> tuple[Obj, str]:
    *way, last = (path or "").split(".")
    for key in way:
        message = obj(message, key)
    return message, last

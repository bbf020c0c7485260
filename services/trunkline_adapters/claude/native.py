"""The native protocol as data: the reviewed lists, and tolerant access.

Measured on Claude Code 2.1.50 to 2.1.332. Every field is optional here: older CLIs lack some, newer ones add some, and a
missing field may never raise.
"""

from collections.abc import Iterable
from typing import Any, Final, cast

Obj = dict[str, Any]
"""One JSON object of the native protocol."""


KNOWN: Final = frozenset(
    {
        "active_goal",
        "command_lifecycle",
        "control_request/hook_callback",
        "control_request/mcp_message",
        "control_request/request_user_dialog",
        "control_response",
        "control_response/error",
        "control_response/success",
        "keep_alive",
        "system/background_tasks_changed",
        "system/bridge_state",
        "system/control_request_progress",
        "system/elicitation_complete",
        "system/hook_progress",
        "system/init",
        "system/memory_recall",
        "system/plugin_install",
        "system/session_state_changed",
        "system/status",
        "system/ui_invalidate",
        "system/worker_shutting_down",
        "user",
    }
)
"""Kinds without a translation: meaningless to a reader, or said better by other messages."""

REPEATING: Final = frozenset(
    {
        "control_cancel_request",
        "control_request/can_use_tool",
        "control_request/elicitation",
        "conversation_reset",
        "prompt_suggestion",
        "system/commands_changed",
        "system/session_title_changed",
        "system/thinking_tokens",
    }
)
"""Kinds that have a translation, but say nothing where they repeat what is known or belong to nothing."""

THINKING_BUDGETS: Final = {"off": 0, "low": 4_000, "medium": 8_000, "high": 16_000, "max": 32_000}
"""`max_thinking_tokens` of each level."""

MODES: Final = {
    "default": ("Ask", "Asks before anything that changes files or runs commands"),
    "acceptEdits": ("Accept edits", "File edits run without asking"),
    "plan": ("Plan", "Reads and plans, changes nothing"),
    "auto": ("Auto", "A classifier decides what has to be asked"),
    "dontAsk": ("Don't ask", "What would be asked is refused"),
}
"""Modes that any session may be switched to; `bypassPermissions` exists only where it was launched with."""

BYPASS_MODE: Final = "bypassPermissions"
SYNTHETIC_MODEL: Final = "<synthetic>"
DIAGNOSTIC_PREFIX: Final = "[ede_diagnostic]"
"""Errors that begin so are noise for people."""

QUESTION_TOOL: Final = "AskUserQuestion"
PLAN_TOOL: Final = "ExitPlanMode"
AGENT_TOOLS: Final = frozenset({"Agent", "Task"})
"""`Task` up to 2.1.50; later CLIs say `Agent` in messages and still `Task` in `system/init`."""

TOOL_KINDS: Final = {
    "Read": "read",
    "NotebookRead": "read",
    "ReadMcpResourceTool": "read",
    "ListMcpResourcesTool": "read",
    "Edit": "edit",
    "MultiEdit": "edit",
    "Write": "edit",
    "NotebookEdit": "edit",
    "Bash": "execute",
    "BashOutput": "execute",
    "KillShell": "execute",
    "KillBash": "execute",
    "Monitor": "execute",
    "PowerShell": "execute",
    "Glob": "search",
    "Grep": "search",
    "LS": "search",
    "ToolSearch": "search",
    "WebFetch": "fetch",
    "WebSearch": "fetch",
    "Agent": "think",
    "Task": "think",
    "TodoWrite": "think",
    "TaskCreate": "think",
    "TaskUpdate": "think",
    "EnterPlanMode": "switch_mode",
    "ExitPlanMode": "switch_mode",
}


def kind_of(message: Obj) -> str:
    """A message's kind as drift is counted by: `type`, or `type/subtype` where the type has subtypes."""
    main = text(message, "type") or "untyped"
    match main:
        case "system" | "result":
            sub = text(message, "subtype")
        case "stream_event":
            sub = text(obj(message, "event"), "type")
        case "control_request":
            sub = text(obj(message, "request"), "subtype")
        case "control_response":
            sub = text(obj(message, "response"), "subtype")
        case _:
            sub = None
    return f"{main}/{sub}" if sub else main


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


def strings(values: Iterable[Any]) -> list[str]:
    return [value for value in values if isinstance(value, str)]


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


def truth(message: Obj, key: str) -> bool:
    return message.get(key) is True

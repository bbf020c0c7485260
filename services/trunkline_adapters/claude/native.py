"""The native protocol as data: the reviewed lists, and tolerant access.

Measured on Claude Code 2.1.50 to 2.1.332. Every field is optional here: older CLIs lack some, newer ones add some, and a
missing field may never raise.
"""

from typing import Final

from trunkline_agentkit.fields import Obj, obj, text

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

"""The protocol as data.

Agent2Agent protocol 0.3 (https://a2a-protocol.org/v0.3.0/specification); `coderAgent` in `metadata` is Gemini CLI's extension of it
for coding: what a status update is about, tool calls as data, and confirmations that are answered by a message.
"""

from typing import Any, Final

from trunkline_agentkit.fields import Obj, obj, objects, text
from trunkline_wire.asks import AskOption
from trunkline_wire.blocks import ToolKind
from trunkline_wire.turn import Outcome

CARD_PATH: Final = "/.well-known/agent-card.json"
NOT_FOUND: Final = -32001
CODES: Final = {-32601: "unsupported", -32602: "bad_params", NOT_FOUND: "history_lost"}
"""Error codes -> ours; every other one is `agent_failed`."""

OUTCOMES: Final[dict[str, Outcome]] = {
    "canceled": "interrupted",
    "completed": "success",
    "input-required": "success",
    "rejected": "refused",
}
"""How a turn ends whose last state is this; with every other one it has failed."""
OVER: Final = frozenset({"canceled", "completed", "failed", "rejected"})
"""States of a task that takes no more messages."""
RUNNING: Final = frozenset({"submitted", "working"})

OPTIONS: Final = (
    AskOption(id="proceed_once", name="Allow", kind="allow_once"),
    AskOption(id="proceed_always", name="Always allow", kind="allow_always"),
    AskOption(id="cancel", name="Reject", kind="reject_once"),
)
TOOL_KINDS: Final[dict[str, ToolKind]] = {
    "edit": "edit",
    "glob": "search",
    "google_web_search": "fetch",
    "list_directory": "search",
    "read_file": "read",
    "read_many_files": "read",
    "replace": "edit",
    "run_shell_command": "execute",
    "save_memory": "think",
    "search_file_content": "search",
    "web_fetch": "fetch",
    "write_file": "edit",
}


def is_card(message: Obj) -> bool:
    return "result" not in message and "error" not in message and text(message, "protocolVersion") is not None


def coder_kind(result: Obj) -> str | None:
    """What a status update is about, of agents that say it."""
    return text(obj(obj(result, "metadata"), "coderAgent"), "kind")


def kind_of(message: Obj) -> str:
    """A message's kind as drift is counted by."""
    if is_card(message):
        return "card"
    if "error" in message:
        return "error"
    result = obj(message, "result")
    kind = text(result, "kind") or "untyped"
    about = coder_kind(result)
    return f"{kind}/{about}" if about else kind


def parts_of(message: Obj) -> list[Obj]:
    return objects(message, "parts")


def joined(parts: list[Obj]) -> str:
    """The text of a message's parts."""
    return "".join(text(part, "text") or "" for part in parts if text(part, "kind") == "text")


def user_message(message: str, parts: list[Obj], directory: str, task: str | None, context: str | None) -> Obj:
    """A message of ours. `directory` is where a coding agent shall work."""
    body: dict[str, Any] = {
        "kind": "message",
        "role": "user",
        "messageId": message,
        "parts": parts,
        "metadata": {"coderAgent": {"kind": "agent-settings", "workspacePath": directory}},
    }
    if task is not None:
        body["taskId"] = task
    if context is not None:
        body["contextId"] = context
    return body

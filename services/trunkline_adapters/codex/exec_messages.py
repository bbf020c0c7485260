"""Messages of `codex exec --json` as those of an app-server that mean the same. Pure."""

from typing import Any, Final

from trunkline_agentkit.fields import Obj, obj, objects, text, truth

_ITEMS: Final = {
    "agent_message": "agentMessage",
    "collab_tool_call": "collabAgentToolCall",
    "command_execution": "commandExecution",
    "file_change": "fileChange",
    "mcp_tool_call": "mcpToolCall",
    "reasoning": "reasoning",
    "web_search": "webSearch",
}
_MEMBERS: Final = {
    "aggregated_output": "aggregatedOutput",
    "agents_states": "agentsStates",
    "exit_code": "exitCode",
    "receiver_thread_ids": "receiverThreadIds",
    "sender_thread_id": "senderThreadId",
    "structured_content": "structuredContent",
}
_TOKENS: Final = {
    "cache_write_input_tokens": "cacheWriteInputTokens",
    "cached_input_tokens": "cachedInputTokens",
    "input_tokens": "inputTokens",
    "output_tokens": "outputTokens",
    "reasoning_output_tokens": "reasoningOutputTokens",
}
_RETRY: Final = "Reconnecting..."
KINDS: Final = frozenset(
    {
        "error",
        "item.completed",
        "item.started",
        "item.updated",
        "thread.started",
        "turn.completed",
        "turn.failed",
        "turn.started",
    }
)


def kind_of(message: Obj) -> str:
    """A message's kind as drift is counted by."""
    kind = text(message, "type") or "untyped"
    item = text(obj(message, "item"), "type")
    return f"exec/{kind}/{item}" if item else f"exec/{kind}"


def messages(message: Obj, thread: str, run: int, *, new: bool) -> list[Obj] | None:
    """What an app-server would say in its place; None for a type that is unknown.

    Items count from 0 in every run, so `run` makes their ids unique. A turn's id is that of its run.
    `new`: it is the first run of a new thread; tokens are counted over a thread's whole life.
    """
    place: Obj = {"threadId": thread, "turnId": f"run-{run}"}
    turn: Obj = {"id": f"run-{run}"}
    match text(message, "type"):
        case "turn.started":
            return [_note("turn/started", place, turn=turn | {"status": "inProgress"})]
        case "turn.completed":
            total = {new: message_tokens for old, new in _TOKENS.items() if (message_tokens := _usage(message, old))}
            usage = {"total": total, "last": total if new else {}}
            ended = _note("turn/completed", place, turn=turn | {"status": "completed"})
            return [_note("thread/tokenUsage/updated", place, tokenUsage=usage), ended]
        case "turn.failed":
            return [_note("turn/completed", place, turn=turn | {"status": "failed", "error": obj(message, "error")})]
        case "error":
            said = text(message, "message") or ""
            return [_note("error", place, error={"message": said}, willRetry=said.startswith(_RETRY))]
        case "item.started" | "item.updated" | "item.completed" as kind:
            return _item(kind, obj(message, "item"), place, run)
        case _:
            return None


def _usage(message: Obj, name: str) -> Any:
    return obj(message, "usage").get(name)


def _item(kind: str, item: Obj, place: Obj, run: int) -> list[Obj] | None:
    native = text(item, "type")
    if native == "error":
        return [_note("warning", place, message=text(item, "message"))]
    if native == "todo_list":
        return [_note("turn/plan/updated", place, plan=[_step(one) for one in objects(item, "items")])]
    if native not in _ITEMS:
        return None
    if kind == "item.updated":
        return []
    same = {_MEMBERS.get(name, name): value for name, value in item.items()}
    same |= {"id": f"{run}.{text(item, 'id')}", "type": _ITEMS[native]}
    if same.get("status") == "in_progress":
        same["status"] = "inProgress"
    if native == "reasoning":
        same["summary"] = [text(item, "text") or ""]
    if native == "file_change":
        same["changes"] = [one | {"kind": {"type": one.get("kind")}} for one in objects(item, "changes")]
    method = "item/started" if kind == "item.started" else "item/completed"
    return [_note(method, place, item=same)]


def _step(item: Obj) -> Obj:
    return {"step": text(item, "text"), "status": "completed" if truth(item, "completed") else "pending"}


def _note(method: str, place: Obj, **params: Any) -> Obj:
    return {"method": method, "params": place | params}

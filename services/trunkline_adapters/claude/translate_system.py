"""`system` messages by subtype, and the single messages that have no family."""

from typing import Final, Literal

from trunkline_adapters.claude.state import State, fact
from trunkline_adapters.claude.translate_session import commands, init, mode_changed, title_changed
from trunkline_adapters.claude.translate_stream import thinking_tokens
from trunkline_adapters.claude.translate_turn import recover
from trunkline_agentkit.fields import Obj, items, obj, objects, strings, text, truth, whole
from trunkline_agentkit.protocol import Out
from trunkline_wire.session import SessionCompacted, SessionStatus, SessionUpdated
from trunkline_wire.turn import MessageSystem, ToolSummary
from trunkline_wire.work import AuthUpdated, ErrorRaised, HookFired, TaskUpdated, UsageUpdated

Level = Literal["info", "warning", "error"]
TaskStatus = Literal["pending", "running", "completed", "failed", "stopped"]

_TASK_STATUS: Final[dict[str, TaskStatus]] = {
    "pending": "pending",
    "in_progress": "running",
    "running": "running",
    "completed": "completed",
    "failed": "failed",
    "error": "failed",
    "killed": "stopped",
    "stopped": "stopped",
    "cancelled": "stopped",
}
_NOTICES: Final[dict[str, Level]] = {
    "files_persisted": "info",
    "informational": "info",
    "local_command_output": "info",
    "model_refusal_fallback": "warning",
    "model_refusal_no_fallback": "warning",
    "notification": "info",
    "permission_denied": "warning",
}
_LOSSES: Final = frozenset({"mirror_error", "session_writes_lost"})


def system(state: State, message: Obj) -> list[Out] | None:
    """What a `system` message means; None for a subtype that this version does not know."""
    subtype = text(message, "subtype") or ""
    match subtype:
        case "init":
            return init(state, message)
        case "status":
            return _status(state, message)
        case "api_retry":
            return _retry(state, message)
        case "compact_boundary":
            return _compacted(state, message)
        case "task_started" | "task_progress" | "task_updated" | "task_notification":
            return _task(state, subtype, message)
        case "background_tasks_changed":
            return []
        case "hook_started" | "hook_response":
            return _hook(subtype, message)
        case "thinking_tokens":
            return thinking_tokens(state)
        case "session_title_changed":
            return title_changed(state, text(message, "title"))
        case "commands_changed":
            fresh = commands(message)
            state.known.commands = fresh or state.known.commands
            return [fact(SessionUpdated(commands=fresh))] if fresh else []
        case _ if subtype in _NOTICES:
            return _notice(state, subtype, message)
        case _ if subtype in _LOSSES:
            said = text(message, "error") or text(message, "message") or "the agent could not write its own history"
            return [fact(ErrorRaised(code="agent_failed", message=said, details={"kind": subtype}))]
        case _:
            return None


def _status(state: State, message: Obj) -> list[Out]:
    out = mode_changed(state, text(message, "permissionMode"))
    match text(message, "status"):
        case "compacting":
            state.condition = "compacting"
            return [*out, fact(SessionStatus(status="compacting"))]
        case None if state.condition == "compacting":
            state.condition = None
            failed = text(message, "compact_error")
            return [*out, fact(SessionStatus(status=None, reason=failed))]
        case "requesting" if state.condition == "compacting":
            return [*out, *recover(state)]
        case _:
            return out


def _retry(state: State, message: Obj) -> list[Out]:
    state.condition = "retrying"
    status = whole(message, "error_status")
    reason = " ".join(part for part in (text(message, "error"), str(status) if status else None) if part)
    data = SessionStatus(
        status="retrying",
        attempt=whole(message, "attempt"),
        max_attempts=whole(message, "max_retries"),
        after_ms=whole(message, "retry_delay_ms"),
        reason=reason or None,
    )
    return [fact(data)]


def _compacted(state: State, message: Obj) -> list[Out]:
    meta = obj(message, "compact_metadata")
    state.context_used = whole(meta, "post_tokens")
    data = SessionCompacted(
        trigger=text(meta, "trigger") or "unknown",
        before=whole(meta, "pre_tokens"),
        after=whole(meta, "post_tokens"),
        duration_ms=whole(meta, "duration_ms"),
    )
    return [fact(data)]


def _task(state: State, subtype: str, message: Obj) -> list[Out]:
    task = text(message, "task_id")
    if task is None:
        return []
    patch = obj(message, "patch") if subtype == "task_updated" else message
    tool = text(message, "tool_use_id")
    if tool and text(message, "task_type") == "local_agent":
        state.lanes[task] = tool
    status = _TASK_STATUS.get(text(patch, "status") or "", None)
    if subtype == "task_started":
        status = status or "running"
    background = patch.get("is_backgrounded")
    said = text(patch, "description")
    # While it runs, `description` says what it does at the moment; what the task is has been told at its start.
    now = said if subtype == "task_progress" else None
    data = TaskUpdated(
        task=task,
        kind=text(message, "task_type"),
        status=status,
        description=None if now else said,
        summary=text(patch, "summary") or text(patch, "error") or now,
        background=background if isinstance(background, bool) else None,
        usage=patch.get("usage"),
        tool=state.item(tool) if tool else None,
        output_file=text(patch, "output_file"),
    )
    return [fact(data, item=state.item(tool) if tool else None)]


def _hook(subtype: str, message: Obj) -> list[Out]:
    ended = subtype == "hook_response"
    failed = ended and text(message, "outcome") not in (None, "success")
    exit_code = whole(message, "exit_code")
    data = HookFired(
        hook_event=text(message, "hook_event") or "unknown",
        name=text(message, "hook_name"),
        status="failed" if failed or exit_code else "completed" if ended else "started",
        output=text(message, "output") or text(message, "stdout") or text(message, "stderr"),
        exit_code=exit_code,
        hook=text(message, "hook_id"),
    )
    return [fact(data)]


def _notice(state: State, subtype: str, message: Obj) -> list[Out]:
    tool = text(message, "tool_use_id")
    said = next(
        (found for key in ("message", "text", "content", "title", "detail") if (found := text(message, key))), ""
    )
    if subtype == "files_persisted":
        names = [text(one, "filename") or "?" for one in objects(message, "files")]
        said = f"Files kept: {', '.join(names)}" if names else "No files kept"
    elif subtype.startswith("model_refusal"):
        said = said or "The model refused to answer"
    data = MessageSystem(text=said or subtype, level=_NOTICES[subtype], kind=subtype)
    return [fact(data, item=state.item(tool) if tool else None)]


def auth_status(state: State, message: Obj) -> list[Out]:
    authenticating = truth(message, "isAuthenticating")
    error = text(message, "error")
    data = AuthUpdated(authenticating=authenticating, output=strings(items(message, "output")), error=error)
    out = [fact(data)]
    if authenticating:
        state.condition = "authenticating"
        return [*out, fact(SessionStatus(status="authenticating"))]
    return [*out, *recover(state)]


def rate_limited(message: Obj) -> list[Out]:
    return [fact(UsageUpdated(rate_limits=message.get("rate_limit_info")))]


def suggested(message: Obj) -> list[Out]:
    suggestion = text(message, "suggestion")
    return [fact(SessionUpdated(suggestion=suggestion))] if suggestion else []


def summarised(state: State, message: Obj) -> list[Out]:
    tools = [state.item(native) for native in strings(items(message, "preceding_tool_use_ids"))]
    return [fact(ToolSummary(summary=text(message, "summary") or "", tools=tools))]

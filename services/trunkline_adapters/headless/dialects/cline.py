"""`cline --json`: events of the agent (`agent_event`) and of its hooks, team and run. Recorded with 3.0.65.

The turn ends with `run_result`; the `done` before it says the same of the agent's loop, and no more.
"""

from collections.abc import Sequence
from typing import Final

from trunkline_adapters.headless.native import (
    Began,
    Called,
    Ended,
    Noticed,
    Piece,
    Printed,
    Retrying,
    Returned,
    Said,
    Spoke,
    Used,
)
from trunkline_agentkit.fields import Obj, as_obj, number, obj, objects, text, truth, whole
from trunkline_wire import encode
from trunkline_wire.blocks import TextBlock, ThinkingBlock, Usage
from trunkline_wire.turn import Outcome

_HOOKS: Final = frozenset(
    {
        "agent_abort",
        "agent_end",
        "agent_error",
        "agent_resume",
        "prompt_submit",
        "session_shutdown",
        "tool_call",
        "tool_result",
    }
)
_BOOKKEEPING: Final = frozenset({"run_aborted", "run_abort_requested", "team_event", "team_restored"})
_OUTCOMES: Final[dict[str, Outcome]] = {
    "aborted": "interrupted",
    "completed": "success",
    "max_iterations": "max_turns",
}


def read(message: Obj) -> Sequence[Said] | None:
    match text(message, "type"):
        case "agent_event":
            return _event(obj(message, "event"))
        case "hook_event":
            name = text(message, "hookEventName")
            if name == "agent_start":
                # Those with a parent are subagents of a turn that has begun.
                return [Began()] if text(message, "parentAgentId") is None else []
            return [] if name in _HOOKS else None
        case "run_start":
            return [Began(session=text(message, "sessionId"), model=text(message, "modelId"))]
        case "run_result":
            return [_ended(message)]
        case "error":
            return [Noticed(text=text(message, "message") or "error", level="error")]
        case kind:
            return [] if kind in _BOOKKEEPING else None


def _event(event: Obj) -> Sequence[Said] | None:
    match text(event, "type"):
        case "iteration_start" | "iteration_end" | "done":
            return []
        case "content_start":
            return _begun(event)
        case "content_end":
            return _finished(event)
        case "content_update":
            said = text(obj(event, "update"), "chunk")
            return [Printed(id=_id(event), text=said)] if said is not None else []
        case "usage":
            return [Used(usage=_usage(event, "total"))]
        case "notice":
            return _notice(event)
        case "error":
            said = text(event, "error") or text(obj(event, "error"), "message") or "error"
            return [Noticed(text=said, level="warning" if truth(event, "recoverable") else "error")]
        case _:
            return None


def _begun(event: Obj) -> Sequence[Said] | None:
    match text(event, "contentType"):
        case "text":
            return [Piece(text=text(event, "text") or "")]
        case "reasoning":
            return [Piece(text=text(event, "reasoning") or "", kind="thinking")]
        case "tool":
            name = text(event, "toolName") or "unknown"
            return [Called(id=_id(event), name=name, input=event.get("input"))]
        case _:
            return None


def _finished(event: Obj) -> Sequence[Said] | None:
    match text(event, "contentType"):
        case "text":
            return [Spoke(content=(TextBlock(text=text(event, "text") or ""),))]
        case "reasoning":
            return [Spoke(content=(ThinkingBlock(text=text(event, "reasoning") or ""),))]
        case "tool":
            return [_returned(event)]
        case _:
            return None


def _id(event: Obj) -> str:
    return text(event, "toolCallId") or text(event, "toolName") or "unknown"


def _returned(event: Obj) -> Returned:
    """A tool that does several things at once tells the result of each."""
    output = event.get("output")
    parts = objects(event, "output") or [as_obj(output)]
    failure = text(event, "error") or text(as_obj(output), "error")
    failed = failure is not None or any(part.get("success") is False for part in parts)
    said = [text(part, "result") or text(part, "error") for part in parts]
    return Returned(
        id=_id(event),
        status="failed" if failed else "completed",
        said=failure or "\n".join(one for one in said if one) or _flat(output),
        duration_ms=whole(event, "durationMs"),
        structured=output if isinstance(output, dict | list) else None,
    )


def _flat(output: object) -> str | None:
    if output is None or isinstance(output, str):
        return output
    return encode(output).decode()


def _notice(event: Obj) -> Sequence[Said]:
    details = obj(event, "metadata")
    if text(details, "kind") == "provider_error_retry":
        return [
            Retrying(
                attempt=whole(details, "attempt"),
                most=whole(details, "maxRetries"),
                after_ms=whole(details, "delayMs"),
                reason=text(details, "providerError"),
            )
        ]
    return [Noticed(text=text(event, "message") or "notice")]


def _ended(message: Obj) -> Ended:
    usage, said = obj(message, "usage"), text(message, "text")
    outcome = _OUTCOMES.get(text(message, "finishReason") or "", "error")
    return Ended(
        outcome=outcome,
        error=(said or "the agent says no more than that it failed") if outcome == "error" else None,
        usage=_usage(usage) if usage else None,
        cost_usd=number(usage, "totalCost"),
        duration_ms=whole(message, "durationMs"),
        stop_reason=text(message, "finishReason"),
        result=said if outcome == "success" else None,
        steps=whole(message, "iterations"),
    )


def _usage(counts: Obj, prefix: str = "") -> Usage:
    """Tokens in, which Cline counts with what was read from the cache, and out."""

    def count(name: str) -> int:
        return whole(counts, prefix + name if prefix else name[0].lower() + name[1:]) or 0

    read_from_cache = count("CacheReadTokens")
    return Usage(
        input=max(count("InputTokens") - read_from_cache, 0),
        output=count("OutputTokens"),
        cache_read=read_from_cache,
        cache_write=count("CacheWriteTokens"),
    )

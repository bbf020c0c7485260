"""`--output-format stream-json` of Gemini CLI: `init`, `message`, `tool_use`, `tool_result`, `error`, `result`.

Recorded with 0.61.0. Thoughts are not told, and the answer comes in pieces that nothing ends.
"""

from collections.abc import Sequence
from typing import Final

from trunkline_adapters.headless.native import Began, Called, Ended, Noticed, Piece, Returned, Said, Spoke
from trunkline_agentkit.fields import Obj, as_obj, obj, text, truth, whole
from trunkline_wire.blocks import TextBlock, Usage
from trunkline_wire.turn import ModelUsage, Outcome

_LIMIT: Final = "FatalTurnLimitedError"


def read(message: Obj) -> Sequence[Said] | None:
    match text(message, "type"):
        case "init":
            return [Began(session=text(message, "session_id"), model=text(message, "model"))]
        case "message":
            return _message(message)
        case "tool_use":
            name = text(message, "tool_name") or "unknown"
            return [Called(id=text(message, "tool_id") or name, name=name, input=message.get("parameters"))]
        case "tool_result":
            failure = obj(message, "error")
            return [
                Returned(
                    id=text(message, "tool_id") or "",
                    status="completed" if text(message, "status") == "success" else "failed",
                    said=text(failure, "message") or text(message, "output"),
                )
            ]
        case "error":
            level = "error" if text(message, "severity") == "error" else "warning"
            return [Noticed(text=text(message, "message") or "error", level=level)]
        case "result":
            return [_ended(message)]
        case _:
            return None


def _message(message: Obj) -> Sequence[Said]:
    said = text(message, "content")
    if text(message, "role") == "user" or said is None:
        return []
    return [Piece(text=said)] if truth(message, "delta") else [Spoke(content=(TextBlock(text=said),))]


def _ended(message: Obj) -> Ended:
    stats, failure = obj(message, "stats"), obj(message, "error")
    good = text(message, "status") == "success"
    outcome: Outcome = "success" if good else "max_turns" if text(failure, "type") == _LIMIT else "error"
    models = {name: as_obj(value) for name, value in obj(stats, "models").items()}
    return Ended(
        outcome=outcome,
        error=None if good else text(failure, "message") or "the agent says no more than that it failed",
        usage=_usage(stats),
        duration_ms=whole(stats, "duration_ms"),
        models=tuple(ModelUsage(model=name, usage=_usage(used) or Usage()) for name, used in sorted(models.items())),
    )


def _usage(counts: Obj) -> Usage | None:
    """`input_tokens` are with what was read from the cache, `input` without."""
    if not counts:
        return None
    cached = whole(counts, "cached") or 0
    given = whole(counts, "input")
    return Usage(
        input=max((whole(counts, "input_tokens") or 0) - cached, 0) if given is None else given,
        output=whole(counts, "output_tokens") or 0,
        cache_read=cached,
    )

"""`stream-json` as Claude Code has made it a common form: `system/init`, `assistant`, `user`, `result`, `stream_event`.

Cursor's `tool_call` and `thinking` are of it too. Recorded with Qwen Code 0.24.4; what Amp and Cursor print is known from their
documentation (https://ampcode.com/manual/appendix, https://cursor.com/docs/cli/reference/output-format).
"""

from collections.abc import Sequence
from typing import Any, Final

from trunkline_adapters.headless.native import Began, Called, Ended, Opened, Piece, Returned, Said, Spoke
from trunkline_agentkit.fields import Obj, as_obj, items, number, obj, objects, strings, text, truth, whole
from trunkline_agentkit.prompts import json_block
from trunkline_wire import encode
from trunkline_wire.blocks import Block, TextBlock, ThinkingBlock, Usage
from trunkline_wire.session import McpServer
from trunkline_wire.turn import Outcome

_STREAMED: Final = frozenset(
    {"content_block_start", "content_block_stop", "goal_state", "message_delta", "message_stop", "ping"}
)
"""Kinds of `stream_event` that say nothing which a later message does not say again."""
_SILENT: Final = frozenset({"status", "session_start"})
_OUTCOMES: Final[dict[str, Outcome]] = {
    "error_max_budget_usd": "max_budget",
    "error_max_structured_output_retries": "max_structured_output",
    "error_max_turns": "max_turns",
    "success": "success",
}
_CALL: Final = "ToolCall"


def read(message: Obj) -> Sequence[Said] | None:
    lane = text(message, "parent_tool_use_id")
    match text(message, "type"):
        case "system":
            return _system(message)
        case "assistant":
            return _assistant(obj(message, "message"), lane)
        case "user":
            return _user(message)
        case "stream_event":
            return _streamed(obj(message, "event"), lane)
        case "thinking":
            said = text(message, "text")
            return [] if said is None else [Piece(text=said, kind="thinking")]
        case "tool_call":
            return _tool_call(message)
        case "result":
            return [_ended(message)]
        case _:
            return None


def _system(message: Obj) -> Sequence[Said] | None:
    kind = text(message, "subtype")
    if kind != "init":
        return [] if kind in _SILENT else None
    return [
        Began(
            session=text(message, "session_id"),
            model=text(message, "model"),
            mode=text(message, "permissionMode") or text(message, "permission_mode"),
            version=text(message, "qwen_code_version") or text(message, "version"),
            tools=tuple(strings(items(message, "tools"))),
            mcp_servers=tuple(
                McpServer(name=text(one, "name") or "", status=text(one, "status"))
                for one in objects(message, "mcp_servers")
            ),
        )
    ]


def _assistant(native: Obj, lane: str | None) -> Sequence[Said]:
    out: list[Said] = []
    blocks: list[Block] = []
    calls: list[Said] = []
    for block in _parts(native.get("content")):
        match text(block, "type"):
            case "tool_use":
                name = text(block, "name") or "unknown"
                calls.append(Called(id=text(block, "id") or name, name=name, input=block.get("input"), lane=lane))
            case "text":
                blocks.append(TextBlock(text=text(block, "text") or ""))
            case "thinking":
                blocks.append(ThinkingBlock(text=text(block, "thinking") or "", signature=text(block, "signature")))
            case _:
                blocks.append(json_block(block))
    if blocks:
        out.append(
            Spoke(
                content=tuple(blocks),
                message=text(native, "id"),
                lane=lane,
                model=text(native, "model"),
                stop_reason=text(native, "stop_reason"),
                usage=_usage(obj(native, "usage")),
            )
        )
    return [*out, *calls]


def _user(message: Obj) -> Sequence[Said]:
    """What tools have returned; the prompt comes back too, and is known."""
    return [
        Returned(
            id=text(block, "tool_use_id") or "",
            status="failed" if truth(block, "is_error") else "completed",
            said=_flat(block.get("content")),
        )
        for block in _parts(obj(message, "message").get("content"))
        if text(block, "type") == "tool_result"
    ]


def _parts(content: Any) -> list[Obj]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [as_obj(one) for one in items({"content": content}, "content")]


def _flat(content: Any) -> str:
    return "\n".join(text(part, "text") or "" for part in _parts(content))


def _streamed(event: Obj, lane: str | None) -> Sequence[Said] | None:
    match text(event, "type"):
        case "message_start":
            return [Opened(message=text(obj(event, "message"), "id") or "message", lane=lane)]
        case "content_block_delta":
            delta = obj(event, "delta")
            if (said := text(delta, "text")) is not None:
                return [Piece(text=said, lane=lane)]
            if (said := text(delta, "thinking")) is not None:
                return [Piece(text=said, kind="thinking", lane=lane)]
            return []
        case kind:
            return [] if kind in _STREAMED else None


def _tool_call(message: Obj) -> Sequence[Said] | None:
    """Cursor's: the tool stands as the name of the only member, `shellToolCall`, or in `function`."""
    call, id = obj(message, "tool_call"), text(message, "call_id") or ""
    name = next((key for key in call if key.endswith(_CALL) or key == "function"), "unknown")
    body = obj(call, name)
    match text(message, "subtype"):
        case "started":
            shown = text(body, "name") or name.removesuffix(_CALL)
            return [Called(id=id, name=shown, input=body.get("args", body.get("arguments")))]
        case "completed":
            return [_returned(id, obj(body, "result"))]
        case _:
            return None


def _returned(id: str, result: Obj) -> Returned:
    good, refused = obj(result, "success"), obj(result, "rejected")
    code = whole(good, "exitCode")
    output = [text(good, name) for name in ("stdout", "stderr", "content")]
    said = "\n".join(one for one in output if one) or encode(next(iter(result.values()), None)).decode()
    status = "completed" if "success" in result and not code else "rejected" if refused else "failed"
    return Returned(id=id, status=status, said=said, exit_code=code, structured=result or None)


def _ended(message: Obj) -> Ended:
    good = text(message, "subtype") == "success" and not truth(message, "is_error")
    outcome = _OUTCOMES.get(text(message, "subtype") or "", "error")
    said = text(message, "result")
    reported = text(obj(message, "error"), "message") or text(message, "error")
    return Ended(
        outcome=outcome if good or outcome != "success" else "error",
        error=None if good else reported or said or text(message, "subtype"),
        usage=_usage(obj(message, "usage")),
        total_cost_usd=number(message, "total_cost_usd"),
        duration_ms=whole(message, "duration_ms"),
        api_duration_ms=whole(message, "duration_api_ms"),
        stop_reason=text(message, "stop_reason"),
        result=said if good else None,
        steps=whole(message, "num_turns"),
    )


def _usage(native: Obj) -> Usage | None:
    """Some count what was read from the cache as input too: then input and output are the total."""
    if not native:
        return None
    given, output = whole(native, "input_tokens") or 0, whole(native, "output_tokens") or 0
    cached = whole(native, "cache_read_input_tokens") or 0
    within = cached > 0 and whole(native, "total_tokens") == given + output and cached <= given
    return Usage(
        input=given - cached if within else given,
        output=output,
        cache_read=cached,
        cache_write=whole(native, "cache_creation_input_tokens") or 0,
    )

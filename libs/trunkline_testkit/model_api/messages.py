"""The Anthropic Messages API: `POST /v1/messages`, read and answered. Pure."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, assert_never

from trunkline_testkit.model_api.answer import Block, Failure, Message, Text, Thinking, ToolUse
from trunkline_testkit.model_api.conversation import (
    Conversation,
    Said,
    Tool,
    ToolResult,
    conversation_of,
    dicts,
    parts_of,
    texts_of,
)
from trunkline_testkit.model_api.steps import Identity, Step, data, partial_json, text_steps

if TYPE_CHECKING:
    from collections.abc import Iterator

SIGNATURE = "c2NyaXB0ZWQ="

_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def read(body: dict[str, Any]) -> Conversation:
    """The conversation in a request body."""
    form = (body.get("output_config") or {}).get("format") or {}
    return conversation_of(
        [_said(message) for message in dicts(body.get("messages")) if message.get("role") in {"user", "assistant"}],
        tuple(Tool(str(tool.get("name")), tool.get("input_schema") or {}) for tool in dicts(body.get("tools"))),
        model=body.get("model"),
        system="\n".join(texts_of(body.get("system"))),
        schema=form.get("schema") if form.get("type") == "json_schema" else None,
        plan_file=_plan_file(body),
    )


def error(failure: Failure) -> dict[str, Any]:
    """The body of an HTTP error."""
    kind = _ERROR_TYPES.get(failure.status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": failure.text}}


def events(message: Message, identity: Identity) -> Iterator[Step]:
    """The whole answer, event by event."""
    started = whole(Message(()), identity) | {"stop_reason": None, "usage": _usage(identity, 1)}
    yield _event("message_start", message=started)
    yield _event("ping")
    for index, block in enumerate(message.blocks):
        yield _event("content_block_start", index=index, content_block=_opened(block, identity, index))
        yield from _deltas(block, index)
        yield _event("content_block_stop", index=index)
    delta = {"stop_reason": _stop_reason(message), "stop_sequence": None}
    yield _event("message_delta", delta=delta, usage=_usage(identity, message.tokens))
    yield _event("message_stop")


def whole(message: Message, identity: Identity) -> dict[str, Any]:
    """The message as a request without `stream` gets it."""
    return {
        "id": identity.id("msg"),
        "type": "message",
        "role": "assistant",
        "model": identity.model,
        "content": [_complete(block, identity, index) for index, block in enumerate(message.blocks)],
        "stop_reason": _stop_reason(message),
        "stop_sequence": None,
        "usage": _usage(identity, message.tokens),
    }


def _deltas(block: Block, index: int) -> Iterator[Step]:
    match block:
        case Text():
            for step in text_steps(block):
                yield _delta(index, type="text_delta", text=step) if isinstance(step, str) else step
        case Thinking():
            for piece in block.pieces:
                yield _delta(index, type="thinking_delta", thinking=piece)
            yield _delta(index, type="signature_delta", signature=SIGNATURE)
        case ToolUse():
            for portion in partial_json(block.input):
                yield _delta(index, type="input_json_delta", partial_json=portion)
        case _:
            assert_never(block)


def _opened(block: Block, identity: Identity, index: int) -> dict[str, Any]:
    match block:
        case Text():
            return {"type": "text", "text": ""}
        case Thinking():
            return {"type": "thinking", "thinking": "", "signature": ""}
        case ToolUse():
            return {"type": "tool_use", "id": identity.id("toolu", index), "name": block.name, "input": {}}
        case _:
            assert_never(block)


def _complete(block: Block, identity: Identity, index: int) -> dict[str, Any]:
    opened = _opened(block, identity, index)
    match block:
        case Text():
            return opened | {"text": "".join(block.pieces)}
        case Thinking():
            return opened | {"thinking": "".join(block.pieces), "signature": SIGNATURE}
        case ToolUse():
            return opened | {"input": block.input}
        case _:
            assert_never(block)


def _stop_reason(message: Message) -> str:
    return "tool_use" if message.calls_tools else "end_turn"


def _usage(identity: Identity, output_tokens: int) -> dict[str, Any]:
    return {
        "input_tokens": identity.input_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": output_tokens,
        "service_tier": "standard",
    }


def _delta(index: int, **delta: str) -> bytes:
    return _event("content_block_delta", index=index, delta=delta)


def _event(kind: str, **fields: Any) -> bytes:
    return data({"type": kind, **fields}, kind)


def _said(message: dict[str, Any]) -> Said:
    blocks = parts_of(message.get("content"))
    return Said(
        "user" if message["role"] == "user" else "assistant",
        texts_of(blocks),
        tuple(str(block.get("name")) for block in blocks if block.get("type") == "tool_use"),
        tuple(
            ToolResult(
                str(block.get("tool_use_id")), "\n".join(texts_of(block.get("content"))), bool(block.get("is_error"))
            )
            for block in blocks
            if block.get("type") == "tool_result"
        ),
    )


def _plan_file(body: dict[str, Any]) -> str | None:
    if "ExitPlanMode" not in json.dumps(body.get("tools", "")):
        return None
    match = re.search(
        r"/[^\s\"'`\\]+/\.claude/plans/[\w.-]+\.md", json.dumps([body.get("messages"), body.get("system")])
    )
    return match[0] if match else None

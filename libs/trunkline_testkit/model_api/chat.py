"""The OpenAI Chat Completions API: `POST /v1/chat/completions`, read and answered. Pure.

Thoughts are streamed as `reasoning_content`, which is not OpenAI's: those who serve thinking models in this API write it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, assert_never

from trunkline_testkit.model_api.answer import Block, Message, Text, Thinking, ToolUse
from trunkline_testkit.model_api.conversation import (
    Conversation,
    Said,
    Tool,
    ToolResult,
    conversation_of,
    dicts,
    texts_of,
)
from trunkline_testkit.model_api.responses import CREATED, error
from trunkline_testkit.model_api.steps import Identity, Step, data, partial_json, text_steps

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["error", "events", "read", "whole"]

DONE = b"data: [DONE]\n\n"


def read(body: dict[str, Any]) -> Conversation:
    """The conversation in a request body."""
    messages = dicts(body.get("messages"))
    form = body.get("response_format") or {}
    return conversation_of(
        [_said(message) for message in messages if message.get("role") in {"user", "assistant", "tool"}],
        tuple(
            Tool(str(tool["function"].get("name")), tool["function"].get("parameters") or {})
            for tool in dicts(body.get("tools"))
            if isinstance(tool.get("function"), dict)
        ),
        model=body.get("model"),
        system="\n".join(
            text
            for message in messages
            if message.get("role") in {"system", "developer"}
            for text in texts_of(message.get("content"))
        ),
        schema=(form.get("json_schema") or {}).get("schema") if form.get("type") == "json_schema" else None,
    )


def events(message: Message, identity: Identity) -> Iterator[Step]:
    """The whole answer, chunk by chunk; the last one before the end tells the usage."""

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        return data(_completion(identity, delta=delta, finish=finish))

    yield chunk({"role": "assistant", "content": ""})
    calls = 0
    for index, block in enumerate(message.blocks):
        match block:
            case Text():
                for step in text_steps(block):
                    yield chunk({"content": step}) if isinstance(step, str) else step
            case Thinking():
                for piece in block.pieces:
                    yield chunk({"reasoning_content": piece})
            case ToolUse():
                begun = _call(block, identity, index) | {"index": calls}
                begun["function"] = {"name": block.name, "arguments": ""}
                yield chunk({"tool_calls": [begun]})
                for portion in partial_json(block.input):
                    yield chunk({"tool_calls": [{"index": calls, "function": {"arguments": portion}}]})
                calls += 1
            case _:
                assert_never(block)
    yield chunk({}, _finish(message))
    yield data(_completion(identity) | {"choices": [], "usage": _usage(message, identity)})
    yield DONE


def whole(message: Message, identity: Identity) -> dict[str, Any]:
    """The completion as a request without `stream` gets it."""
    said: dict[str, Any] = {"role": "assistant", "content": _joined(message, Text) or None}
    if thought := _joined(message, Thinking):
        said["reasoning_content"] = thought
    calls = [_call(block, identity, index) for index, block in enumerate(message.blocks) if isinstance(block, ToolUse)]
    if calls:
        said["tool_calls"] = calls
    choice = {"index": 0, "message": said, "logprobs": None, "finish_reason": _finish(message)}
    return _completion(identity) | {
        "object": "chat.completion",
        "choices": [choice],
        "usage": _usage(message, identity),
    }


def _completion(
    identity: Identity, *, delta: dict[str, Any] | None = None, finish: str | None = None
) -> dict[str, Any]:
    return {
        "id": identity.id("chatcmpl"),
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": identity.model,
        "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}],
    }


def _call(block: ToolUse, identity: Identity, index: int) -> dict[str, Any]:
    arguments = block.input if isinstance(block.input, str) else json.dumps(block.input)
    return {
        "id": identity.id("call", index),
        "type": "function",
        "function": {"name": block.name, "arguments": arguments},
    }


def _joined(message: Message, kind: type[Text | Thinking]) -> str:
    def pieces(block: Block) -> tuple[str, ...]:
        return () if isinstance(block, ToolUse) or not isinstance(block, kind) else block.pieces

    return "".join(piece for block in message.blocks for piece in pieces(block))


def _finish(message: Message) -> str:
    return "tool_calls" if message.calls_tools else "stop"


def _usage(message: Message, identity: Identity) -> dict[str, Any]:
    return {
        "prompt_tokens": identity.input_tokens,
        "completion_tokens": message.tokens,
        "total_tokens": identity.input_tokens + message.tokens,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


def _said(message: dict[str, Any]) -> Said:
    texts = texts_of(message.get("content"))
    if message["role"] == "tool":
        result = ToolResult(str(message.get("tool_call_id")), "\n".join(texts), is_error=False)
        return Said("user", results=(result,))
    calls = [call.get("function") for call in dicts(message.get("tool_calls"))]
    names = tuple(str(function.get("name")) for function in dicts(calls))
    return Said("user" if message["role"] == "user" else "assistant", texts, names)

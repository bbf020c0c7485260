"""The OpenAI Responses API: `POST /v1/responses`, read and answered. Pure."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, assert_never

from trunkline_testkit.model_api.answer import Block, Failure, Message, Text, Thinking, ToolUse
from trunkline_testkit.model_api.conversation import (
    Conversation,
    Said,
    Tool,
    ToolResult,
    conversation_of,
    dicts,
    texts_of,
)
from trunkline_testkit.model_api.steps import Identity, Step, data, partial_json, text_steps

if TYPE_CHECKING:
    from collections.abc import Iterator

CREATED = 1_700_000_000
"""The time of every answer: equal requests get equal answers."""

_CALLS = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
_TEXT_TYPES = ("input_text", "output_text", "text")
_ERROR_TYPES = {
    401: ("invalid_request_error", "invalid_api_key"),
    429: ("requests", "rate_limit_exceeded"),
    500: ("server_error", None),
    503: ("server_error", None),
    529: ("server_error", None),
}


def read(body: dict[str, Any]) -> Conversation:
    """The conversation in a request body."""
    items = body.get("input")
    said = [Said("user", (items,))] if isinstance(items, str) else [_said(item) for item in dicts(items)]
    system = [str(body.get("instructions") or "")]
    system += [
        text
        for item in dicts(items)
        if item.get("role") in {"system", "developer"}
        for text in texts_of(item.get("content"), *_TEXT_TYPES)
    ]
    form = (body.get("text") or {}).get("format") or {}
    return conversation_of(
        [message for message in said if message is not None],
        tuple(_tools(body.get("tools"))),
        model=body.get("model"),
        system="\n".join(filter(None, system)),
        schema=form.get("schema") if form.get("type") == "json_schema" else None,
    )


def error(failure: Failure) -> dict[str, Any]:
    """The body of an HTTP error, here and in Chat Completions."""
    kind, code = _ERROR_TYPES.get(failure.status, ("invalid_request_error", None))
    return {"error": {"message": failure.text, "type": kind, "param": None, "code": code}}


def events(message: Message, identity: Identity) -> Iterator[Step]:
    """The whole answer, event by event."""
    numbers = count()

    def event(kind: str, **fields: Any) -> bytes:
        return data({"type": kind, "sequence_number": next(numbers), **fields}, kind)

    begun = _response(message, identity, "in_progress", [])
    yield event("response.created", response=begun)
    yield event("response.in_progress", response=begun)
    for index, block in enumerate(message.blocks):
        done = _item(block, identity, index)
        place = {"item_id": done["id"], "output_index": index}
        yield event("response.output_item.added", output_index=index, item=_opened(done))
        match block:
            case Text():
                part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
                yield event("response.content_part.added", **place, content_index=0, part=part)
                for step in text_steps(block):
                    yield (
                        event("response.output_text.delta", **place, content_index=0, delta=step, logprobs=[])
                        if isinstance(step, str)
                        else step
                    )
                text = "".join(block.pieces)
                yield event("response.output_text.done", **place, content_index=0, text=text, logprobs=[])
                yield event("response.content_part.done", **place, content_index=0, part=part | {"text": text})
            case Thinking():
                part = {"type": "summary_text", "text": ""}
                yield event("response.reasoning_summary_part.added", **place, summary_index=0, part=part)
                for piece in block.pieces:
                    yield event("response.reasoning_summary_text.delta", **place, summary_index=0, delta=piece)
                text = "".join(block.pieces)
                yield event("response.reasoning_summary_text.done", **place, summary_index=0, text=text)
                yield event(
                    "response.reasoning_summary_part.done", **place, summary_index=0, part=part | {"text": text}
                )
            case ToolUse():
                named = "custom_tool_call_input" if isinstance(block.input, str) else "function_call_arguments"
                for portion in partial_json(block.input):
                    yield event(f"response.{named}.delta", **place, delta=portion)
                whole_input = "".join(partial_json(block.input))
                member = "input" if isinstance(block.input, str) else "arguments"
                yield event(f"response.{named}.done", **place, **{member: whole_input})
            case _:
                assert_never(block)
        yield event("response.output_item.done", output_index=index, item=done)
    yield event("response.completed", response=whole(message, identity))


def whole(message: Message, identity: Identity) -> dict[str, Any]:
    """The response as a request without `stream` gets it."""
    items = [_item(block, identity, index) for index, block in enumerate(message.blocks)]
    return _response(message, identity, "completed", items)


def _response(message: Message, identity: Identity, status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
    usage = {
        "input_tokens": identity.input_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": message.tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": identity.input_tokens + message.tokens,
    }
    return {
        "id": identity.id("resp"),
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "model": identity.model,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage if status == "completed" else None,
    }


def _item(block: Block, identity: Identity, index: int) -> dict[str, Any]:
    match block:
        case Text():
            text = {"type": "output_text", "text": "".join(block.pieces), "annotations": [], "logprobs": []}
            return {
                "id": identity.id("msg", index),
                "type": "message",
                "status": "completed",
                "role": "assistant",
                "content": [text],
            }
        case Thinking():
            summary = [{"type": "summary_text", "text": "".join(block.pieces)}]
            return {"id": identity.id("rs", index), "type": "reasoning", "summary": summary}
        case ToolUse():
            custom = isinstance(block.input, str)
            inside = {} if block.namespace is None else {"namespace": block.namespace}
            return inside | {
                "id": identity.id("ctc" if custom else "fc", index),
                "type": "custom_tool_call" if custom else "function_call",
                "status": "completed",
                "call_id": identity.id("call", index),
                "name": block.name,
                "input" if custom else "arguments": "".join(partial_json(block.input)),
            }
        case _:
            assert_never(block)


def _opened(item: dict[str, Any]) -> dict[str, Any]:
    """An item before anything of it was said."""
    empty = {"status": "in_progress", "content": [], "summary": [], "arguments": "", "input": ""}
    return {name: empty.get(name, value) for name, value in item.items()}


def _said(item: dict[str, Any]) -> Said | None:
    kind = item.get("type", "message")
    if kind == "message" and item.get("role") in {"user", "assistant"}:
        role = "user" if item["role"] == "user" else "assistant"
        return Said(role, texts_of(item.get("content"), *_TEXT_TYPES))
    if kind in _CALLS:
        return Said("assistant", calls=(str(item.get("name")),))
    if kind in _CALLS.values():
        output = item.get("output")
        text = output if isinstance(output, str) else "\n".join(texts_of(output, *_TEXT_TYPES))
        return Said("user", results=(ToolResult(str(item.get("call_id")), text, is_error=False),))
    return None


def _tools(offered: Any, namespace: str | None = None) -> Iterator[Tool]:
    """Functions, those of namespaces too, and tools that take free text; what the API itself would run is left out."""
    for tool in dicts(offered):
        match tool.get("type"):
            case "function":
                yield Tool(str(tool.get("name")), tool.get("parameters") or {}, namespace)
            case "custom":
                yield Tool(str(tool.get("name")), None, namespace)
            case "namespace":
                yield from _tools(tool.get("tools"), str(tool.get("name")))
            case _:
                pass

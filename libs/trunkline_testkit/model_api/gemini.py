"""The Gemini API: `POST /v1beta/models/<model>:generateContent` and `:streamGenerateContent?alt=sse`. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, assert_never

from trunkline_testkit.model_api.answer import Block, Failure, Message, Text, Thinking, ToolUse
from trunkline_testkit.model_api.conversation import Conversation, Said, Tool, ToolResult, conversation_of, dicts
from trunkline_testkit.model_api.steps import Identity, Step, data, text_steps

if TYPE_CHECKING:
    from collections.abc import Iterator

_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}


def read(body: dict[str, Any]) -> Conversation:
    """The conversation in a request body. The model is in the path: the server puts it in as `model`."""
    config = body.get("generationConfig") or {}
    mimed = config.get("responseMimeType") == "application/json"
    return conversation_of(
        [_said(content) for content in dicts(body.get("contents"))],
        tuple(
            Tool(str(function.get("name")), function.get("parametersJsonSchema") or function.get("parameters") or {})
            for tool in dicts(body.get("tools"))
            for function in dicts(tool.get("functionDeclarations"))
        ),
        model=body.get("model"),
        system="\n".join(_texts(dicts((body.get("systemInstruction") or {}).get("parts")))),
        schema=(config.get("responseJsonSchema") or config.get("responseSchema") or {}) if mimed else None,
    )


def error(failure: Failure) -> dict[str, Any]:
    """The body of an HTTP error."""
    status = _STATUSES.get(failure.status, "UNKNOWN")
    return {"error": {"code": failure.status, "message": failure.text, "status": status}}


def events(message: Message, identity: Identity) -> Iterator[Step]:
    """The whole answer, chunk by chunk; each is a response with the next parts."""
    for index, block in enumerate(message.blocks):
        match block:
            case Text():
                for step in text_steps(block):
                    yield data(_response(identity, [{"text": step}])) if isinstance(step, str) else step
            case Thinking():
                for piece in block.pieces:
                    yield data(_response(identity, [{"text": piece, "thought": True}]))
            case ToolUse():
                yield data(_response(identity, [_part(block, identity, index)]))
            case _:
                assert_never(block)
    yield data(_response(identity, [{"text": ""}], message))


def whole(message: Message, identity: Identity) -> dict[str, Any]:
    """The response of `generateContent`."""
    parts = [_part(block, identity, index) for index, block in enumerate(message.blocks)]
    return _response(identity, parts, message)


def _response(identity: Identity, parts: list[dict[str, Any]], finished: Message | None = None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    usage = {"promptTokenCount": identity.input_tokens, "totalTokenCount": identity.input_tokens}
    if finished is not None:
        candidate["finishReason"] = "STOP"
        usage |= {
            "candidatesTokenCount": finished.tokens,
            "totalTokenCount": identity.input_tokens + finished.tokens,
        }
    return {
        "candidates": [candidate],
        "usageMetadata": usage,
        "modelVersion": identity.model,
        "responseId": identity.id("resp"),
    }


def _part(block: Block, identity: Identity, index: int) -> dict[str, Any]:
    match block:
        case Text():
            return {"text": "".join(block.pieces)}
        case Thinking():
            return {"text": "".join(block.pieces), "thought": True}
        case ToolUse():
            return {"functionCall": {"id": identity.id("fc", index), "name": block.name, "args": block.input}}
        case _:
            assert_never(block)


def _said(content: dict[str, Any]) -> Said:
    parts = dicts(content.get("parts"))
    calls = dicts([part.get("functionCall") for part in parts])
    responses = dicts([part.get("functionResponse") for part in parts])
    return Said(
        "assistant" if content.get("role") == "model" else "user",
        tuple(_texts(parts)),
        tuple(str(call.get("name")) for call in calls),
        tuple(_result(response) for response in responses),
    )


def _texts(parts: list[dict[str, Any]]) -> list[str]:
    return [str(part["text"]) for part in parts if "text" in part and not part.get("thought")]


def _result(response: dict[str, Any]) -> ToolResult:
    """What a function gave: `output`, or `error`, by the API's advice; anything else as JSON."""
    told = response.get("response") or {}
    text = told.get("output", told.get("error"))
    return ToolResult(
        str(response.get("id")), text if isinstance(text, str) else json.dumps(told), is_error="error" in told
    )

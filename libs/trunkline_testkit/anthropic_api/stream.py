"""From a message to the server-sent events of the Messages API. Pure: waiting and cutting are data for the server."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, assert_never

from trunkline_testkit.anthropic_api.scenarios import Block, Message, Text, Thinking, ToolUse

if TYPE_CHECKING:
    from collections.abc import Iterator

SIGNATURE = "c2NyaXB0ZWQ="


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Hold:
    """Wait for a release."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Break the connection."""


Step = bytes | Pause | Hold | Cut


@dataclass(frozen=True, slots=True)
class Identity:
    """What a message's ids are made of; equal requests get equal ids, as a retry should."""

    model: str
    key: str
    input_tokens: int

    @property
    def message(self) -> str:
        return f"msg_{self._digest()}"

    def tool_use(self, index: int) -> str:
        return f"toolu_{self._digest(str(index))}"

    def _digest(self, more: str = "") -> str:
        return hashlib.sha256(f"{self.key}/{more}".encode()).hexdigest()[:24]


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
    yield _event("message_delta", delta=delta, usage=_usage(identity, _output_tokens(message)))
    yield _event("message_stop")


def whole(message: Message, identity: Identity) -> dict[str, Any]:
    """The message as a request without `stream` gets it."""
    return {
        "id": identity.message,
        "type": "message",
        "role": "assistant",
        "model": identity.model,
        "content": [_complete(block, identity, index) for index, block in enumerate(message.blocks)],
        "stop_reason": _stop_reason(message),
        "stop_sequence": None,
        "usage": _usage(identity, _output_tokens(message)),
    }


def _deltas(block: Block, index: int) -> Iterator[Step]:
    match block:
        case Text():
            for count, piece in enumerate(block.pieces):
                if block.hold_after == count:
                    yield Hold()
                if block.cut_after == count:
                    yield Cut()
                if count and block.delay:
                    yield Pause(block.delay)
                yield _delta(index, type="text_delta", text=piece)
        case Thinking():
            for piece in block.pieces:
                yield _delta(index, type="thinking_delta", thinking=piece)
            yield _delta(index, type="signature_delta", signature=SIGNATURE)
        case ToolUse():
            encoded = json.dumps(block.input)
            for start in range(0, len(encoded), 40):
                yield _delta(index, type="input_json_delta", partial_json=encoded[start : start + 40])
        case _:
            assert_never(block)


def _opened(block: Block, identity: Identity, index: int) -> dict[str, Any]:
    match block:
        case Text():
            return {"type": "text", "text": ""}
        case Thinking():
            return {"type": "thinking", "thinking": "", "signature": ""}
        case ToolUse():
            return {"type": "tool_use", "id": identity.tool_use(index), "name": block.name, "input": {}}
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
    return "tool_use" if any(isinstance(block, ToolUse) for block in message.blocks) else "end_turn"


def _output_tokens(message: Message) -> int:
    return sum(1 if isinstance(block, ToolUse) else len(block.pieces) for block in message.blocks)


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
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()

"""What the model says: pieces while it writes (`stream_event`), and each finished block (`assistant`)."""

from typing import Final

from trunkline_adapters.claude.content import block_of
from trunkline_adapters.claude.errors import api_error
from trunkline_adapters.claude.native import SYNTHETIC_MODEL
from trunkline_adapters.claude.state import State, Stream, fact, passing
from trunkline_adapters.claude.translate_tools import completed, started
from trunkline_adapters.claude.translate_turn import begin, recover
from trunkline_adapters.claude.usage import context_size_of, message_usage
from trunkline_agentkit.fields import Obj, as_obj, items, obj, strings, text, truth, whole
from trunkline_agentkit.protocol import ItemEnd, Out, Piece
from trunkline_wire.blocks import Block, ThinkingBlock, ToolResultBlock, ToolUseBlock, Usage
from trunkline_wire.turn import DeltaKind, MessageAssistant
from trunkline_wire.work import NativeMessage, UsageUpdated

_PIECES: Final[dict[str, tuple[str, DeltaKind]]] = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "input_json_delta": ("partial_json", "tool_input"),
}
_CALLS: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})


def streamed(state: State, message: Obj) -> list[Out]:
    """A `stream_event`: pieces and bookkeeping, and the final usage of a message."""
    event = obj(message, "event")
    parent = text(message, "parent_tool_use_id")
    stream = state.streams.get(parent)
    match text(event, "type"):
        case "message_start":
            return _message_start(state, message, obj(event, "message"), parent)
        case "content_block_start":
            stream = stream or _late(state, message, parent)
            stream.block = whole(event, "index") or 0
            stream.kind = text(obj(event, "content_block"), "type")
            return passing(stream.item, block=stream.block, lane=stream.lane)
        case "content_block_delta":
            return _delta(stream or _late(state, message, parent), event)
        case "content_block_stop":
            stream = stream or _late(state, message, parent)
            stream.block = None
            return passing(stream.item, block=whole(event, "index") or 0, lane=stream.lane)
        case "message_delta":
            return _message_delta(state, stream or _late(state, message, parent), event)
        case "message_stop":
            stream = state.streams.pop(parent, None) or _late(state, message, parent)
            return [ItemEnd(stream.item)]
        case "ping":
            stream = stream or _late(state, message, parent)
            return passing(stream.item, lane=stream.lane)
        case other:
            kind = f"stream_event/{other}"
            return [fact(NativeMessage(known=False, kind=kind, reason="unknown_event"))]


def _message_start(state: State, message: Obj, started_message: Obj, parent: str | None) -> list[Out]:
    out = begin(state, strings(items(message, "user_message_uuids"))) if parent is None else []
    out += recover(state)
    name = text(started_message, "id") or text(message, "api_message_id") or "message"
    stream = Stream(
        message=name,
        item=state.item(name),
        lane=state.lane_of(message),
        model=text(started_message, "model"),
        usage=dict(obj(started_message, "usage")),
    )
    state.streams[parent] = stream
    return out or passing(stream.item, lane=stream.lane)


def _late(state: State, message: Obj, parent: str | None) -> Stream:
    """The stream of a message whose start we have not seen."""
    name = text(message, "api_message_id") or "message"
    stream = Stream(message=name, item=state.item(name), lane=state.lane_of(message))
    state.streams[parent] = stream
    return stream


def _delta(stream: Stream, event: Obj) -> list[Out]:
    delta = obj(event, "delta")
    block = whole(event, "index")
    block = block if block is not None else stream.block or 0
    key, kind = _PIECES.get(text(delta, "type") or "", ("", "text"))
    said = text(delta, key) if key else None
    if said is None:
        return passing(stream.item, block=block, lane=stream.lane)
    return [Piece(item=stream.item, block=block, kind=kind, text=said, lane=stream.lane)]


def _message_delta(state: State, stream: Stream, event: Obj) -> list[Out]:
    """The message's final usage and stop reason, which the finished blocks could not know yet."""
    stream.usage |= {key: value for key, value in obj(event, "usage").items() if value is not None}
    if stream.lane is None:
        state.context_used = context_size_of(stream.usage)
    data = MessageAssistant(
        content=[],
        model=_model(stream.model),
        stop_reason=text(obj(event, "delta"), "stop_reason"),
        usage=message_usage(stream.usage),
    )
    return [fact(data, item=stream.item, lane=stream.lane)]


def thinking_tokens(state: State) -> list[Out]:
    """An estimate that comes with each piece of thinking."""
    stream = state.streams.get(None)
    return passing(stream.item, block=stream.block or 0, lane=stream.lane) if stream else []


def assistant(state: State, message: Obj) -> list[Out]:
    """An `assistant` message: usually one finished block. Those that share `message.id` are one message."""
    native = obj(message, "message")
    lane = state.lane_of(message)
    out = begin(state, strings(items(message, "user_message_uuids"))) if lane is None else []
    out += recover(state)
    name = text(native, "id") or text(message, "uuid") or "message"
    item = state.item(name)
    content = native.get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else items(native, "content")
    for part in parts or [{}]:
        block = as_obj(part)
        index = _index(state, name, block)
        out.append(fact(_finished(state, message, native, block, index), item=item, lane=lane))
        kind = text(block, "type") or ""
        if kind in _CALLS:
            out += started(state, block, lane)
        elif kind.endswith("_tool_result"):
            out += completed(state, message, block, lane)
    return out + _context(state, message)


def _index(state: State, name: str, block: Obj) -> int:
    """The block's index: that of the open block while it streams, else its place among those told so far."""
    stream = state.streams.get(None)
    told = state.blocks.get(name, 0)
    if stream is not None and stream.message == name and stream.block is not None and stream.kind == block.get("type"):
        told = stream.block
    state.blocks[name] = told + 1
    return told


def _finished(state: State, message: Obj, native: Obj, block: Obj, index: int) -> MessageAssistant:
    error = None
    if text(message, "error") or truth(message, "is_api_error_message"):
        error = api_error(message, text(block, "text") or text(message, "error") or "the model's API failed")
        if state.turn is not None and state.lane_of(message) is None:
            state.turn.error = error
    return MessageAssistant(
        content=[_block(state, message, block)] if block else [],
        block=index,
        model=_model(text(native, "model")),
        stop_reason=text(native, "stop_reason"),
        usage=message_usage(obj(native, "usage")),
        aborted=truth(message, "aborted"),
        error=error,
    )


def _block(state: State, message: Obj, block: Obj) -> Block:
    kind = text(block, "type") or ""
    if kind in _CALLS:
        native = text(block, "id") or ""
        return ToolUseBlock(id=state.item(native), name=text(block, "name") or "unknown", input=block.get("input"))
    if kind.endswith("_tool_result"):
        native = text(block, "tool_use_id") or ""
        return ToolResultBlock(tool=state.item(native), content=block.get("content"), is_error=truth(block, "is_error"))
    if kind == "thinking":
        return ThinkingBlock(
            text=text(block, "thinking") or "",
            duration_ms=whole(message, "thinking_duration_ms"),
            signature=text(block, "signature"),
        )
    return block_of(block)


def _model(name: str | None) -> str | None:
    return None if name == SYNTHETIC_MODEL else name


def _context(state: State, message: Obj) -> list[Out]:
    """What `/context` has counted."""
    counted = obj(message, "context_usage")
    used = whole(counted, "total_tokens")
    if used is None:
        return []
    state.context_used = used
    usage = Usage(context_used=used, context_size=whole(counted, "raw_max_tokens"))
    return [fact(UsageUpdated(usage=usage))]

"""Pieces of what is being written, and signs of progress."""

from typing import Final

from trunkline_adapters.codex.state import Open, State, passing
from trunkline_adapters.codex.translate_begin import begin, recover
from trunkline_agentkit.fields import Obj, text, whole
from trunkline_agentkit.protocol import Out, Piece, Progress
from trunkline_wire.turn import DeltaKind, ToolProgress

_KINDS: Final[dict[str, DeltaKind]] = {
    "item/agentMessage/delta": "text",
    "item/commandExecution/outputDelta": "tool_output",
    "item/fileChange/outputDelta": "tool_output",
    "item/plan/delta": "plan",
    "item/reasoning/summaryTextDelta": "thinking",
    "item/reasoning/textDelta": "thinking",
}
_KEPT: Final = 1024 * 1024
"""Characters of an unfinished item that are kept for an interruption."""


def piece(state: State, method: str, params: Obj, lane: str | None) -> list[Out]:
    """A delta of an item; one without a start, after a lost connection, is a piece all the same."""
    native = text(params, "itemId")
    if native is None:
        return []
    out = begin(state, params) + recover(state)
    name = state.native_item(text(params, "threadId"), native)
    one = state.open.get(name)
    said = text(params, "delta") or ""
    if one is not None and len(one.said) < _KEPT:
        one.said += said
    if state.adopted if one is None else one.halved:
        return out or passing(state.item(name), lane=lane)
    out.append(Piece(item=state.item(name), block=_block(one, params), kind=_KINDS[method], text=said, lane=lane))
    return out


def part_added(state: State, params: Obj, lane: str | None) -> list[Out]:
    """A further part of a summary begins."""
    name = state.native_item(text(params, "threadId"), text(params, "itemId") or "")
    one = state.open.get(name)
    index = whole(params, "summaryIndex") or 0
    if one is not None and index and one.said:
        one.said += "\n\n"
    return passing(state.item(name), block=index, lane=lane)


def _block(one: Open | None, params: Obj) -> int:
    """Parts of a summary come before those of the content."""
    if (index := whole(params, "summaryIndex")) is not None:
        if one is not None:
            one.parts = max(one.parts, index + 1)
        return index
    return (whole(params, "contentIndex") or 0) + (one.parts if one is not None else 0)


def progressed(state: State, params: Obj, lane: str | None) -> list[Out]:
    """`item/mcpToolCall/progress`."""
    native = text(params, "itemId")
    if native is None:
        return []
    item = state.item(state.native_item(text(params, "threadId"), native))
    return [Progress(data=ToolProgress(output=text(params, "message")), item=item, lane=lane)]

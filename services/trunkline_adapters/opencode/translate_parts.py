"""Parts of the model's messages: what it says, and what it does."""

from collections.abc import Iterable
from typing import Final

from trunkline_adapters.opencode import tools
from trunkline_adapters.opencode.state import Message, Part, State, fact, passing
from trunkline_adapters.opencode.translate_asks import settle
from trunkline_agentkit.fields import Obj, obj, text, truth, whole
from trunkline_agentkit.protocol import ItemEnd, Out, Piece, Progress
from trunkline_wire.blocks import Block, TextBlock, ThinkingBlock
from trunkline_wire.turn import MessageAssistant, MessageUser, ToolCompleted, ToolProgress
from trunkline_wire.work import FileChanged, NativeMessage, TaskUpdated

SILENT: Final = frozenset({"agent", "compaction", "file", "retry", "snapshot", "step-finish", "step-start", "subtask"})
"""Types of parts that say nothing in a message of the model: marks of its steps, or told by the message itself."""

_KEPT: Final = 1024 * 1024
"""Characters of an unfinished text that are kept for an interruption."""


def updated(state: State, message: Message, part: Obj) -> list[Out]:
    """A part of a message of the model is new, has grown or is finished."""
    kind, id = text(part, "type"), text(part, "id") or ""
    if id in state.finished:
        return []
    match kind:
        case "text" | "reasoning":
            return _said(state, message, part, id)
        case "tool":
            return _tool(state, message, part, id)
        case "patch":
            return _patched(state, message, part)
        case _ if kind in SILENT:
            return []
        case _:
            return [fact(NativeMessage(known=False, kind=f"part/{kind or 'untyped'}", reason="unknown_part"))]


def grew(state: State, message: Message | None, properties: Obj) -> list[Out]:
    """`message.part.delta`. One whose part is not open, or has missed pieces, is bookkeeping: the whole comes at its end."""
    one = state.parts.get(text(properties, "partID") or "")
    piece = text(properties, "delta") or ""
    if one is None or one.holed or message is None or one.kind == "tool":
        return passing(state.item(text(properties, "messageID") or ""))
    return [_piece(one, piece)]


def _piece(one: Part, piece: str) -> Out:
    if len(one.said) < _KEPT:
        one.said += piece
    kind = "thinking" if one.kind == "thinking" else "text"
    return Piece(item=one.item, block=one.block, kind=kind, text=piece, lane=one.lane)


def _said(state: State, message: Message, part: Obj, id: str) -> list[Out]:
    if truth(part, "synthetic") or truth(part, "ignored"):
        return []
    one = state.parts.get(id)
    if one is None:
        one = Part(
            id=id,
            kind="thinking" if text(part, "type") == "reasoning" else "text",
            message=message.id,
            session=message.session,
            item=message.item,
            lane=message.lane,
            block=message.blocks,
            holed=message.summary or state.lost,
        )
        message.blocks += 1
        state.parts[id] = one
    said = text(part, "text") or ""
    if whole(obj(part, "time"), "end") is None:
        if not one.holed and said.startswith(one.said) and len(said) > len(one.said):
            return [_piece(one, said[len(one.said) :])]
        return passing(one.item, block=one.block, lane=one.lane)
    del state.parts[id]
    state.finished.add(id)
    if not said:
        return passing(one.item, block=one.block, lane=one.lane)
    if message.summary:
        return [fact(MessageUser(content=[TextBlock(text=said)], synthetic=True), item=one.item, lane=one.lane)]
    if state.turn is not None and one.lane is None and one.kind == "text":
        state.turn.said = said
    main = one.lane is None
    data = MessageAssistant(
        content=[_block(one, said, part)],
        block=one.block,
        model=state.known.model if main else None,
        aborted=main and state.turn is not None and state.turn.interrupted,
    )
    return [fact(data, item=one.item, lane=one.lane)]


def _block(one: Part, said: str, part: Obj | None = None) -> Block:
    if one.kind != "thinking":
        return TextBlock(text=said)
    time = obj(part or {}, "time")
    begun, ended = whole(time, "start"), whole(time, "end")
    return ThinkingBlock(text=said, duration_ms=ended - begun if begun is not None and ended is not None else None)


def _tool(state: State, message: Message, part: Obj, id: str) -> list[Out]:
    one = state.parts.get(id)
    if one is None:
        one = Part(
            id=id,
            kind="tool",
            message=message.id,
            session=message.session,
            item=state.item(id),
            lane=message.lane,
        )
        state.parts[id] = one
    one.body = part
    match text(obj(part, "state"), "status"):
        case "completed" | "error":
            return _tool_ended(state, message, one)
        case "running":
            return _tool_runs(state, one)
        case _:
            return passing(one.item, lane=one.lane)


def _tool_started(one: Part) -> list[Out]:
    if one.started:
        return []
    one.started = True
    return [fact(tools.started(one.body), item=one.item, lane=one.lane)]


def _tool_runs(state: State, one: Part) -> list[Out]:
    out = _tool_started(one)
    if (child := tools.child_of(one.body)) is not None:
        out += begin_child(state, child, one)
    printed = tools.output_of(one.body)
    if printed and printed != one.said:
        one.said = printed
        out.append(Progress(data=ToolProgress(output=printed), item=one.item, lane=one.lane))
    return out or passing(one.item, lane=one.lane)


def begin_child(state: State, child: str, one: Part) -> list[Out]:
    """The call has started a sub-agent, whose session is `child`."""
    known = state.lanes.get(child)
    state.lanes[child] = one.item
    if known is not None:
        return []
    state.children[child] = one.session
    given = obj(obj(one.body, "state"), "input")
    data = TaskUpdated(
        task=child, kind="subagent", status="running", description=text(given, "description"), tool=one.item
    )
    return [fact(data, item=one.item, lane=one.lane)]


def _tool_ended(state: State, message: Message, one: Part) -> list[Out]:
    del state.parts[one.id]
    state.finished.add(one.id)
    out = _tool_started(one)
    if (child := tools.child_of(one.body)) is not None:
        out += begin_child(state, child, one)
    result = tools.completed(one.body, asked_diff=one.diff)
    out += [*settle(state, one.item), fact(result, item=one.item, lane=one.lane), ItemEnd(one.item)]
    if result.status == "completed":
        changes = tools.file_changes(one.body, one.diff)
        message.changed |= {change.path for change in changes}
        out += [fact(change, item=one.item, lane=one.lane) for change in changes]
        if state.turn is not None:
            added, removed = tools.changed_lines(one.body)
            state.turn.lines_added += added
            state.turn.lines_removed += removed
    return out


def _patched(state: State, message: Message, part: Obj) -> list[Out]:
    """What a step has changed, by whatever means: told where no tool has told it."""
    files = [path for path in tools.patched_files(part) if path not in message.changed]
    message.changed |= set(files)
    item = state.item(text(part, "id") or "")
    return [fact(FileChanged(path=path), item=item, lane=message.lane) for path in files]


def break_off(state: State, session: str) -> list[Out]:
    """Ends the texts that were being written: the model's stream broke off, and it is asked anew."""
    texts = [one for one in state.parts.values() if one.session == session and one.kind != "tool"]
    return _close(state, texts)


def close_parts(state: State, message: str, *, calls: bool = True) -> list[Out]:
    """Ends what a message has left open; without `calls` only its texts."""
    left = [one for one in state.parts.values() if one.message == message and (calls or one.kind != "tool")]
    return _close(state, left)


def _close(state: State, parts: Iterable[Part]) -> list[Out]:
    out: list[Out] = []
    for one in list(parts):
        del state.parts[one.id]
        state.finished.add(one.id)
        if one.kind == "tool":
            if one.started:
                data = ToolCompleted(status="cancelled", reason="the turn ended without its result")
                out += [*settle(state, one.item), fact(data, item=one.item, lane=one.lane), ItemEnd(one.item)]
        elif one.said:
            data = MessageAssistant(content=[_block(one, one.said)], block=one.block, aborted=True)
            out.append(fact(data, item=one.item, lane=one.lane))
    return out

"""Items: what the model says, what it does, and what else stands in a thread."""

from typing import Final

from trunkline_adapters.codex import tools
from trunkline_adapters.codex.content import blocks_of
from trunkline_adapters.codex.native import kind_of
from trunkline_adapters.codex.state import Open, State, fact, passing
from trunkline_adapters.codex.translate_asks import settle
from trunkline_adapters.codex.translate_begin import begin, recover
from trunkline_agentkit.fields import Obj, items, obj, objects, strings, text, whole
from trunkline_agentkit.protocol import ItemEnd, Out
from trunkline_wire.blocks import Block, TerminalBlock, TextBlock, ThinkingBlock
from trunkline_wire.session import SessionCompacted, SessionStatus
from trunkline_wire.turn import MessageAssistant, MessageSystem, MessageUser, ToolCompleted
from trunkline_wire.work import NativeMessage, TaskUpdated

_ACTIVITY: Final = {"started": "running", "interacted": "running", "interrupted": "stopped", "completed": "completed"}
_SAYING: Final = frozenset({"agentMessage", "plan", "reasoning"})
_MARKS: Final = frozenset(
    {"contextCompaction", "enteredReviewMode", "exitedReviewMode", "hookPrompt", "subAgentActivity", "userMessage"}
)
ITEM_TYPES: Final = tools.KINDS | _SAYING | _MARKS
"""Types of items that are told; others are kept as unknown."""


def started(state: State, params: Obj, lane: str | None) -> list[Out]:
    """`item/started`. What has no middle is told at its end alone."""
    item = obj(params, "item")
    native = text(item, "id")
    kind = text(item, "type") or ""
    if native is None:
        return []
    out = begin(state, params) + recover(state)
    one = _open(state, params, item, lane)
    if kind in tools.KINDS:
        return out + _tool_started(state, one)
    if kind == "contextCompaction" and lane is None:
        state.compacting_from = state.context_used
        state.condition = "compacting"
        return [*out, fact(SessionStatus(status="compacting"))]
    if kind not in ITEM_TYPES:
        return [*out, _unknown({"method": "item/started", "params": params})]
    return out or passing(one.item, lane=lane)


def _open(state: State, params: Obj, item: Obj, lane: str | None) -> Open:
    """The item, from now on open."""
    thread = text(params, "threadId") or state.thread or ""
    name = state.native_item(text(params, "threadId"), text(item, "id") or "")
    # After a dropped stream the model's answer may begin again under the same id.
    state.finished.discard(name)
    known = state.open.get(name)
    if known is not None:
        known.body = item
        return known
    one = Open(native=name, thread=thread, item=state.item(name), kind=text(item, "type") or "", body=item, lane=lane)
    state.open[name] = one
    return one


def _tool_started(state: State, one: Open) -> list[Out]:
    if one.started:
        return []
    one.started = True
    if tools.spawns(one.body):
        state.unclaimed[one.item] = text(one.body, "prompt") or ""
    return [fact(tools.started(one.body, text(one.body, "id") or ""), item=one.item, lane=one.lane)]


def completed(state: State, params: Obj, lane: str | None) -> list[Out]:
    """`item/completed`."""
    item = obj(params, "item")
    native = text(item, "id")
    if native is None:
        return []
    name = state.native_item(text(params, "threadId"), native)
    if name in state.background:
        return _background_ended(state, name, item)
    if name in state.finished or _was_told(state, name, item, lane):
        return []
    out = begin(state, params) + recover(state)
    one = _open(state, params, item, lane)
    del state.open[name]
    state.finished.add(name)
    if one.kind in tools.KINDS:
        return out + _tool_completed(state, one)
    if one.kind in _SAYING:
        return out + _said(state, one)
    match one.kind:
        case "userMessage":
            return (out + _user(state, one)) or passing(one.item, lane=lane)
        case "hookPrompt":
            said = [TextBlock(text=text(part, "text") or "") for part in objects(item, "fragments")]
            return [*out, fact(MessageUser(content=[*said], synthetic=True), item=one.item, lane=lane)]
        case "contextCompaction":
            return out + _compacted(state, lane)
        case "enteredReviewMode":
            said_review = f"Review of {text(item, 'review') or 'the changes'} begins"
            return [*out, fact(MessageSystem(text=said_review, kind="review"), item=one.item, lane=lane)]
        case "exitedReviewMode":
            # What the reviewer has found follows as a message.
            return [*out, fact(MessageSystem(text="The review ends", kind="review"), item=one.item, lane=lane)]
        case "subAgentActivity":
            return out + _activity(state, one)
        case _:
            return [*out, _unknown({"method": "item/completed", "params": params})]


def _was_told(state: State, name: str, item: Obj, lane: str | None) -> bool:
    """Whether another worker has told it to the end."""
    if state.survivor is None or state.item(name) not in state.survivor.told:
        return False
    state.finished.add(name)
    if state.turn is not None and lane is None:
        match text(item, "type"):
            case "agentMessage":
                state.turn.said = text(item, "text")
            case "plan":
                state.turn.plan = (name, text(item, "text") or "")
            case _:
                pass
    return True


def _unknown(message: Obj) -> Out:
    return fact(NativeMessage(known=False, kind=kind_of(message), reason="unknown_item"))


def _said(state: State, one: Open) -> list[Out]:
    """A finished text of the model."""
    content = _words(one.body)
    if state.turn is not None and one.lane is None and one.kind != "reasoning":
        said = text(one.body, "text") or ""
        if one.kind == "plan":
            state.turn.plan = (one.native, said)
        else:
            state.turn.said = said
    end = ItemEnd(one.item)
    if not content:
        return [*passing(one.item, lane=one.lane), end]
    data = MessageAssistant(content=content, block=0, model=state.known.model if one.lane is None else None)
    return [fact(data, item=one.item, lane=one.lane), end]


def _words(item: Obj) -> list[Block]:
    if text(item, "type") != "reasoning":
        said = text(item, "text")
        return [TextBlock(text=said)] if said else []
    parts = strings([*items(item, "summary"), *items(item, "content")])
    return [ThinkingBlock(text=part) for part in parts]


def _user(state: State, one: Open) -> list[Out]:
    """A user's message: an echo of ours, or one that came another way."""
    client = text(one.body, "clientId")
    content = blocks_of(items(one.body, "content"))
    if client is not None and client in state.steered:
        state.steered.discard(client)
        data = MessageUser(content=content, delivery="steered", command=client)
        return [fact(data, item=state.item(client))]
    if client is not None and client in state.ours:
        return []
    return [fact(MessageUser(content=content, synthetic=one.lane is not None), item=one.item, lane=one.lane)]


def _compacted(state: State, lane: str | None) -> list[Out]:
    if lane is not None:
        return []
    trigger = "manual" if state.compact_asked else "auto"
    state.compact_asked = False
    out: list[Out] = [fact(SessionCompacted(trigger=trigger, before=state.compacting_from, after=state.context_used))]
    return out + recover(state)


def _activity(state: State, one: Open) -> list[Out]:
    """A sub-agent of its own thread, of which there may be no call that started it."""
    thread = text(one.body, "agentThreadId")
    if thread is None:
        return []
    lane = state.lanes.setdefault(thread, one.item)
    status = _ACTIVITY.get(text(one.body, "kind") or "")
    known = status if status in ("running", "stopped", "completed") else None
    path = text(one.body, "agentPath")
    name = path.rstrip("/").rpartition("/")[2] or None if path else None
    data = TaskUpdated(task=thread, kind="subagent", status=known, description=path, name=name, tool=lane)
    return [fact(data, item=lane)]


def _tool_completed(state: State, one: Open) -> list[Out]:
    out = _tool_started(state, one) + settle(state, one.native)
    if one.kind == "collabAgentToolCall":
        state.unclaimed.pop(one.item, None)
        for thread in strings(items(one.body, "receiverThreadIds")):
            # The call that began a thread is named here for certain; other calls are about one that is there.
            if tools.spawns(one.body) or thread not in state.lanes:
                state.lanes[thread] = one.item
    result = tools.completed(one.body, denied=one.item in state.denied)
    out.append(fact(result, item=one.item, lane=one.lane))
    if one.kind == "fileChange" and result.status == "completed":
        out += [fact(data, item=one.item, lane=one.lane) for data in tools.file_changes(one.body)]
        if state.turn is not None:
            added, removed = tools.changed_lines(one.body)
            state.turn.lines_added += added
            state.turn.lines_removed += removed
    return [*out, ItemEnd(one.item)]


def break_off(state: State, thread: str) -> list[Out]:
    """Ends the texts that were being written: the model's stream broke off, and its answer begins anew."""
    out: list[Out] = []
    for one in [one for one in state.open.values() if one.thread == thread and one.kind in _SAYING]:
        del state.open[one.native]
        state.finished.add(one.native)
        out += _aborted(one)
    return out


def _aborted(one: Open) -> list[Out]:
    if not one.said:
        return [ItemEnd(one.item)]
    block = ThinkingBlock(text=one.said) if one.kind == "reasoning" else TextBlock(text=one.said)
    data = MessageAssistant(content=[block], block=0, aborted=True)
    return [fact(data, item=one.item, lane=one.lane), ItemEnd(one.item)]


def close_open(state: State, thread: str, *, interrupted: bool) -> list[Out]:
    """Ends what a finished turn of this thread has left open: Codex does not."""
    left = [one for one in state.open.values() if one.thread == thread]
    out: list[Out] = []
    for one in left:
        del state.open[one.native]
        state.finished.add(one.native)
        if one.kind in tools.KINDS and one.started:
            out += _cut_off(state, one, interrupted=interrupted)
        elif one.kind in _SAYING:
            out += _aborted(one)
    return out


def _cut_off(state: State, one: Open, *, interrupted: bool) -> list[Out]:
    state.unclaimed.pop(one.item, None)
    if interrupted or not tools.runs_on(one.body):
        reason = "the turn was interrupted" if interrupted else "the turn ended without a result"
        return [fact(ToolCompleted(status="cancelled", reason=reason), item=one.item, lane=one.lane)]
    process = text(one.body, "processId") or one.native
    state.background[one.native] = process
    content: list[Block] = [TerminalBlock(output=one.said)]
    result = ToolCompleted(status="completed", content=content, reason="it runs on in the background")
    task = TaskUpdated(
        task=process,
        kind="command",
        status="running",
        description=tools.command_of(one.body),
        background=True,
        tool=one.item,
    )
    return [fact(result, item=one.item, lane=one.lane), fact(task, item=one.item, lane=one.lane)]


def _background_ended(state: State, name: str, item: Obj) -> list[Out]:
    process = state.background.pop(name)
    code = whole(item, "exitCode")
    data = TaskUpdated(
        task=process,
        status="completed" if code == 0 else "failed",
        summary=text(item, "aggregatedOutput"),
        tool=state.item(name),
    )
    return [fact(data, item=state.item(name))]

"""What the server wants decided: approvals, questions, forms and calls of our tools, and how they end."""

from typing import Any, Final

from trunkline_adapters.codex import tools
from trunkline_adapters.codex.state import Ask, AskKind, Open, State, fact
from trunkline_agentkit.fields import Obj, items, obj, objects, strings, text, truth
from trunkline_agentkit.protocol import Out
from trunkline_wire import Data, encode
from trunkline_wire.asks import (
    AskOption,
    AskWithdrawn,
    PermissionRequested,
    Question,
    QuestionAsked,
    QuestionOption,
)

ACCEPT: Final = "accept"
ACCEPT_SESSION: Final = "accept_session"
ACCEPT_ALWAYS: Final = "accept_always"
DECLINE: Final = "decline"
CANCEL: Final = "cancel"
EXECPOLICY: Final = "execpolicy"
NETWORK: Final = "network:"
"""Option ids. `execpolicy` allows from now on what begins like this command; `network:<n>` takes the n-th rule for the network."""

IMPLEMENT: Final = "implement"
KEEP_PLANNING: Final = "keep_planning"
PLAN_OPTIONS: Final = [
    AskOption(id=IMPLEMENT, name="Implement the plan", kind="allow_once"),
    AskOption(id=KEEP_PLANNING, name="Keep planning", kind="reject_once"),
]
RESULT: Final = "result"
"""Id of the question by which the result of a tool of ours is given."""

_KINDS: Final[dict[str, AskKind]] = {
    "item/commandExecution/requestApproval": "command",
    "item/fileChange/requestApproval": "file",
    "item/permissions/requestApproval": "permissions",
    "item/tool/call": "call",
    "item/tool/requestUserInput": "question",
    "mcpServer/elicitation/request": "form",
}
_ONCE: Final = AskOption(id=ACCEPT, name="Allow once", kind="allow_once")
_SESSION: Final = AskOption(id=ACCEPT_SESSION, name="Allow in this session", kind="allow_always")
_REJECTIONS: Final = [
    AskOption(id=DECLINE, name="Reject", kind="reject_once"),
    AskOption(id=CANCEL, name="Reject and stop the turn", kind="reject_once"),
]


def requested(state: State, message: Obj, lane: str | None) -> list[Out]:
    """A request of the server that someone has to answer, or the turn waits for ever."""
    method, params = text(message, "method") or "", obj(message, "params")
    kind = _KINDS[method]
    thread = text(params, "threadId") or state.thread or ""
    tool = _tool_of(state, kind, thread, params)
    if kind == "form" and text(obj(params, "_meta"), "codex_approval_kind") == "mcp_tool_call":
        kind = "tool"
    key = _key(state, kind, thread, params, tool)
    if state.lost:
        state.came_again.add(key)
        state.asking.add(thread)
        state.awaiting.discard(thread)
    if (known := state.asks.get(key)) is not None:
        # After a reconnection the server asks again for what has no answer yet, perhaps under another id.
        known.request_id = message.get("id")
        if known.answer is not None:
            state.repeats.append(known)
        return []
    times = state.asked.get(key, 0) + 1
    while state.standing.get(_named(state, key, times)) is False:
        times += 1
    state.asked[key] = times
    ask = Ask(
        ask=_named(state, key, times),
        key=key,
        request_id=message.get("id"),
        kind=kind,
        params=params,
        thread=thread,
        tool=tool.item if tool else None,
        lane=lane,
    )
    state.asks[key] = ask
    # What another worker told of it stands.
    return [] if ask.ask in state.standing else [fact(_data(state, ask, tool), item=ask.tool, lane=lane)]


def _named(state: State, key: str, times: int) -> str:
    """The id of what is asked for the time number `times`."""
    return state.ask(key if times == 1 else f"{key}#{times}")


def _tool_of(state: State, kind: AskKind, thread: str, params: Obj) -> Open | None:
    """The open call that is asked about."""
    native = text(params, "callId" if kind == "call" else "itemId")
    if native is not None:
        return state.open.get(state.native_item(thread, native))
    asked = {ask.tool for ask in state.asks.values()}
    wanted = (text(params, "serverName"), text(obj(params, "_meta"), "tool_name"))
    calls = [
        one
        for one in state.open.values()
        if one.kind == "mcpToolCall" and one.thread == thread and text(one.body, "server") == wanted[0]
        if wanted[1] in (None, text(one.body, "tool"))
    ]
    # Of several calls alike the first that has not asked yet; with none left the request has come again.
    return next((one for one in calls if one.item not in asked), calls[0] if calls else None)


def _key(state: State, kind: AskKind, thread: str, params: Obj, tool: Open | None) -> str:
    """What the ask is named by: the same when the server sends its request again."""
    native = text(params, "approvalId") or text(params, "itemId") or text(params, "callId")
    if native is None and kind == "tool" and tool is not None:
        return tool.native
    if native is None:
        native = (
            text(params, "elicitationId")
            or encode(
                [params.get("turnId"), params.get("serverName"), params.get("message"), params.get("requestedSchema")]
            ).decode()
        )
    return state.native_item(thread, native)


def _data(state: State, ask: Ask, tool: Open | None) -> Data:
    match ask.kind:
        case "question":
            return _question(state, ask)
        case "form":
            return _form(state, ask)
        case "call":
            return _call(state, ask)
        case _:
            return _permission(state, ask, tool)


def _permission(state: State, ask: Ask, tool: Open | None) -> PermissionRequested:
    params = ask.params
    meta = obj(params, "_meta")
    item = _asked_item(ask, tool)
    described = tools.started(item, "")
    changed = ask.kind in {"file", "command"}
    network = obj(params, "networkApprovalContext")
    return PermissionRequested(
        ask=ask.ask,
        incarnation=state.context.incarnation,
        name="request_permissions" if ask.kind == "permissions" else described.name,
        kind="other" if ask.kind == "permissions" else described.kind,
        title=f"Network access to {text(network, 'host')}" if network else described.title if changed else _title(ask),
        input=params.get("permissions") if ask.kind == "permissions" else described.input,
        options=_options(ask),
        suggestions=params.get("proposedExecpolicyAmendment") or params.get("proposedNetworkPolicyAmendments"),
        description=text(meta, "tool_description"),
        reason=text(params, "reason"),
        tool=ask.tool,
    )


def _asked_item(ask: Ask, tool: Open | None) -> Obj:
    """The item that is asked about: the open one, with what the request says more."""
    if ask.kind == "tool":
        meta = obj(ask.params, "_meta")
        own = {"server": ask.params.get("serverName"), "tool": meta.get("tool_name")}
        return {"type": "mcpToolCall"} | own | (tool.body if tool else {"arguments": meta.get("tool_params")})
    item = dict(tool.body) if tool else {"type": "fileChange" if ask.kind == "file" else "commandExecution"}
    return item | {name: ask.params[name] for name in ("command", "cwd", "commandActions") if ask.params.get(name)}


def _title(ask: Ask) -> str | None:
    return text(ask.params, "message") or text(ask.params, "reason")


def _options(ask: Ask) -> list[AskOption]:
    params = ask.params
    match ask.kind:
        case "tool":
            persist = strings(items(obj(params, "_meta"), "persist"))
            options = [_ONCE]
            if "session" in persist:
                options.append(_SESSION)
            if "always" in persist:
                options.append(AskOption(id=ACCEPT_ALWAYS, name="Always allow this tool", kind="allow_always"))
            return [*options, _REJECTIONS[0]]
        case "permissions":
            turn = AskOption(id=ACCEPT, name="Allow in this turn", kind="allow_once")
            return [turn, _SESSION, _REJECTIONS[0]]
        case "command":
            options = [_ONCE, _SESSION]
            if prefix := strings(items(params, "proposedExecpolicyAmendment")):
                name = f"Always allow what begins with {' '.join(prefix)}"
                options.append(AskOption(id=EXECPOLICY, name=name, kind="allow_always"))
            for index, rule in enumerate(objects(params, "proposedNetworkPolicyAmendments")):
                allows = text(rule, "action") == "allow"
                name = f"Always {text(rule, 'action')} access to {text(rule, 'host')}"
                kind = "allow_always" if allows else "reject_always"
                options.append(AskOption(id=f"{NETWORK}{index}", name=name, kind=kind))
            return options + _REJECTIONS
        case _:
            return [_ONCE, _SESSION, *_REJECTIONS]


def _question(state: State, ask: Ask) -> QuestionAsked:
    questions: list[Question] = []
    for native in objects(ask.params, "questions"):
        options = [
            QuestionOption(label=text(one, "label") or "", description=text(one, "description"))
            for one in objects(native, "options")
        ]
        said = text(native, "question") or ""
        questions.append(
            Question(
                id=text(native, "id") or said,
                text=said,
                header=text(native, "header"),
                options=options,
                free_text=truth(native, "isOther") or not options,
            )
        )
    return QuestionAsked(ask=ask.ask, incarnation=state.context.incarnation, questions=questions, tool=ask.tool)


def _form(state: State, ask: Ask) -> QuestionAsked:
    """A form of an MCP server, or a page that it wants opened."""
    params = ask.params
    said = [text(params, name) for name in ("message", "title", "description", "url")]
    return QuestionAsked(
        ask=ask.ask,
        incarnation=state.context.incarnation,
        message="\n".join(one for one in said if one) or None,
        schema=params.get("requestedSchema"),
        tool=ask.tool,
    )


def _call(state: State, ask: Ask) -> QuestionAsked:
    """A tool that this client offers is called: whoever answers gives its result."""
    name = text(ask.params, "tool") or "unknown"
    said = f"Codex calls {name} with {encode(ask.params.get('arguments')).decode()}"
    question = Question(id=RESULT, text="What is its result?", header=name[:40], free_text=True)
    return QuestionAsked(
        ask=ask.ask, incarnation=state.context.incarnation, message=said, questions=[question], tool=ask.tool
    )


def sent(state: State, message: Obj) -> None:
    """Our answer to a request of the server goes out."""
    ask = next((one for one in state.asks.values() if one.request_id == message.get("id")), None)
    if ask is not None and ask.kind != "plan":
        ask.answer = message
        if ask.kind == "tool" and ask.tool and text(obj(message, "result"), "action") != "accept":
            state.denied.add(ask.tool)
        if text(obj(message, "result"), "decision") == "cancel" and state.turn is not None:
            state.turn.interrupted = True


def resolved(state: State, params: Obj) -> list[Out]:
    """`serverRequest/resolved`: the server no longer waits, be it that we have answered or not."""
    wanted = params.get("requestId")
    ask = next((one for one in state.asks.values() if one.kind != "plan" and one.request_id == wanted), None)
    if ask is None:
        return []
    del state.asks[ask.key]
    return [] if ask.answer is not None else [_withdrawn(state, ask, interrupted=False)]


def settle(state: State, native: str) -> list[Out]:
    """The call has its end: what it asked for is settled, by our answer or without us."""
    item = state.item(native)
    done = [ask for ask in state.asks.values() if ask.tool == item and ask.kind != "plan"]
    for ask in done:
        del state.asks[ask.key]
    return [_withdrawn(state, ask, interrupted=False) for ask in done if ask.answer is None]


def withdraw(state: State, thread: str, *, interrupted: bool) -> list[Out]:
    """A turn of this thread has ended: nobody waits any more for what was asked in it."""
    done = [ask for ask in state.asks.values() if ask.thread == thread and ask.kind != "plan"]
    for ask in done:
        del state.asks[ask.key]
    return [_withdrawn(state, ask, interrupted=interrupted) for ask in done if ask.answer is None]


def missing(state: State) -> list[Out]:
    """Of all that was asked before the connection was lost, what did not come again: nobody waits for it any more."""
    gone = [ask for ask in state.asks.values() if ask.kind != "plan" and ask.key not in state.came_again]
    for ask in gone:
        del state.asks[ask.key]
    out = [_withdrawn(state, ask, interrupted=False) for ask in gone if ask.answer is None]
    asked = {ask.ask for ask in state.asks.values()}
    for record in state.survivor.asks.values() if state.survivor is not None else ():
        if record.status == "open" and record.ask not in asked:
            data = AskWithdrawn(ask=record.ask, why="answered_elsewhere")
            out.append(fact(data, lane=record.lane))
    return out


def _withdrawn(state: State, ask: Ask, *, interrupted: bool) -> Out:
    stopped = interrupted or (state.turn is not None and state.turn.interrupted)
    data = AskWithdrawn(ask=ask.ask, why="interrupted" if stopped else "answered_elsewhere")
    return fact(data, item=ask.tool, lane=ask.lane)


def answer_of(ask: Ask) -> dict[str, Any]:
    """The body (`result` or `error`) of the answer that was sent to this ask."""
    message = ask.answer or {}
    return {name: message[name] for name in ("result", "error") if name in message}

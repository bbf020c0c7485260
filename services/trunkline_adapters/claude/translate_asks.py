"""What the agent wants decided: permissions, questions, plans and forms, and how they are withdrawn."""

from collections.abc import Sequence
from typing import Final, Literal

from trunkline_adapters.claude.native import PLAN_TOOL, QUESTION_TOOL, kind_of
from trunkline_adapters.claude.state import Ask, AskKind, State, fact
from trunkline_adapters.claude.team_mail import Mailed
from trunkline_adapters.claude.translate_tools import kind_of_tool, title_of
from trunkline_agentkit.fields import Obj, as_obj, items, obj, objects, strings, text, truth
from trunkline_agentkit.protocol import Out
from trunkline_wire import Data
from trunkline_wire.asks import (
    AskOption,
    AskWithdrawn,
    PermissionRequested,
    PlanProposed,
    Question,
    QuestionAsked,
    QuestionOption,
)
from trunkline_wire.work import HookFired, NativeMessage

ALLOW_ONCE: Final = "allow_once"
REJECT: Final = "reject"
ACCEPT_EDITS: Final = "allow_accept_edits"
TEAM_HOOKS: Final = frozenset({"SubagentStart", "SubagentStop", "TeammateIdle", "TaskCreated", "TaskCompleted"})
"""Hooks whose input says something of a team: it goes into the log, that of the others stays in `native`."""
SUGGESTION: Final = "suggestion:"
"""Option ids: `suggestion:<n>` allows and adds the n-th suggestion of the ask as a rule."""


def requested(state: State, message: Obj) -> list[Out]:
    """A `control_request` of the agent. Every one has to be answered by someone, or the agent waits for ever."""
    request_id = text(message, "request_id")
    request = obj(message, "request")
    match text(request, "subtype"):
        case "can_use_tool" if request_id:
            return _can_use_tool(state, request_id, request)
        case "elicitation" if request_id:
            return _form(state, request_id, request)
        case "hook_callback":
            event = text(obj(request, "input"), "hook_event_name") or "unknown"
            tool = text(request, "tool_use_id")
            known = tool if tool in state.tools else None
            name = text(request, "callback_id")
            told = obj(request, "input") if event in TEAM_HOOKS else None
            hook = text(message, "request_id")
            data = HookFired(hook_event=event, name=name, status="started", hook=hook, input=told)
            return [fact(data, item=state.item(known) if known else None)]
        case "mcp_message" | "request_user_dialog":
            return []
        case _:
            return [fact(NativeMessage(known=False, kind=kind_of(message), reason="unknown_request"))]


def _can_use_tool(state: State, request_id: str, request: Obj) -> list[Out]:
    if request_id in state.asks:
        return []
    name = text(request, "tool_name") or "unknown"
    tool = text(request, "tool_use_id")
    kind: AskKind = "permission"
    if name == QUESTION_TOOL:
        kind = "question"
    elif name == PLAN_TOOL:
        kind = "plan"
    ask = _open(state, request_id, request, tool, kind)
    data: Data
    match kind:
        case "question":
            data = _question(state, ask, request)
        case "plan":
            data = _plan(state, ask, request)
        case _:
            data = _permission(state, ask, name, request)
    return [fact(data, item=ask.tool, lane=ask.lane)]


def _open(state: State, request_id: str, request: Obj, tool: str | None, kind: AskKind) -> Ask:
    key = tool or request_id
    # A call that asks again has another ask: the first one has had its end.
    times = state.asked.get(key, 0) + 1
    state.asked[key] = times
    known = state.tools.get(tool) if tool else None
    ask = Ask(
        ask=state.ask(key if times == 1 else f"{key}#{times}"),
        request_id=request_id,
        kind=kind,
        request=request,
        tool=state.item(tool) if tool else None,
        lane=known.lane if known else state.lane_of(request),
    )
    state.asks[request_id] = ask
    return ask


def _permission(state: State, ask: Ask, name: str, request: Obj) -> PermissionRequested:
    suggestions = request.get("permission_suggestions")
    options = [AskOption(id=ALLOW_ONCE, name="Allow once", kind="allow_once")]
    if not truth(request, "suppress_always_allow_rule"):
        options += [
            AskOption(id=f"{SUGGESTION}{index}", name=_suggestion_name(as_obj(one)), kind="allow_always")
            for index, one in enumerate(items(request, "permission_suggestions"))
        ]
    options.append(AskOption(id=REJECT, name="Reject", kind="reject_once"))
    tool_input = obj(request, "input")
    return PermissionRequested(
        ask=ask.ask,
        incarnation=state.context.incarnation,
        name=name,
        kind=kind_of_tool(name),
        title=text(request, "title") or title_of(name, tool_input),
        input=request.get("input"),
        options=options,
        suggestions=suggestions or None,
        description=text(request, "description"),
        reason=text(request, "decision_reason") or text(request, "blocked_path"),
        tool=ask.tool,
    )


def _suggestion_name(suggestion: Obj) -> str:
    where = {"session": "in this session", "localSettings": "in this directory", "projectSettings": "in this project"}
    scope = where.get(text(suggestion, "destination") or "", "from now on")
    match text(suggestion, "type"):
        case "addRules" | "replaceRules":
            rules = [
                f"{text(rule, 'toolName') or 'tool'}({text(rule, 'ruleContent') or '*'})"
                for rule in objects(suggestion, "rules")
            ]
            return f"Always {text(suggestion, 'behavior') or 'allow'} {', '.join(rules)} {scope}"
        case "addDirectories":
            return f"Allow access to {', '.join(strings(items(suggestion, 'directories')))} {scope}"
        case "setMode":
            return f"Switch to mode {text(suggestion, 'mode') or 'unknown'} {scope}"
        case other:
            return f"Allow and apply {other or 'the suggestion'} {scope}"


def _question(state: State, ask: Ask, request: Obj) -> QuestionAsked:
    questions: list[Question] = []
    for native in objects(obj(request, "input"), "questions"):
        said = text(native, "question") or ""
        options = [
            QuestionOption(label=text(one, "label") or "", description=text(one, "description"))
            for one in objects(native, "options")
        ]
        questions.append(
            Question(
                id=said,
                text=said,
                header=text(native, "header"),
                options=options,
                multiple=truth(native, "multiSelect"),
            )
        )
    return QuestionAsked(ask=ask.ask, incarnation=state.context.incarnation, questions=questions, tool=ask.tool)


def _plan(state: State, ask: Ask, request: Obj) -> PlanProposed:
    tool_input = obj(request, "input")
    options = [
        AskOption(id=ALLOW_ONCE, name="Approve the plan", kind="allow_once"),
        AskOption(id=ACCEPT_EDITS, name="Approve, and accept edits", kind="allow_always"),
        AskOption(id=REJECT, name="Keep planning", kind="reject_once"),
    ]
    return PlanProposed(
        ask=ask.ask,
        incarnation=state.context.incarnation,
        plan=text(tool_input, "plan") or "",
        file=text(tool_input, "planFilePath"),
        options=options,
        tool=ask.tool,
    )


def _form(state: State, request_id: str, request: Obj) -> list[Out]:
    if request_id in state.asks:
        return []
    ask = _open(state, request_id, request, text(request, "elicitation_id"), "form")
    data = QuestionAsked(
        ask=ask.ask,
        incarnation=state.context.incarnation,
        message=text(request, "message") or text(request, "url"),
        schema=request.get("requested_schema"),
    )
    return [fact(data, lane=ask.lane)]


def answered(state: State, response: Obj) -> None:
    """Our `control_response` to a request of the agent went out."""
    ask = state.asks.get(text(response, "request_id") or "")
    if ask is None:
        return
    ask.answered = True
    body = obj(response, "response")
    tool = text(ask.request, "tool_use_id")
    if text(body, "behavior") == "deny" and tool:
        state.denied.add(tool)
        if truth(body, "interrupt") and state.turn is not None:
            state.turn.interrupted = True


def mailed(state: State, asked: Sequence[Mailed]) -> list[Out]:
    """Everything that teammates ask by mail at this moment: what is new, and what is settled without us."""
    waiting = {one.request_id: one for one in asked}
    out: list[Out] = []
    for ask in [ask for ask in state.asks.values() if ask.mailed]:
        told = waiting.get(ask.request_id)
        if told is None or (told.answered and not ask.answered):
            del state.asks[ask.request_id]
            if not ask.answered:
                out.append(_withdrawn(state, ask, "cancelled" if told is None else "answered_elsewhere"))
    for one in asked:
        if not one.answered and one.request_id not in state.asks:
            out += _can_use_tool(state, one.request_id, one.request)
            state.asks[one.request_id].mailed = True
    return out


def cancelled(state: State, message: Obj) -> list[Out]:
    """`control_cancel_request`: the agent no longer waits, be it that we have answered or not."""
    ask = state.asks.pop(text(message, "request_id") or "", None)
    if ask is None:
        return []
    return [_withdrawn(state, ask, "cancelled")]


def forget_tool(state: State, tool: str) -> list[Out]:
    """The tool call has its result: what it asked is settled, by our answer or without us."""
    done = [ask for ask in state.asks.values() if text(ask.request, "tool_use_id") == tool]
    for ask in done:
        del state.asks[ask.request_id]
    return [_withdrawn(state, ask, "answered_elsewhere") for ask in done if not ask.answered]


def withdraw_main(state: State) -> list[Out]:
    """A turn has ended: nobody waits any more for what the main lane has asked."""
    done = [
        ask
        for ask in state.asks.values()
        if ask.lane is None and not ask.mailed and (ask.kind != "form" or ask.answered)
    ]
    for ask in done:
        del state.asks[ask.request_id]
    return [_withdrawn(state, ask, "cancelled") for ask in done if not ask.answered]


def reconcile(state: State, reply: Obj) -> list[Out]:
    """The pending list of an `initialize` reply: asks that we have missed, and asks that are settled without us."""
    if not isinstance(reply.get("pending_permission_requests"), list):
        return []
    listed = objects(reply, "pending_permission_requests")
    ids = {text(one, "request_id") for one in listed}
    gone = [ask for ask in state.asks.values() if ask.request_id not in ids and ask.kind != "form" and not ask.mailed]
    out: list[Out] = []
    for ask in gone:
        del state.asks[ask.request_id]
        if not ask.answered:
            out.append(_withdrawn(state, ask, "answered_elsewhere"))
    for one in listed:
        out += requested(state, one)
    return out


def _withdrawn(state: State, ask: Ask, why: Literal["cancelled", "answered_elsewhere"]) -> Out:
    interrupted = state.turn is not None and state.turn.interrupted
    if ask.answered:
        data = AskWithdrawn(ask=ask.ask, why="answered_elsewhere")
    else:
        data = AskWithdrawn(ask=ask.ask, why="interrupted" if interrupted else why)
    return fact(data, item=ask.tool, lane=ask.lane)

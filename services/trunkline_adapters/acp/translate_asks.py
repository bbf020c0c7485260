"""What the agent wants decided: permissions, plans and forms, and how they are withdrawn."""

from typing import Any, Final, Literal

from trunkline_adapters.acp.content import text_of_tool
from trunkline_adapters.acp.native import objects_at
from trunkline_adapters.acp.state import Ask, AskKind, State, Tool, fact
from trunkline_adapters.acp.translate_message import close_segment
from trunkline_adapters.acp.translate_tools import asked_for, start
from trunkline_agentkit.fields import Obj, as_obj, items, obj, objects, text, truth
from trunkline_agentkit.jsonrpc import id_key
from trunkline_agentkit.protocol import Out
from trunkline_wire.asks import (
    AskOption,
    AskWithdrawn,
    PermissionRequested,
    PlanProposed,
    Question,
    QuestionAsked,
    QuestionOption,
)

_OPTION_KINDS: Final = ("allow_once", "allow_always", "reject_once", "reject_always")


def permission_requested(state: State, key: bytes, params: Obj) -> list[Out]:
    """`session/request_permission`: the call may be unknown yet, or named by nothing but its id."""
    if key in state.asks:
        return []
    call = obj(params, "toolCall")
    native = text(call, "toolCallId") or key.decode(errors="replace")
    out = close_segment(state)
    apart = state.profile.apart
    if apart and len(state.tools) == 1:
        (tool,) = state.tools.values()
        out += start(state, tool)
    elif apart:
        tool = Tool(native=native, item="", lane=state.lane_of(call), title=text(call, "title"))
    else:
        tool = asked_for(state, native, call)
        out += start(state, tool)
    if questions := _questions(objects_at(call, state.profile.questions_at)):
        ask = _open(state, key, "questions", params, tool, name=native)
        asked = QuestionAsked(ask=ask.ask, incarnation=state.context.incarnation, questions=questions, tool=ask.item)
        return [*out, fact(asked, item=ask.item, lane=ask.lane)]
    plan = _plan(tool, call)
    ask = _open(state, key, "plan" if plan is not None else "permission", params, tool, name=native)
    if plan is not None:
        data: Any = PlanProposed(
            ask=ask.ask, incarnation=state.context.incarnation, plan=plan, options=_options(params), tool=ask.item
        )
        return [*out, fact(data, item=ask.item, lane=ask.lane)]
    data = PermissionRequested(
        ask=ask.ask,
        incarnation=state.context.incarnation,
        name=tool.name or tool.kind,
        kind=tool.kind,
        title=tool.title,
        input=call.get("rawInput") or tool.input,
        options=_options(params),
        description=text_of_tool(objects(call, "content")) or None,
        tool=ask.item,
    )
    return [*out, fact(data, item=ask.item, lane=ask.lane)]


def _questions(natives: list[Obj]) -> list[Question]:
    """Questions that a permission request holds; their number is what the agent knows an answer by."""
    return [
        Question(
            id=str(number),
            text=text(one, "question") or "",
            header=text(one, "header"),
            options=[
                QuestionOption(label=text(option, "label") or "", description=text(option, "description"))
                for option in objects(one, "options")
            ],
            multiple=truth(one, "multiSelect"),
        )
        for number, one in enumerate(natives)
    ]


def _plan(tool: Tool, call: Obj) -> str | None:
    """The plan that a call proposes: a call to leave the mode of planning holds it."""
    if tool.kind != "switch_mode":
        return None
    return text(as_obj(tool.input), "plan") or text_of_tool(objects(call, "content")) or None


def _open(state: State, key: bytes, kind: AskKind, params: Obj, tool: Tool | None, *, name: str) -> Ask:
    # A call that asks again has another ask: the first one has had its end.
    times = state.asked.get(name, 0) + 1
    state.asked[name] = times
    ask = Ask(
        ask=state.ask(name if times == 1 else f"{name}#{times}"),
        key=key,
        kind=kind,
        params=params,
        tool=tool.native if tool is not None else None,
        item=(tool.item or None) if tool is not None else None,
        lane=tool.lane if tool is not None else None,
    )
    state.asks[key] = ask
    return ask


def _options(params: Obj) -> list[AskOption]:
    found: list[AskOption] = []
    for one in objects(params, "options"):
        kind, name = text(one, "kind"), text(one, "optionId")
        if name is not None:
            known = kind if kind in _OPTION_KINDS else "other"
            found.append(AskOption(id=name, name=text(one, "name") or name, kind=known))
    return found


def elicited(state: State, key: bytes, params: Obj) -> list[Out]:
    """`elicitation/create`: a form to fill in, or an address to visit."""
    if key in state.asks:
        return []
    tool = state.tools.get(text(params, "toolCallId") or "")
    url = text(params, "url")
    name = text(params, "elicitationId") or key.decode(errors="replace")
    ask = _open(state, key, "form" if url is None else "url", params, None, name=name)
    schema = obj(params, "requestedSchema")
    said = "\n".join(one for one in (text(params, "message"), url) if one)
    data = QuestionAsked(
        ask=ask.ask,
        incarnation=state.context.incarnation,
        message=said or None,
        questions=[_question(name, as_obj(one)) for name, one in obj(schema, "properties").items()],
        schema=schema or None,
        tool=tool.item if tool is not None else None,
    )
    return [*close_segment(state), fact(data, item=data.tool, lane=tool.lane if tool is not None else None)]


def _question(name: str, schema: Obj) -> Question:
    multiple = text(schema, "type") == "array"
    labels = choices(schema)
    boolean = text(schema, "type") == "boolean"
    options = [QuestionOption(label=label) for label in (["yes", "no"] if boolean else labels)]
    said = text(schema, "title") or name
    if (more := text(schema, "description")) is not None:
        said = f"{said}: {more}" if text(schema, "title") else more
    return Question(id=name, text=said, header=name, options=options, multiple=multiple, free_text=not options)


def choices(schema: Obj) -> dict[str, Any]:
    """What a property of a form may be: label -> value."""
    of = obj(schema, "items") if text(schema, "type") == "array" else schema
    titled = objects(of, "oneOf") or objects(of, "anyOf")
    if titled:
        return {text(one, "title") or str(one.get("const")): one.get("const") for one in titled}
    return {str(one): one for one in items(of, "enum")}


def decided(state: State, ask: Ask, *, denied: bool) -> None:
    """Somebody has decided it, and our answer is about to go out."""
    ask.answered = True
    about = state.tools.values() if state.profile.apart else filter(None, [state.tools.get(ask.tool or "")])
    for tool in about:
        tool.refused = denied


def answered(state: State, key: bytes, message: Obj) -> None:
    """Our answer to a request of the agent went out. One that only says that we have cancelled decides nothing."""
    ask = state.asks.get(key)
    if ask is None or ask.answered:
        return
    result = obj(message, "result")
    if text(obj(result, "outcome"), "outcome") == "cancelled" or text(result, "action") == "cancel":
        ask.cancelled = True
    else:
        decided(state, ask, denied=_refuses(ask, obj(result, "outcome")))


def _refuses(ask: Ask, outcome: Obj) -> bool:
    chosen = text(outcome, "optionId")
    kinds = [text(one, "kind") or "" for one in objects(ask.params, "options") if text(one, "optionId") == chosen]
    return bool(kinds) and kinds[0].startswith("reject")


def request_cancelled(state: State, params: Obj) -> list[Out]:
    """`$/cancel_request`: the agent takes a request back."""
    ask = state.asks.pop(id_key(params.get("requestId")), None)
    return [] if ask is None or ask.answered else [_withdrawn(ask, "cancelled")]


def elicitation_completed(state: State, params: Obj) -> list[Out]:
    """`elicitation/complete`: what was to be done at an address is done."""
    done = text(params, "elicitationId")
    found = [ask for ask in state.asks.values() if ask.kind == "url" and text(ask.params, "elicitationId") == done]
    for ask in found:
        del state.asks[ask.key]
    return [_withdrawn(ask, "answered_elsewhere") for ask in found if not ask.answered]


def withdraw_all(state: State) -> list[Out]:
    """A turn has ended: nobody waits any more for what it has asked."""
    interrupted = state.turn is not None and state.turn.interrupted
    left = [ask for ask in state.asks.values() if not ask.answered]
    state.asks.clear()
    return [_withdrawn(ask, "interrupted" if interrupted else "cancelled") for ask in left]


def _withdrawn(ask: Ask, why: Literal["cancelled", "answered_elsewhere", "interrupted"]) -> Out:
    return fact(AskWithdrawn(ask=ask.ask, why=why), item=ask.item, lane=ask.lane)

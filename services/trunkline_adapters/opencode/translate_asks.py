"""What the server wants decided: permissions and questions, and how they end."""

from typing import Final

from trunkline_adapters.opencode import tools
from trunkline_adapters.opencode.state import Ask, Part, State, fact
from trunkline_agentkit.fields import Obj, items, obj, objects, strings, text, truth
from trunkline_agentkit.protocol import Out
from trunkline_wire.asks import (
    AskOption,
    AskWithdrawn,
    PermissionRequested,
    Question,
    QuestionAsked,
    QuestionOption,
)

ONCE: Final = "once"
ALWAYS: Final = "always"
REJECT: Final = "reject"
STOP: Final = "stop"
"""Option ids. `reject` tells the model so and goes on, `stop` ends the turn."""


def asked(state: State, request: Obj, session: str, lane: str | None, *, question: bool) -> list[Out]:
    """`permission.asked` or `question.asked`. One that is known is not told again."""
    key = text(request, "id")
    if key is None or key in state.asks:
        return []
    tool = _tool_of(state, obj(request, "tool"))
    ask = Ask(
        ask=state.ask(key),
        key=key,
        kind="question" if question else "permission",
        session=session,
        request=request,
        tool=tool.item if tool is not None else None,
        lane=lane,
    )
    state.asks[key] = ask
    if tool is not None:
        tool.diff = text(obj(request, "metadata"), "diff")
    data = _question(state, ask) if question else _permission(state, ask, tool)
    return [fact(data, item=ask.tool, lane=lane)]


def _tool_of(state: State, tool: Obj) -> Part | None:
    """The open call that is asked about."""
    message, call = text(tool, "messageID"), text(tool, "callID")
    if call is None:
        return None
    return next(
        (one for one in state.parts.values() if one.message == message and text(one.body, "callID") == call), None
    )


def _permission(state: State, ask: Ask, tool: Part | None) -> PermissionRequested:
    request = ask.request
    name = text(request, "permission") or "unknown"
    meta = obj(request, "metadata")
    given = obj(obj(tool.body, "state"), "input") if tool is not None else {}
    always, patterns = strings(items(request, "always")), strings(items(request, "patterns"))
    called = (text(tool.body, "tool") if tool is not None else None) or name
    kind = tools.kind_of(called)
    return PermissionRequested(
        ask=ask.ask,
        incarnation=state.context.incarnation,
        name=name,
        kind=kind if kind != "other" else tools.kind_of(name),
        title=text(meta, "command") or text(meta, "filepath") or ", ".join(patterns) or name,
        input={**meta, **given},
        options=_options(always),
        suggestions=always or None,
        tool=ask.tool,
    )


def _options(always: list[str]) -> list[AskOption]:
    options = [AskOption(id=ONCE, name="Allow once", kind="allow_once")]
    if always:
        name = f"Allow from now on: {', '.join(always)}"
        options.append(AskOption(id=ALWAYS, name=name, kind="allow_always"))
    return [
        *options,
        AskOption(id=REJECT, name="Reject", kind="reject_once"),
        AskOption(id=STOP, name="Reject and stop", kind="reject_once"),
    ]


def _question(state: State, ask: Ask) -> QuestionAsked:
    questions: list[Question] = []
    for native in objects(ask.request, "questions"):
        options = [
            QuestionOption(label=text(one, "label") or "", description=text(one, "description"))
            for one in objects(native, "options")
        ]
        said = text(native, "question") or ""
        questions.append(
            Question(
                id=said,
                text=said,
                header=text(native, "header"),
                options=options,
                multiple=truth(native, "multiple"),
                free_text=native.get("custom") is not False,
            )
        )
    return QuestionAsked(ask=ask.ask, incarnation=state.context.incarnation, questions=questions, tool=ask.tool)


def sent(state: State, key: str, body: Obj) -> None:
    """Our answer to an ask goes out."""
    ask = state.asks.get(key)
    if ask is None:
        return
    ask.answered, ask.body = True, body
    refused = text(body, "reply") or text(body, "response")
    if refused == REJECT and text(body, "message") is None and ask.lane is None and state.turn is not None:
        state.turn.interrupted = True


def replied(state: State, properties: Obj) -> list[Out]:
    """`permission.replied`, `question.replied`, `question.rejected`: the server no longer waits, whoever has answered."""
    ask = state.asks.pop(text(properties, "requestID") or "", None)
    if ask is None or ask.answered:
        return []
    return [_withdrawn(ask, interrupted=False)]


def settle(state: State, item: str) -> list[Out]:
    """The call has its end: what it asked for is settled, by our answer or without us."""
    return _withdraw(state, [ask for ask in state.asks.values() if ask.tool == item], interrupted=_stopped(state))


def withdraw(state: State, session: str, *, interrupted: bool) -> list[Out]:
    """A turn of this session has ended: nobody waits any more for what was asked in it."""
    return _withdraw(state, [ask for ask in state.asks.values() if ask.session == session], interrupted=interrupted)


def missing(state: State, listed: set[str]) -> list[Out]:
    """The server lists what it waits for: everything else it has forgotten, or got an answer to from someone else."""
    return _withdraw(state, [ask for ask in state.asks.values() if ask.key not in listed], interrupted=False)


def _withdraw(state: State, asks: list[Ask], *, interrupted: bool) -> list[Out]:
    for ask in asks:
        del state.asks[ask.key]
    return [_withdrawn(ask, interrupted=interrupted) for ask in asks if not ask.answered]


def _stopped(state: State) -> bool:
    return state.turn is not None and state.turn.interrupted


def _withdrawn(ask: Ask, *, interrupted: bool) -> Out:
    data = AskWithdrawn(ask=ask.ask, why="interrupted" if interrupted else "answered_elsewhere")
    return fact(data, item=ask.tool, lane=ask.lane)

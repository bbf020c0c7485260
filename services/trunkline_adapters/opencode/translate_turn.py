"""Turns: how they begin, which of our requests each belongs to, what troubles them, and how they end."""

from typing import Final

from trunkline_adapters.opencode.content import blocks_of, command_of, native_text
from trunkline_adapters.opencode.errors import ABORTED, error_info, is_refusal, name_of
from trunkline_adapters.opencode.state import Beginning, BeginningKind, State, Turn, fact
from trunkline_adapters.opencode.translate_asks import withdraw
from trunkline_adapters.opencode.translate_parts import break_off, close_parts
from trunkline_adapters.opencode.usage import usage_of
from trunkline_agentkit.fields import Obj, obj, objects, text, truth, whole
from trunkline_agentkit.protocol import ItemEnd, Out
from trunkline_wire.errors import ErrorInfo
from trunkline_wire.session import SessionStatus
from trunkline_wire.turn import MessageUser, Outcome, TurnCompleted, TurnStarted
from trunkline_wire.work import ErrorRaised, TaskUpdated

_KINDS: Final[dict[str, BeginningKind]] = {
    "command": "command",
    "message": "prompt",
    "prompt_async": "prompt",
    "shell": "shell",
    "summarize": "summarize",
}


def requested(state: State, key: str, verb: str, body: Obj) -> None:
    """A request of ours to the session goes out; `key` is its number, `verb` the end of its path."""
    if verb == "abort" and state.turn is not None:
        state.turn.interrupted = True
    kind = _KINDS.get(verb)
    if kind is None or truth(body, "noReply"):
        return
    parts = objects(body, "parts")
    if kind == "summarize":
        state.compact_trigger = "manual"
    beginning = Beginning(
        kind=kind,
        request=key,
        command=command_of(parts) or state.next_command,
        content=blocks_of(parts) or native_text(text(body, "command")),
    )
    state.next_command = None
    state.beginnings.append(beginning)


def refused(state: State, key: str) -> None:
    """A request of ours was answered with an error."""
    state.beginnings = [one for one in state.beginnings if one.request != key or one is _cause(state)]


def given_up(state: State, command: str) -> list[Out]:
    """The server keeps a prompt of ours and does not answer it, however often it is asked to."""
    found = next((one for one in state.beginnings if one.command == command), None)
    if found is None:
        return []
    state.beginnings.remove(found)
    data = MessageUser(content=found.content, delivery="cancelled", command=command)
    return [fact(data, item=state.item(command))]


def _cause(state: State) -> Beginning | None:
    return state.turn.cause if state.turn is not None else None


def begin(state: State, parent: str | None = None) -> list[Out]:
    """A turn begins, if none is open. `parent` is the user message that is answered in it, where that is known."""
    if state.turn is not None:
        return []
    named = next((one for one in state.beginnings if parent is not None and one.message == parent), None)
    free = next((one for one in state.beginnings if parent is None or one.message is None), None)
    # A message that came another way, from a terminal on the same session, begins a turn that is none of ours.
    cause = named or (None if parent in state.users and named is None else free)
    state.turns += 1
    trigger = "other" if cause is None or cause.kind == "shell" else "prompt"
    state.turn = Turn(number=state.turns, trigger=trigger, cause=cause)
    data = TurnStarted(number=state.turns, trigger=trigger)
    return [fact(data, cause=cause.command if cause is not None else None)]


def answered(state: State, parent: str | None) -> list[Out]:
    """The model begins to answer a user message: one that is not the turn's own is told."""
    user = state.users.pop(parent, None) if parent is not None else None
    beginning = next((one for one in state.beginnings if parent is not None and one.message == parent), None)
    if beginning is not None:
        state.beginnings.remove(beginning)
        if beginning.command is not None and beginning.kind == "prompt":
            if beginning is _cause(state):
                return []
            content = beginning.content or blocks_of(list(user.parts.values()) if user is not None else [])
            data = MessageUser(content=content, delivery="steered", command=beginning.command)
            return [fact(data, item=state.item(beginning.command))]
    if user is None:
        return []
    parts = list(user.parts.values())
    said = [part for part in parts if not truth(part, "synthetic")]
    content = blocks_of(said or parts)
    written = not said or (beginning is not None and beginning.kind != "prompt")
    return [fact(MessageUser(content=content, synthetic=written), item=state.item(user.id))] if content else []


def busy(state: State) -> list[Out]:
    """The session works. Of several requests the answer will tell which one it works on."""
    if state.turn is not None:
        state.turn.idle = False
        return []
    return begin(state) if len(state.beginnings) == 1 else []


def retrying(state: State, status: Obj) -> list[Out]:
    """The model could not be reached, or refused; OpenCode itself asks again without end."""
    out = begin(state)
    attempt, reason = whole(status, "attempt"), text(status, "message")
    state.condition = "retrying"
    if state.turn is not None and attempt is not None and attempt > state.attempts:
        said = f"the model could not be asked, {attempt - 1} times in a row: {reason or 'no reason is told'}"
        state.turn.hopeless = ErrorInfo(code="agent_failed", message=said)
    data = SessionStatus(status="retrying", attempt=attempt, max_attempts=state.attempts, reason=reason)
    return [*out, *break_off(state, state.session or ""), fact(data)]


def child_rests(state: State, session: str) -> list[Out]:
    """A sub-agent has done its work."""
    if state.children.pop(session, None) is None:
        return []
    out = withdraw(state, session, interrupted=state.turn is not None and state.turn.interrupted)
    lane = state.lanes[session]
    return [*out, fact(TaskUpdated(task=session, status="completed", tool=lane), item=lane)]


def recover(state: State, *, ended: bool = False) -> list[Out]:
    """Something of the agent's work came, or its turn ended: what was told of its condition is over."""
    if state.condition is None or (state.condition == "compacting" and not ended):
        return []
    state.condition = None
    return [fact(SessionStatus(status=None))]


def failed(state: State, properties: Obj) -> list[Out]:
    """`session.error`: the reason for an end that follows."""
    error = obj(properties, "error")
    out = begin(state) if state.beginnings else []
    if state.turn is None:
        if name_of(error) == ABORTED:
            return []
        info = error_info(error, state.profile.login)
        return [fact(ErrorRaised(code=info.code, message=info.message, details=info.details))]
    note_error(state, state.turn, error)
    return out


def note_error(state: State, turn: Turn, error: Obj) -> None:
    """Notes why the turn may end."""
    if name_of(error) == ABORTED:
        turn.interrupted = True
        return
    turn.error = error_info(error, state.profile.login)
    turn.refused = is_refusal(error)


def idle(state: State) -> list[Out]:
    """The session rests: the turn is over, unless something of it is open, or no answer to it has come.

    After an abort the session is said to be idle before what it has cut off gets its end, and once more behind it.
    """
    turn = state.turn
    if turn is None:
        return []
    working = is_working(state)
    missing = not turn.answered and turn.error is None and not turn.interrupted
    if working or missing:
        turn.idle = True
        return []
    return end(state)


def is_working(state: State) -> bool:
    """Whether the model writes a message of the session's own."""
    return any(one.lane is None and not one.complete for one in state.messages.values())


def end(state: State) -> list[Out]:
    """The turn is over; what is still open of it gets its end, too."""
    turn = state.turn
    if turn is None:
        return []
    out: list[Out] = []
    main = state.session or ""
    for message in [one for one in state.messages.values() if one.lane is None]:
        out += [*close_parts(state, message.id), ItemEnd(message.item)]
        del state.messages[message.id]
        state.done.add(message.id)
        state.anchor = max(state.anchor, message.id)
    out += withdraw(state, main, interrupted=turn.interrupted)
    out += recover(state, ended=True)
    if turn.cause in state.beginnings:
        state.beginnings.remove(turn.cause)
    state.turn = None
    return [*out, fact(_ended(state, turn))]


def _ended(state: State, turn: Turn) -> TurnCompleted:
    outcome = _outcome(turn)
    return TurnCompleted(
        outcome=outcome,
        trigger=turn.trigger,
        error=_error(turn) if outcome not in ("success", "interrupted") else None,
        structured_output=turn.structured,
        usage=usage_of(turn.counts),
        cost_usd=turn.counts.cost,
        total_cost_usd=state.totals.cost,
        stop_reason=turn.finish,
        result=turn.said,
        lines_added=turn.lines_added,
        lines_removed=turn.lines_removed,
    )


def _outcome(turn: Turn) -> Outcome:
    if turn.hopeless is not None:
        return "error"
    if turn.interrupted:
        return "interrupted"
    if turn.aborted:
        return "aborted"
    if turn.error is not None or not turn.answered:
        return "refused" if turn.refused else "error"
    return "success"


def _error(turn: Turn) -> ErrorInfo:
    if turn.hopeless is not None:
        return turn.hopeless
    if turn.aborted:
        return ErrorInfo(
            code="agent_failed", message="the server ended in the middle of the turn: send the prompt again"
        )
    return turn.error or ErrorInfo(
        code="agent_failed", message="the turn ended without an answer: send the prompt again"
    )

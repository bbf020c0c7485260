"""Turns: begun by the prompt, ended by its answer."""

import msgspec

from trunkline_adapters.acp.content import prompt_blocks, prompt_text
from trunkline_adapters.acp.native import AUTH_REQUIRED, CODES, OUTCOMES, REPLAYING
from trunkline_adapters.acp.profiles import Profile
from trunkline_adapters.acp.state import Prompt, State, Turn, delivered, fact
from trunkline_adapters.acp.translate_asks import answered, withdraw_all
from trunkline_adapters.acp.translate_message import close_segment
from trunkline_adapters.acp.translate_tools import cancel_open
from trunkline_adapters.acp.usage import begin_counts, total_cost, turn_cost, turn_models, turn_usage
from trunkline_agentkit.fields import Obj, as_obj, obj, objects, text, whole
from trunkline_agentkit.jsonrpc import CANCELLED, id_key
from trunkline_agentkit.protocol import Out
from trunkline_wire import decode_json
from trunkline_wire.errors import ErrorInfo
from trunkline_wire.session import SessionStatus
from trunkline_wire.turn import Outcome, TurnCompleted, TurnStarted
from trunkline_wire.work import UsageUpdated


def sent(state: State, message: Obj) -> list[Out]:
    """A message of ours goes out. A prompt begins its turn there and then: an agent may die before it says a word."""
    method = text(message, "method")
    params = obj(message, "params")
    if method is None:
        answered(state, id_key(message.get("id")), message)
    elif "id" in message:
        # A recording says so that a process gave way to the next.
        out = cut(state) if method == "initialize" and state.turn is not None and state.turn.interrupted else []
        key = id_key(message["id"])
        state.requests[key] = (method, params)
        if out:
            return out
        if method == "session/prompt":
            return _prompted(state, key, params)
        if method in REPLAYING:
            state.loading = True
            begin_counts(state, method)
    elif method == "session/cancel" and state.turn is not None:
        state.turn.interrupted = True
    return []


def _prompted(state: State, key: bytes, params: Obj) -> list[Out]:
    prompt = state.coming or Prompt(command=None, content=prompt_blocks(params))
    prompt.key, prompt.said = key, prompt_text(objects(params, "prompt"))
    state.coming = None
    state.sent.append(prompt)
    state.loading = False
    return begin(state)


def begin(state: State, key: bytes | None = None) -> list[Out]:
    """A turn begins, if the agent has a prompt of ours and none is open: one that was sent while a turn ran has waited.

    `key` names the prompt's request.
    """
    if state.turn is not None:
        return []
    prompt = next((one for one in state.sent if key is None or one.key == key), None)
    if prompt is None:
        return []
    state.sent.remove(prompt)
    state.turns += 1
    state.turn = Turn(number=state.turns, prompt=prompt)
    return [fact(TurnStarted(number=state.turns), cause=prompt.command)]


def undelivered(state: State, command: str, error: ErrorInfo) -> list[Out]:
    """The prompt of this command could not be written: the turn that it began is over."""
    state.coming = None
    state.sent = [one for one in state.sent if one.command != command]
    turn = state.turn
    if turn is None or turn.prompt.command != command:
        return []
    state.turn = None
    return [fact(TurnCompleted(outcome="error", error=error))]


def ended(state: State, key: bytes, message: Obj) -> list[Out]:
    """The answer to a prompt: the turn's end, whatever it says."""
    out = begin(state, key)
    turn = state.turn
    if turn is None or turn.prompt.key != key:
        # A second prompt was answered while the first one's turn runs: it had no turn of its own.
        state.sent = [one for one in state.sent if one.key != key]
        return out
    result = obj(message, "result")
    outcome, error = _outcome(state.profile, turn, message)
    state.signed_out = error is not None and error.code == "agent_auth"
    out += _close(state, outcome)
    usage, total = turn_usage(state, result)
    out += [fact(UsageUpdated(usage=total)) for _ in range(total is not None)]
    data = TurnCompleted(
        outcome=outcome,
        error=error,
        usage=usage,
        cost_usd=turn_cost(state),
        total_cost_usd=total_cost(state),
        stop_reason=text(result, "stopReason"),
        models=turn_models(result),
    )
    _forget(state)
    return [*out, fact(data)]


def cut(state: State) -> list[Out]:
    """The agent was ended, a turn that was under way with it: what it owes us will not come."""
    out = _close(state, "interrupted")
    if state.turn is not None:
        out.append(fact(TurnCompleted(outcome="interrupted", usage=state.turn.usage, cost_usd=turn_cost(state))))
    _forget(state)
    state.requests.clear()
    state.sent.clear()
    state.coming = None
    state.signed_out = False
    return out


def _close(state: State, outcome: Outcome) -> list[Out]:
    """The ends of all that a turn has left open."""
    interrupted = outcome == "interrupted"
    out = close_segment(state, aborted=interrupted)
    out += cancel_open(state, "the turn was interrupted" if interrupted else "the turn ended without a result")
    out += withdraw_all(state)
    out += [fact(SessionStatus(status=None)) for _ in range(bool(state.compacting))]
    return out + [delivered(state, prompt, "cancelled") for prompt in state.dropped]


def _forget(state: State) -> None:
    state.turn = None
    state.compacting.clear()
    state.dropped.clear()
    state.blocks.clear()
    state.finished.clear()
    state.terminals.clear()


def _outcome(profile: Profile, turn: Turn, message: Obj) -> tuple[Outcome, ErrorInfo | None]:
    """The agent's own word decides. One that was interrupted too late says `end_turn`, and what it cost to get there; one that
    was interrupted and says `end_turn` alone has only not learnt the word for it.
    """
    if "error" not in message or message["error"] is None:
        result = obj(message, "result")
        stop = text(result, "stopReason") or "end_turn"
        if turn.interrupted and stop == "end_turn" and not whole(obj(result, "usage"), "outputTokens"):
            return "interrupted", None
        if turn.failure is not None and stop == "end_turn":
            said = _words(turn.failure) or "the agent says that the turn has failed, and not why"
            return "error", ErrorInfo(code="agent_failed", message=said[:4000])
        return OUTCOMES.get(stop, "success"), None
    error = obj(message, "error")
    code = whole(error, "code") or 0
    if code == CANCELLED or (turn.interrupted and code not in CODES):
        return "interrupted", None
    said = _words(text(error, "message") or "the agent gave no reason")
    details = text(obj(error, "data"), "details") or text(obj(error, "data"), "message")
    if details is not None and details not in said:
        said = f"{said}: {details}"
    ours = "agent_auth" if code == AUTH_REQUIRED or profile.is_signed_out(said) else "agent_failed"
    return "error", ErrorInfo(code=ours, message=said[:4000], details={"native_code": code})


def _words(said: str) -> str:
    """The message within a message that is the body of a model API's error."""
    if not said.startswith("{"):
        return said
    try:
        body = as_obj(decode_json(said))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return said
    return text(obj(body, "error"), "message") or text(body, "message") or said

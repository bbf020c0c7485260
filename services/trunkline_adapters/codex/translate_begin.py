"""How turns begin: which of our requests each belongs to, and what a beginning ends."""

from trunkline_adapters.codex.content import blocks_of
from trunkline_adapters.codex.native import BEGINNING
from trunkline_adapters.codex.state import Beginning, State, Turn, fact
from trunkline_agentkit.fields import Obj, items, obj, text
from trunkline_agentkit.protocol import Out
from trunkline_wire.asks import AskWithdrawn
from trunkline_wire.session import SessionStatus
from trunkline_wire.turn import MessageUser, TurnStarted


def requested(state: State, key: str, method: str, params: Obj) -> None:
    """A request of ours goes out; `key` is its id as JSON text."""
    client = text(params, "clientUserMessageId")
    if client is not None:
        state.ours.add(client)
        if method == "turn/steer":
            state.steered.add(client)
    if method == "thread/compact/start":
        state.compact_asked = True
    if method not in BEGINNING or not state.main(params):
        return
    state.beginnings[key] = Beginning(
        method=method,
        command=client or state.next_command,
        content=blocks_of(items(params, "input")),
        schema=params.get("outputSchema") is not None,
    )
    state.next_command = None


def answered(state: State, key: str, result: Obj) -> list[Out]:
    """The answer to a request that begins a turn. It may come before or after the turn's first messages."""
    beginning = state.beginnings.get(key)
    turn = text(obj(result, "turn"), "id")
    if beginning is None or turn is None:
        return []
    beginning.turn = turn
    if state.turn is None or turn not in state.turn.ids:
        return []
    # A turn that another request has begun: Codex folds the message into it.
    del state.beginnings[key]
    if beginning.command is None:
        return []
    data = MessageUser(content=beginning.content, delivery="steered", command=beginning.command)
    return [fact(data, item=state.item(beginning.command))]


def refused(state: State, key: str, method: str) -> None:
    """A request of ours was answered with an error."""
    state.beginnings.pop(key, None)
    if method == "thread/compact/start":
        state.compact_asked = False


def begin(state: State, params: Obj) -> list[Out]:
    """A turn of the session's own thread begins, if none is open and this one hasn't ended already."""
    turn = obj(params, "turn")
    id = text(params, "turnId") or text(turn, "id")
    if id is None or state.thread is None or not state.main(params):
        return []
    ids = {id, *([root] if (root := text(turn, "rootTurnId")) else [])}
    if state.turn is not None:
        state.turn.ids |= ids
        state.turn.id = id
        return []
    if id in state.done:
        return []
    beginning = _take(state, ids)
    state.turns += 1
    state.turn = Turn(
        id=id,
        number=state.turns,
        trigger="other" if beginning is None or beginning.method == "thread/shellCommand" else "prompt",
        ids=ids,
        schema=beginning is not None and beginning.schema,
    )
    data = TurnStarted(number=state.turns, trigger=state.turn.trigger)
    cause = beginning.command if beginning is not None else None
    return [*_settle_plans(state), fact(data, cause=cause)]


def _take(state: State, ids: set[str]) -> Beginning | None:
    """The request that this turn belongs to: the one whose answer named it, else the oldest without an answer."""
    named = next((key for key, one in state.beginnings.items() if one.turn in ids), None)
    key = named or next((key for key, one in state.beginnings.items() if one.turn is None), None)
    return state.beginnings.pop(key) if key is not None else None


def _settle_plans(state: State) -> list[Out]:
    """With a new turn, nobody waits any more for what becomes of a plan."""
    plans = [ask for ask in state.asks.values() if ask.kind == "plan"]
    for ask in plans:
        del state.asks[ask.key]
    return [
        fact(AskWithdrawn(ask=ask.ask, why="answered_elsewhere"), item=ask.tool) for ask in plans if ask.answer is None
    ]


def recover(state: State) -> list[Out]:
    """Something of the agent's work came, or its turn ended: what was told of its condition is over."""
    if state.condition is None or (state.condition == "compacting" and _compacts(state)):
        return []
    state.condition = None
    return [fact(SessionStatus(status=None))]


def _compacts(state: State) -> bool:
    return any(one.kind == "contextCompaction" for one in state.open.values())

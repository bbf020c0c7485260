"""A thread that ran on while nobody listened: what the log holds of it, and what happened meanwhile. Pure.

Over a new connection Codex sends again what it waits for, and lists turns with the items that have ended. The last list
settles it: what it names and the log lacks is told, and asks that did not come again are over.
"""

from trunkline_adapters.codex import modes, tools
from trunkline_adapters.codex.state import Ask, Beginning, Known, Open, State, Turn, changed, fact
from trunkline_adapters.codex.translate_asks import missing
from trunkline_adapters.codex.translate_begin import begin
from trunkline_adapters.codex.translate_items import completed as item_completed
from trunkline_adapters.codex.translate_turn import completed as turn_completed
from trunkline_agentkit import Survivor
from trunkline_agentkit.fields import Obj, items, obj, objects, strings, text
from trunkline_agentkit.protocol import Out
from trunkline_fold.session import SessionState
from trunkline_wire.session import SessionResumed

_RUNNING = frozenset({"pending", "running"})
_WAITING = frozenset({"waitingOnApproval", "waitingOnUserInput"})
_ENDING_ALONE = frozenset({"authenticating", "compacting", "retrying"})


def restore(state: State, survivor: Survivor) -> None:
    """Puts a new state to where the log of another worker ended."""
    session = survivor.session
    state.lost = state.adopting = state.adopted = True
    state.survivor = survivor
    # One that was decided and not delivered is as open to Codex as any other.
    state.standing = {id: ask.status == "open" or ask.deliverable for id, ask in survivor.asks.items()}
    state.thread = session.native_session
    state.turns = session.turns
    state.known = Known(model=session.model, mode=session.mode, thinking=session.thinking, title=session.title)
    state.condition = session.condition if session.condition in _ENDING_ALONE else None
    for command in survivor.prompts:
        state.ours.add(command)
    for task in session.tasks:
        if task.kind == "subagent" and task.tool is not None:
            state.lanes[task.task] = task.tool
            if task.status in _RUNNING:
                state.running.add(task.task)
    if session.turn is not None:
        turn = session.turn
        state.turn = Turn(id="", number=turn.number, trigger=turn.trigger, ids=set(), schema=_schema(session))
    for item, call in survivor.calls.items():
        _reopen(state, item, tools.reopened(call.started), call.lane)
    for ask in survivor.asks.values():
        if ask.status == "open" and ask.kind == "plan":
            key = f"plan:{ask.ask}"
            state.asks[key] = Ask(
                ask=ask.ask, key=key, request_id=None, kind="plan", params={}, thread=state.thread or "", tool=None
            )


def _schema(session: SessionState) -> bool:
    return session.options.output_schema is not None


def _reopen(state: State, item: str, body: Obj, lane: str | None) -> None:
    native = text(body, "id") or ""
    for thread in (state.thread or "", *state.lanes):
        name = state.native_item(thread, native)
        if state.item(name) == item:
            kind = text(body, "type") or ""
            state.open[name] = Open(
                native=name, thread=thread, item=item, kind=kind, body=body, lane=lane, started=True, halved=True
            )


def find_turn(state: State, result: Obj) -> None:
    """Which of the thread's turns the log has open, and which it lacks: from a list with the latest first.

    A turn is known by the commands that brought its messages. `state.reach` becomes the number of turns to look at, 0 where
    the open turn is not among them.
    """
    assert state.survivor is not None
    session, prompts = state.survivor.session, {*state.survivor.prompts}
    turns = objects(result, "data")
    brought = [{text(item, "clientId") for item in objects(turn, "items")} - {None} for turn in turns]
    state.reach = 1
    if state.turn is not None and session.turn is not None:
        cause = session.turn.cause
        here = [number for number, commands in enumerate(brought) if cause in commands]
        if not here and cause not in prompts:
            # A review, a compaction, or what another client began: no message of ours has brought it.
            here = [number for number, commands in enumerate(brought) if not commands & prompts]
        if not here:
            state.reach = 0
            return
        state.turn.id, state.turn.ids = _ids(turns[here[0]])
        state.reach = here[0] + 1
    for number, (turn, commands) in enumerate(zip(turns, brought, strict=True)):
        id, ids = _ids(turn)
        if state.turn is not None and id in state.turn.ids:
            continue
        if begun := sorted(commands & {*session.pending}, key=str):
            state.beginnings[id] = Beginning(method="turn/start", command=begun[0], schema=_schema(session), turn=id)
            state.reach = max(state.reach, number + 1)
        elif text(turn, "status") != "inProgress":
            for one in ids:
                state.done.add(one)


def _ids(turn: Obj) -> tuple[str, set[str]]:
    id = text(turn, "id") or ""
    return id, {id, text(turn, "rootTurnId") or id}


def resumed(state: State, result: Obj) -> list[Out]:
    """The answer to `thread/resume` of a thread that may have gone on without us."""
    thread = obj(result, "thread")
    id = text(thread, "id")
    status = obj(thread, "status")
    if id is not None and _WAITING & {*strings(items(status, "activeFlags"))} and id not in state.asking:
        state.awaiting.add(id)
    if id != state.thread:
        return []
    fresh = {"model": text(result, "model"), "thinking": text(result, "reasoningEffort"), "title": text(thread, "name")}
    if state.known.mode != modes.PLAN:
        fresh["mode"] = modes.mode_of(result)
    state.known.workspace = modes.workspace_of(obj(result, "sandbox")) or state.known.workspace
    return changed(state, fresh)


def listed(state: State, thread: str, result: Obj) -> list[Out]:
    """A thread's last turns, whole: of a sub-agent, or of the session's own, which comes last and settles all."""
    if thread != state.thread:
        return _listed_sub_agent(state, thread, result)
    state.lost = False
    out = missing(state)
    for turn in reversed(objects(result, "data")):
        current = state.turn
        id = text(turn, "id")
        if id is None or id in state.done:
            continue
        ended = text(turn, "status") != "inProgress"
        if current is None and ended and not state.beginnings:
            continue
        params: Obj = {"threadId": state.thread, "turnId": id}
        out += begin(state, params)
        for item in objects(turn, "items"):
            if ended or item.get("completedAtMs") is not None:
                out += item_completed(state, params | {"item": item}, None)
        if ended:
            out += turn_completed(state, params | {"turn": turn}, None)
    held, state.held = state.held, None
    if held is not None and text(obj(held, "turn"), "id") not in state.done:
        out += turn_completed(state, held, None)
    if state.adopting:
        state.adopting, state.survivor = False, None
        out.append(fact(SessionResumed(how="adopted", native_session=state.thread)))
    return out


def _listed_sub_agent(state: State, thread: str, result: Obj) -> list[Out]:
    lane = state.lanes.get(thread)
    turn = next(iter(objects(result, "data")), {})
    if lane is None or thread not in state.running:
        return []
    out: list[Out] = []
    params: Obj = {"threadId": thread, "turnId": text(turn, "id")}
    ended = text(turn, "status") != "inProgress"
    for item in objects(turn, "items"):
        if ended or item.get("completedAtMs") is not None:
            out += item_completed(state, params | {"item": item}, lane)
    return out + (turn_completed(state, params | {"turn": turn}, lane) if ended else [])

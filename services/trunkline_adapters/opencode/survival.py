"""A session of a shared server that ran on while no worker lived: what the log holds of it, and what it lacks. Pure.

A new owner reads the server's state back as after a gap (`reading`), the open turn from its beginning. What the log has is left
out of what that tells; what it has open and the server knows nothing of is ended. Where a turn ended and another client began
the next in between, the server does not say: then both are told as one.
"""

from trunkline_adapters.opencode.content import command_of
from trunkline_adapters.opencode.state import Beginning, Known, State, Turn, fact
from trunkline_agentkit import Survivor
from trunkline_agentkit.fields import Obj, obj, objects, text, whole
from trunkline_agentkit.history import millis
from trunkline_agentkit.protocol import Fact, Out
from trunkline_wire.asks import AskWithdrawn, PermissionRequested, QuestionAsked
from trunkline_wire.session import SessionResumed
from trunkline_wire.turn import MessageAssistant, MessageUser, ToolCompleted, ToolStarted
from trunkline_wire.work import FileChanged, TaskUpdated

_CONDITIONS = frozenset({"compacting", "retrying"})
_RUNNING = frozenset({"pending", "running"})


def restore(state: State, survivor: Survivor) -> None:
    """Puts a new state to where the log of another worker ended."""
    session = survivor.session
    state.survivor = survivor
    state.lost = True
    state.session = session.native_session
    state.turns = session.turns
    state.known = Known(model=session.model, mode=session.mode, title=session.title)
    state.condition = session.condition if session.condition in _CONDITIONS else None
    for task in session.tasks:
        if task.kind == "subagent" and task.tool is not None:
            state.lanes[task.task] = task.tool
            if task.status in _RUNNING:
                state.children[task.task] = state.session or ""
    if session.turn is not None:
        state.turn = Turn(number=session.turn.number, trigger=session.turn.trigger)


def is_old(state: State, survivor: Survivor, info: Obj) -> bool:
    """Whether a message was told before the turn that is open: what stands before it is of no interest."""
    return state.item(text(info, "id") or "") in survivor.before


def place(state: State, survivor: Survivor, messages: list[Obj]) -> None:
    """From the session's messages, the oldest first: where news begins, and which of our prompts the server keeps."""
    brought = [command_of(objects(message, "parts")) for message in messages]
    session = survivor.session
    cause = session.turn.cause if session.turn is not None else None
    begun = next((at for at, command in enumerate(brought) if command is not None and command == cause), None)
    if session.turn is not None and state.turn is not None and cause is not None:
        kind = "prompt" if begun is not None else "command"
        state.turn.cause = Beginning(kind=kind, request="", command=cause)
        state.beginnings.append(state.turn.cause)
    state.beginnings += [
        Beginning(kind="prompt", request="", command=command)
        for command in brought
        if command is not None and command != cause and command in session.pending
    ]
    first = begun if begun is not None else _first_news(state, survivor, messages)
    for message in messages[:first]:
        info = obj(message, "info")
        id = text(info, "id") or ""
        if text(info, "role") == "user":
            # Its id may have been chosen by a client, and say nothing about time.
            state.done.add(id)
        else:
            state.anchor = max(state.anchor, id)


def _first_news(state: State, survivor: Survivor, messages: list[Obj]) -> int:
    """Behind what was told before the turn, and behind what ended unheard while a worker still lived."""
    pending = {*survivor.session.pending}
    now = millis(survivor.session.updated) if survivor.session.updated else 0
    first = 0
    for number, message in enumerate(messages):
        info, parts = obj(message, "info"), objects(message, "parts")
        if command_of(parts) in pending and text(info, "role") == "user":
            break
        over = whole(obj(info, "time"), "completed") or (
            text(info, "role") == "user" and whole(obj(info, "time"), "created")
        )
        at_rest = survivor.session.turn is None and over and over <= now
        if is_old(state, survivor, info) or at_rest:
            first = number + 1
    return first


def settled(state: State, survivor: Survivor, out: list[Out]) -> list[Out]:
    """What the log lacks of `out`, the ends of what is open there alone, and that the session was taken up."""
    state.survivor = None
    news = [one for one in out if not (isinstance(one, Fact) and _is_held(survivor, one))]
    ended = {one.item for one in news if isinstance(one, Fact) and isinstance(one.data, ToolCompleted)}
    known = {one.item for one in state.parts.values()} | ended
    lost: list[Out] = [
        fact(
            ToolCompleted(status="cancelled", reason="the server does not know the call any more"),
            item=item,
            lane=call.lane,
        )
        for item, call in survivor.calls.items()
        if item not in known
    ]
    waiting = {ask.ask for ask in state.asks.values()}
    withdrawn = {one.data.ask for one in news if isinstance(one, Fact) and isinstance(one.data, AskWithdrawn)}
    over: list[Out] = [
        fact(AskWithdrawn(ask=id, why="answered_elsewhere"), lane=ask.lane)
        for id, ask in survivor.asks.items()
        if ask.status == "open" and id not in waiting and id not in withdrawn
    ]
    return [*over, *lost, *news, fact(SessionResumed(how="adopted", native_session=state.session))]


def _is_held(survivor: Survivor, one: Fact) -> bool:
    item = one.item or ""
    match one.data:
        case MessageAssistant() as said:
            return (item, said.block or 0) in survivor.blocks
        case MessageUser(command=None) | ToolCompleted():
            return item in survivor.told
        case FileChanged() as changed:
            return (item, changed.path) in survivor.files
        case ToolStarted():
            return item in survivor.told or item in survivor.calls
        case PermissionRequested() | QuestionAsked() as asked:
            return asked.ask in survivor.asks
        case TaskUpdated() as task:
            return any(known.task == task.task and known.status == task.status for known in survivor.session.tasks)
        case _:
            return False

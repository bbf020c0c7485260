"""What was missed: the server repeats no event, so its state is read back and told, once, where it is news. Pure.

The answers come in this order: `GET /session/status`, the messages (`GET /session/{id}/message`, the newest page first) of the
session and of its sub-agents, `GET /permission`, `GET /question`; with the last one everything is there. Events that come
meanwhile wait behind it, and may say again what was read: every part is told once.
"""

from typing import Any

from trunkline_adapters.opencode import survival, translate_asks, translate_messages
from trunkline_adapters.opencode.state import Reading, State
from trunkline_adapters.opencode.translate_session import session_updated
from trunkline_adapters.opencode.translate_turn import begin, child_rests, end, is_working, recover
from trunkline_agentkit.fields import Obj, as_obj, obj, objects, text, whole
from trunkline_agentkit.protocol import Out


def lose(state: State) -> None:
    """Events may have been missed: of texts that are being written no piece is told any more."""
    state.lost = True
    state.reading = None
    for one in state.parts.values():
        one.holed = True


def read(state: State, request: str, body: Any) -> list[Out] | None:
    """The answer to one of the requests that read the state back; None for any other."""
    path = request.partition("?")[0]
    parts = path.removeprefix("GET /").split("/")
    if path == "GET /session/status":
        busy = text(obj(as_obj(body), state.session or ""), "type") in {"busy", "retry"}
        state.reading = Reading(busy=busy)
        return []
    reading = state.reading
    if reading is None:
        return None
    if len(parts) == 3 and parts[0] == "session" and parts[2] == "message":
        page = objects({"page": body}, "page")
        reading.messages[parts[1]] = page + reading.messages.get(parts[1], [])
        return []
    if path == f"GET /session/{state.session}":
        return session_updated(state, as_obj(body))
    if path == "GET /permission":
        reading.permissions = objects({"asks": body}, "asks")
        return []
    if path == "GET /question":
        # What is being written was missed in part: none of its pieces is told.
        out = _reconcile(state, reading, objects({"asks": body}, "asks"))
        state.reading, state.lost = None, False
        return out
    return None


def children(state: State) -> list[str]:
    """The sessions of sub-agents whose messages are to be read back too: those that were known, and those that were read of."""
    found = dict.fromkeys(state.children)
    for page in (state.reading.messages if state.reading is not None else {}).values():
        for message in page:
            if not is_news(state, obj(message, "info")):
                continue
            for part in objects(message, "parts"):
                if (child := text(obj(obj(part, "state"), "metadata"), "sessionId")) is not None:
                    found[child] = None
    return list(found)


def is_news(state: State, info: Obj) -> bool:
    """Whether a message is of the running turn, or of a later one."""
    if state.survivor is not None and not state.anchor:
        return not survival.is_old(state, state.survivor, info)
    return not state.is_old(info)


def _reconcile(state: State, reading: Reading, questions: list[Obj]) -> list[Out]:
    survivor = state.survivor
    if survivor is None:
        return _told(state, reading, questions)
    survival.place(state, survivor, reading.messages.get(state.session or "", []))
    return survival.settled(state, survivor, _told(state, reading, questions))


def _told(state: State, reading: Reading, questions: list[Obj]) -> list[Out]:
    out: list[Out] = []
    main = state.session or ""
    if state.resumed:
        state.resumed = False
        _skip(state, reading.messages.get(main, []), busy=reading.busy)
    for session in [main, *(one for one in reading.messages if one != main)]:
        lane = None if session == main else state.lanes.get(session)
        if session != main and lane is None:
            continue
        for message in reading.messages.get(session, []):
            out += _message(state, message, session, lane)
    calls = {one.item for one in state.parts.values()}
    for child in [one for one in state.children if one in reading.messages and state.lanes[one] not in calls]:
        out += child_rests(state, child)
    listed = [(one, False) for one in reading.permissions] + [(one, True) for one in questions]
    ours = {main, *state.lanes}
    for request, question in listed:
        session = text(request, "sessionID") or ""
        if session in ours:
            out += _asked(state, request, session, question=question)
    out += translate_asks.missing(state, {text(request, "id") or "" for request, _ in listed})
    if reading.busy:
        waiting = len(state.beginnings) == 1 and state.beginnings[0].message is not None
        return out + (begin(state) if waiting and state.turn is None else [])
    return out + _rest(state)


def _skip(state: State, page: list[Obj], *, busy: bool) -> None:
    """What was said before the session was taken up is no news; of a turn that still runs only the message under way is."""
    for message in page:
        info = obj(message, "info")
        id = text(info, "id") or ""
        if text(info, "role") == "user":
            # Its id may have been chosen by a client, and say nothing about time.
            state.done.add(id)
        elif not busy or whole(obj(info, "time"), "completed") is not None:
            state.anchor = max(state.anchor, id)


def _message(state: State, message: Obj, session: str, lane: str | None) -> list[Out]:
    """A message as it was read: first that it is there, then its parts, then that it is complete."""
    info, parts = obj(message, "info"), objects(message, "parts")
    if lane is None and not is_news(state, info):
        return []
    begun = info | {"time": {name: value for name, value in obj(info, "time").items() if name != "completed"}}
    out = translate_messages.updated(state, begun, session, lane)
    for part in parts:
        out += translate_messages.part_updated(state, part, session, lane)
    return out + (translate_messages.updated(state, info, session, lane) if info != begun else [])


def _asked(state: State, request: Obj, session: str, *, question: bool) -> list[Out]:
    known = state.asks.get(text(request, "id") or "")
    if known is not None:
        if known.answered:
            state.repeats.append(known)
        return []
    return translate_asks.asked(state, request, session, state.lanes.get(session), question=question)


def _rest(state: State) -> list[Out]:
    """The session rests: nothing of its turn goes on."""
    turn = state.turn
    if turn is None:
        return recover(state, ended=True)
    turn.aborted = turn.aborted or (is_working(state) and not turn.interrupted)
    return end(state)

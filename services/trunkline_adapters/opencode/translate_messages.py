"""Messages: those of users, and those of the model from their beginning to their completion."""

from trunkline_adapters.opencode import translate_parts
from trunkline_adapters.opencode.content import command_of
from trunkline_adapters.opencode.errors import ABORTED, name_of
from trunkline_adapters.opencode.state import Message, State, User, fact, passing
from trunkline_adapters.opencode.translate_session import diff_told
from trunkline_adapters.opencode.translate_turn import answered, begin, note_error, recover
from trunkline_adapters.opencode.usage import counts
from trunkline_agentkit.fields import Obj, obj, objects, text, truth, whole
from trunkline_agentkit.protocol import ItemEnd, Out
from trunkline_wire.errors import ErrorInfo
from trunkline_wire.session import SessionStatus
from trunkline_wire.turn import MessageSystem

_BROKEN = 5
"""Answers of the model in a row that may break off before the turn is ended."""


def updated(state: State, info: Obj, session: str, lane: str | None) -> list[Out]:
    """`message.updated`."""
    id = text(info, "id")
    if id is None:
        return []
    if text(info, "role") == "user":
        return _user(state, info, id, session, lane)
    if id in state.done or (lane is None and state.is_old(info)):
        return []
    out: list[Out] = []
    message = state.messages.get(id)
    if message is None:
        message, out = open_message(state, id, session, lane, text(info, "parentID"))
    message.summary = truth(info, "summary")
    if whole(obj(info, "time"), "completed") is None:
        return out or passing(message.item, lane=lane)
    return out + _complete(state, message, info)


def open_message(
    state: State, id: str, session: str, lane: str | None, parent: str | None
) -> tuple[Message, list[Out]]:
    """A message of the model begins."""
    out: list[Out] = []
    if lane is None:
        out = begin(state, parent) + answered(state, parent)
        if state.turn is not None:
            state.turn.answered, state.turn.idle, state.turn.error = True, False, None
    message = Message(id=id, item=state.item(id), session=session, lane=lane, parent=parent)
    state.messages[id] = message
    return message, out


def _user(state: State, info: Obj, id: str, session: str, lane: str | None) -> list[Out]:
    if diffs := objects(obj(info, "summary"), "diffs"):
        return diff_told(state, id, diffs, lane)
    if id in state.done or lane is not None:
        return []
    state.done.add(id)
    state.users[id] = User(id=id, session=session)
    if len(state.users) > 256:
        state.users.pop(next(iter(state.users)))
    # What can't carry the id of its command is the next user message.
    for beginning in state.beginnings:
        if beginning.message is None and (beginning.kind != "prompt" or beginning.command is None):
            beginning.message = id
            break
    return passing(state.item(id))


def part_updated(state: State, part: Obj, session: str, lane: str | None) -> list[Out]:
    """`message.part.updated`."""
    id = text(part, "messageID")
    if id is None:
        return []
    user = state.users.get(id)
    if user is not None:
        return _user_part(state, user, part)
    message = state.messages.get(id)
    if message is not None:
        out = translate_parts.updated(state, message, part)
        leave(state, message)
        return [*recover(state), *out] if lane is None and out else out
    if id in state.done or lane is not None or id <= state.anchor or _is_users(part):
        return []
    message, begun = open_message(state, id, session, lane, None)
    return begun + translate_parts.updated(state, message, part)


def _is_users(part: Obj) -> bool:
    """Whether a part of an unknown message is one of a user's: those have no time."""
    return text(part, "type") not in {"reasoning", "tool", "step-start", "step-finish"} and not obj(part, "time")


def _user_part(state: State, user: User, part: Obj) -> list[Out]:
    user.parts[text(part, "id") or ""] = part
    if (command := command_of([part])) is not None:
        for beginning in state.beginnings:
            if beginning.command == command:
                beginning.message = user.id
    if text(part, "type") != "compaction":
        return passing(state.item(user.id))
    if truth(part, "auto"):
        state.compact_trigger = "auto"
    state.compacting_from = state.context_used
    state.condition = "compacting"
    return [fact(SessionStatus(status="compacting"))]


def _complete(state: State, message: Message, info: Obj) -> list[Out]:
    """The model has written all of a message; what is left open of it was cut off."""
    if message.complete:
        return []
    message.complete = True
    out = [*translate_parts.close_parts(state, message.id, calls=False), ItemEnd(message.item)]
    leave(state, message)
    used, turn = counts(info), state.turn
    if turn is not None:
        turn.counts += used
    if message.lane is not None:
        return out
    if used.tokens and not message.summary:
        state.context_used = used.tokens
    error = obj(info, "error")
    if turn is None:
        return out
    turn.finish = text(info, "finish") or turn.finish
    turn.structured = info.get("structured", turn.structured)
    if error:
        note_error(state, turn, error)
    if text(info, "finish") == "unknown" and name_of(error) != ABORTED:
        out.append(_broke_off(state))
    else:
        turn.broken = 0
    return out


def leave(state: State, message: Message) -> None:
    """Forgets a complete message; the call of a command of the user's has its end only behind it."""
    if message.complete and not any(one.message == message.id for one in state.parts.values()):
        state.messages.pop(message.id, None)
        state.done.add(message.id)


def _broke_off(state: State) -> Out:
    """OpenCode takes a stream that breaks off for an answer, and asks the model again."""
    if state.turn is not None:
        state.turn.broken += 1
        if state.turn.broken >= _BROKEN and state.turn.hopeless is None:
            said = f"the model's answer broke off {state.turn.broken} times in a row"
            state.turn.hopeless = ErrorInfo(code="agent_failed", message=said)
    return fact(MessageSystem(text="The model's answer broke off", level="warning", kind="stream_dropped"))

"""What a history tells of a time in a terminal, and what of that the log lacks."""

from typing import Any

from trunkline_agentkit.history import Entry
from trunkline_agentkit.own_terminal import missed
from trunkline_wire import Data, Event, make_event
from trunkline_wire.blocks import TextBlock
from trunkline_wire.ids import new_event_id, new_session_id
from trunkline_wire.session import SessionHandedOver
from trunkline_wire.turn import MessageAssistant, MessageUser, TurnCompleted, TurnStarted

SESSION = new_session_id()


def at(second: int) -> str:
    return f"2026-01-01T00:00:{second:02d}.000000Z"


def event(data: Data, second: int, **fields: Any) -> Event:
    return make_event(data, session=SESSION, time=at(second), **fields)


def entry(data: Data, second: int, turn: str | None = "tur_1") -> Entry:
    return Entry(id=new_event_id(), data=data, time=at(second), turn=turn)


def user(text: str, **fields: Any) -> MessageUser:
    return MessageUser(content=[TextBlock(text=text)], **fields)


def test_what_was_said_in_the_terminal_is_told_once_and_nothing_else() -> None:
    before = entry(user("before"), 1)
    sent, typed = entry(user("sent  here"), 12, None), entry(user("by hand"), 15, None)
    answer = entry(MessageAssistant(content=[TextBlock(text="yes")]), 16, "tur_2")
    frames = entry(TurnStarted(number=1), 12), entry(TurnStarted(number=2), 15, "tur_2")
    end = entry(TurnCompleted(outcome="success"), 17, "tur_2")
    history = [before, sent, frames[0], typed, frames[1], answer, end]
    log = [
        event(user("by hand", command="cmd_0"), 2),  # in another time
        event(SessionHandedOver(to="terminal"), 10),
        event(user("sent here", command="cmd_1"), 11),
    ]
    told = list(missed(log, history))
    assert [one.id for one in told] == [typed.id, answer.id]
    assert [one.turn for one in told] == ["tur_2", "tur_2"], "a prompt belongs to the turn that it begins"
    again = [*log, *(event(one.data, 18, id=one.id) for one in told[:1])]
    assert [one.id for one in missed(again, history)] == [answer.id]


def test_a_session_that_was_in_no_terminal_misses_nothing() -> None:
    assert list(missed([event(user("x", command="cmd_0"), 1)], [entry(user("y"), 5)])) == []


def test_a_prompt_that_was_cancelled_does_not_hide_one_that_was_typed() -> None:
    typed = entry(user("same"), 12)
    log = [
        event(SessionHandedOver(to="terminal"), 10),
        event(user("same", command="cmd_1"), 11),
        event(MessageUser(content=[], delivery="cancelled", command="cmd_1"), 11),
    ]
    assert [one.id for one in missed(log, [typed])] == [typed.id]

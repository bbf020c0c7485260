"""What the log lacks of all that had passed: counted by origin, matched where there is none."""

from msgspec.structs import replace

from trunkline_agentkit.catching_up import CatchingUp
from trunkline_agentkit.memory import Memory
from trunkline_agentkit.protocol import Fact, ItemEnd, Native, Out, Piece
from trunkline_agentkit.survivor import Survivor, survivor_of
from trunkline_fold.asks import AsksState
from trunkline_wire import Data, Event, make_event
from trunkline_wire.blocks import TextBlock
from trunkline_wire.session import SessionClaimed, SessionResumed, SessionStatus
from trunkline_wire.turn import MessageAssistant, TurnCompleted, TurnStarted

SESSION = "ses_" + "1" * 32
TIME = "2026-01-01T00:00:00.000000Z"
Origin = tuple[int, int, int] | None


def told(text: str) -> MessageAssistant:
    return MessageAssistant(content=[TextBlock(text=text)])


def native(*data: Data, ours: bool = False) -> Native:
    return Native(raw=b"" if ours else b"{}", out=[Fact(data=one) for one in data], kind="k", ours=ours)


def pieces(*out: Out) -> Native:
    return Native(raw=b"{}", out=list(out), kind="k")


def survivor(*written: tuple[Data, Origin]) -> Survivor:
    events: list[Event] = []
    memory = Memory(SESSION)
    for number, (data, origin) in enumerate(written, 1):
        event = make_event(data, session=SESSION, time=TIME, seq=number, epoch=1, origin=origin, item="itm")
        events.append(event)
        memory.fold(event, number)
    return survivor_of(memory, AsksState(), events)


def texts(natives: list[Native]) -> list[str]:
    facts = [one.data for native in natives for one in native.out if isinstance(one, Fact)]
    return [block.text for data in facts if isinstance(data, MessageAssistant) for block in data.content]  # type: ignore[union-attr]


CLAIMED = SessionClaimed(worker="wrk", host="hst", incarnation="inc")


def test_messages_are_counted_since_the_agent_was_started_over_all_its_owners() -> None:
    found = survivor(
        (told("of the agent before"), (1, 1, 1)),
        (SessionStatus(status="starting"), None),
        (told("1"), (2, 1, 1)),
        (told("2a"), (3, 1, 3)),
        (CLAIMED, None),
        (told("2b"), (1, 1, 2)),
        (CLAIMED, None),
        (told("2c"), (1, 1, 1)),
        (told("3a"), (2, 1, 2)),
        (TurnCompleted(outcome="success"), None),
    )
    assert (found.natives, found.parts, found.behind) == (3, 1, (("turn.completed", "itm"),))


def test_what_the_log_has_is_dropped_and_a_message_that_was_cut_off_goes_on() -> None:
    catching_up = CatchingUp(survivor((told("1"), (1, 1, 1)), (told("2a"), (2, 1, 2))))
    assert catching_up.pass_on(native(told("1"))) == []
    assert texts(catching_up.pass_on(native(told("2a"), told("2b")))) == ["2b"]
    assert texts(catching_up.pass_on(native(told("3")))) == ["3"]
    (end,) = catching_up.end()
    assert [one.data for one in end.out if isinstance(one, Fact)] == [SessionResumed(how="adopted")]


def test_what_follows_from_ours_is_matched_behind_the_last_message() -> None:
    started, done = TurnStarted(number=1), TurnCompleted(outcome="success")
    base = survivor((told("1"), (1, 1, 1)))
    catching_up = CatchingUp(replace(base, behind=(("command.accepted", None), ("turn.started", None))))
    assert catching_up.pass_on(native(done, ours=True)) == []  # it stands before a message that the log has
    assert catching_up.pass_on(native(told("1"))) == []
    assert catching_up.pass_on(native(started, ours=True)) == []
    assert catching_up.pass_on(native(done, ours=True)) == [native(done, ours=True)]
    assert catching_up.pass_on(native(started, ours=True)) == [native(started, ours=True)]


def test_a_block_that_is_being_said_is_told_from_its_beginning() -> None:
    catching_up = CatchingUp(survivor((told("1"), (1, 1, 1))))
    piece = Piece(item="itm_a", block=0, kind="text", text="Hel")
    catching_up.pass_on(pieces(replace(piece, item="itm_old")))
    catching_up.pass_on(pieces(Fact(data=told("1")), ItemEnd("itm_old")))
    catching_up.pass_on(pieces(piece))
    catching_up.pass_on(pieces(replace(piece, text="lo")))
    block, _ = catching_up.end()
    assert block.out == [replace(piece, text="Hello")]

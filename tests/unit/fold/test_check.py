"""The check of a log: a sound one has no violations, and each kind of damage is found and numbered."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from trunkline_fold.check import Violation, check_session
from trunkline_testkit.logs import Log
from trunkline_wire import Data, ErrorInfo, subjects
from trunkline_wire.asks import (
    AskDecided,
    AskDelivered,
    AskExpired,
    AskRouted,
    AskVoted,
    AskWithdrawn,
    PermissionRequested,
)
from trunkline_wire.blocks import TextBlock
from trunkline_wire.session import Capabilities, SessionClosed, SessionErased, SessionInitialized, SessionStatus
from trunkline_wire.turn import MessageAssistant, MessageUser, ToolCompleted, ToolStarted, TurnCompleted, TurnStarted
from trunkline_wire.work import CommandAccepted, CommandFailed, CommandFinished, CommandRejected

UNKNOWN = ErrorInfo(code="outcome_unknown", message="the owner died")
READY = SessionInitialized(capabilities=Capabilities(), incarnation="inc")


def text(words: str) -> list[TextBlock]:
    return [TextBlock(text=words)]


def prompt(log: Log, n: int) -> None:
    log.agent(CommandAccepted(command=f"cmd_{n}", verb="prompt", cmd_seq=n))
    log.agent(MessageUser(content=[*text("go")], command=f"cmd_{n}"), item=f"itm_u{n}")
    log.agent(CommandFinished(command=f"cmd_{n}"))


def sound() -> Log:
    """A prompt, a tool that is asked about, a crash, another owner, a turn by itself, the end."""
    log = Log()
    log.created()
    prompt(log, 1)
    log.agent(READY, origin=(1, 1, 1))
    log.agent(TurnStarted(number=1), turn="tur_1", origin=(2, 1, 1))
    log.agent(MessageAssistant(content=[*text("a")]), item="itm_m", turn="tur_1", origin=(3, 1, 2))
    log.agent(ToolStarted(name="Bash"), item="itm_t", turn="tur_1", origin=(3, 2, 2))
    log.agent(PermissionRequested(ask="ask_1", name="Bash", incarnation="inc"), turn="tur_1", origin=(4, 1, 1))
    decided = log.permission(AskDecided(ask="ask_1", behaviour="allow", by="me"))
    log.agent(AskDelivered(ask="ask_1"), cause=decided.id)
    log.agent(ToolCompleted(status="completed"), item="itm_t", turn="tur_1", origin=(5, 1, 1))
    log.agent(MessageAssistant(content=[*text("b")]), item="itm_m", turn="tur_1", origin=(6, 1, 1))
    log.agent(TurnCompleted(outcome="success"), turn="tur_1", origin=(7, 1, 1))
    log.agent(CommandAccepted(command="cmd_2", verb="prompt", cmd_seq=2))
    log.agent(TurnStarted(number=2), turn="tur_2", origin=(8, 1, 3))
    log.agent(ToolStarted(name="Bash"), item="itm_t2", turn="tur_2", origin=(8, 2, 3))
    log.agent(PermissionRequested(ask="ask_2", name="Bash", incarnation="inc"), turn="tur_2")
    log.claimed()
    log.permission(AskDecided(ask="ask_2", behaviour="allow", by="me"))
    log.agent(ToolCompleted(status="cancelled"), item="itm_t2", turn="tur_2")
    log.agent(TurnCompleted(outcome="aborted"), turn="tur_2")
    log.agent(CommandFailed(command="cmd_2", error=UNKNOWN))
    log.agent(SessionInitialized(capabilities=Capabilities(), incarnation="inc2"), origin=(1, 1, 1))
    log.agent(TurnStarted(number=3, trigger="background"), turn="tur_3", origin=(2, 1, 1))
    log.agent(ToolStarted(name="Read"), item="itm_s", turn="tur_3", lane="itm_task", origin=(3, 1, 1))
    log.agent(TurnCompleted(outcome="success"), turn="tur_3", origin=(4, 1, 1))
    log.agent(ToolCompleted(status="completed"), item="itm_s", lane="itm_task", origin=(5, 1, 1))
    log.agent(CommandRejected(command="cmd_3", cmd_seq=3, error=ErrorInfo(code="unsupported", message="no")))
    log.agent(CommandAccepted(command="cmd_4", verb="close", cmd_seq=4))
    log.agent(SessionClosed(reason="closed", cmd_seq=4))
    log.agent(CommandFinished(command="cmd_4"))
    return log


def found(log: Log) -> list[Violation]:
    return check_session(log.entries)


def numbers(log: Log) -> set[int]:
    return {violation.invariant for violation in found(log)}


def test_a_sound_log_has_no_violation() -> None:
    assert found(sound()) == []


def test_every_prefix_of_a_sound_log_is_sound() -> None:
    """A log that still grows is no violation; only the close's own outcome may lag."""
    log = sound()
    for length in range(len(log.entries)):
        violations = check_session(log.entries[:length])
        assert violations == [] or (length == len(log.entries) - 1 and [v.invariant for v in violations] == [6])


def test_subjects_do_as_well_as_channels() -> None:
    log = sound()
    entries = [
        (sequence, subjects.event(log.session, channel), event)  # type: ignore[arg-type]  # the log knows channels only
        for sequence, channel, event in log.entries
    ]
    assert check_session(entries) == []


def test_every_event_that_is_lost_or_doubled_shows() -> None:
    log = sound()
    for n, (_, channel, _) in enumerate(log.entries[:-1]):
        if channel.startswith("agent."):
            assert check_session(log.entries[:n] + log.entries[n + 1 :]) != [], log.entries[n]
        if channel.startswith("agent.") or channel == "permission":
            doubled = [*log.entries[: n + 1], *((s + 1, c, e) for s, c, e in log.entries[n:])]
            assert check_session(doubled) != [], log.entries[n]


def test_two_events_in_the_wrong_order_show() -> None:
    log = sound()
    one, two = log.entries[3], log.entries[4]
    log.entries[3:5] = [(one[0], two[1], two[2]), (two[0], one[1], one[2])]
    assert 2 in numbers(log)


def started() -> Log:
    log = Log()
    log.created()
    log.agent(READY)
    log.agent(TurnStarted(number=1), turn="tur_1")
    return log


def add(*datas: Data) -> Callable[[Log], None]:
    def write(log: Log) -> None:
        for data in datas:
            kind = type(data)
            if kind in (AskDecided, AskExpired, AskRouted):
                log.permission(data)
            else:
                log.agent(data, turn="tur_1", item="itm_x")

    return write


ASKED = PermissionRequested(ask="ask_1", name="Bash", incarnation="inc")
ALLOW = AskDecided(ask="ask_1", behaviour="allow", by="me")
DENY = AskDecided(ask="ask_1", behaviour="deny", by="you")
ACCEPTED = CommandAccepted(command="cmd_1", verb="prompt", cmd_seq=1)
FINISHED = CommandFinished(command="cmd_1")


def fenced_writer(log: Log) -> None:
    log.claimed()
    log.agent(SessionStatus(status="stopped"), epoch=1)


def unclaimed(log: Log) -> None:
    log.agent(SessionStatus(status="stopped"), epoch=2)


def epoch_skipped(log: Log) -> None:
    log.epoch += 1
    log.claimed()


def wrong_decision(log: Log) -> None:
    log.agent(ASKED)
    log.permission(ALLOW)
    late = log.permission(AskRouted(ask="ask_1", policy="p"))
    log.agent(AskDelivered(ask="ask_1"), cause=late.id)


def same_source(log: Log) -> None:
    log.agent(ASKED)
    log.permission(AskRouted(ask="ask_1", policy="p"), src=("EVENTS", 4, 0))
    log.permission(ALLOW, src=("EVENTS", 4, 0))


def source_behind(log: Log) -> None:
    log.agent(ASKED)
    log.permission(AskVoted(ask="ask_1", answer="cmd_1", by="ann", behaviour="allow"), src=("COMMANDS", 4, 0))
    log.permission(ALLOW, src=("COMMANDS", 3, 0))


def decided_for_a_dead_agent(log: Log) -> None:
    log.agent(ASKED)
    decided = log.permission(ALLOW)
    log.claimed()
    log.agent(AskDelivered(ask="ask_1"), cause=decided.id)


def lost_to_a_claim(log: Log) -> None:
    log.agent(ASKED)
    log.claimed()
    log.permission(ALLOW)
    log.agent(AskDelivered(ask="ask_1"))


def owner_goes_on(log: Log) -> None:
    log.agent(ACCEPTED)
    log.agent(TurnCompleted(outcome="success"), turn="tur_1")
    log.claimed()
    log.agent(CommandAccepted(command="cmd_2", verb="prompt", cmd_seq=2))


def turn_left_behind(log: Log) -> None:
    log.claimed()
    log.agent(READY)


def two_lanes_one_item(log: Log) -> None:
    log.agent(MessageAssistant(content=[]), item="itm_1")
    log.agent(MessageAssistant(content=[]), item="itm_1", lane="itm_l")


def other_turn(log: Log) -> None:
    log.agent(TurnCompleted(outcome="success"), turn="tur_9")


def turn_again(log: Log) -> None:
    log.agent(TurnCompleted(outcome="success"), turn="tur_1")
    log.agent(TurnStarted(number=1), turn="tur_1")


@pytest.mark.parametrize(
    ("damage", "invariant", "words"),
    [
        (fenced_writer, 2, "fenced epoch 1"),
        (unclaimed, 2, "nobody claimed"),
        (epoch_skipped, 2, "claims epoch 3 after 1"),
        (add(ASKED, ALLOW, DENY), 3, "decides ask_1 a second time"),
        (add(ASKED, ALLOW, AskExpired(ask="ask_1")), 3, "decides ask_1 a second time"),
        (add(ASKED, AskExpired(ask="ask_1")), 3, "no policy says"),
        (add(ASKED, ASKED), 3, "a second time"),
        (add(ALLOW), 3, "nobody asked"),
        (add(ASKED, AskDelivered(ask="ask_1")), 3, "no decision ended first"),
        (
            add(ASKED, AskWithdrawn(ask="ask_1", why="cancelled"), ALLOW, AskDelivered(ask="ask_1")),
            3,
            "no decision ended",
        ),
        (add(ASKED, ALLOW, AskDelivered(ask="ask_1"), AskDelivered(ask="ask_1")), 3, "delivers ask_1 a second time"),
        (wrong_decision, 3, "won"),
        (lost_to_a_claim, 3, "no decision ended first"),
        (decided_for_a_dead_agent, 3, "to an agent that is gone"),
        (same_source, 3, "second result"),
        (source_behind, 3, "behind 4"),
        (add(FINISHED), 6, "never accepted"),
        (add(ACCEPTED, ACCEPTED), 6, "a second time"),
        (add(ACCEPTED, FINISHED, FINISHED), 6, "second outcome"),
        (add(CommandRejected(command="cmd_1", cmd_seq=1, error=UNKNOWN), FINISHED), 6, "second outcome"),
        (add(ACCEPTED, TurnCompleted(outcome="success"), SessionClosed(reason="x")), 6, "session is closed"),
        (owner_goes_on, 6, "epoch 2 goes on"),
        (add(TurnStarted(number=2)), 7, "while tur_1 is open"),
        (add(TurnCompleted(outcome="success"), TurnCompleted(outcome="success")), 7, "where none is open"),
        (other_turn, 7, "completes tur_9 while tur_1 is open"),
        (turn_again, 7, "starts tur_1 a second time"),
        (turn_left_behind, 7, "epoch 2 goes on"),
        (add(SessionClosed(reason="x")), 7, "session is closed"),
        (add(ToolStarted(name="Bash"), TurnCompleted(outcome="success")), 7, "leaves tool itm_x open"),
        (add(ToolCompleted(status="completed")), 7, "never started"),
        (add(ToolStarted(name="Bash"), ToolStarted(name="Bash")), 7, "starts tool itm_x a second time"),
        (
            add(*[ToolStarted(name="Bash"), *[ToolCompleted(status="completed")] * 2]),
            7,
            "completes tool itm_x a second",
        ),
        (add(ToolStarted(name="Bash"), MessageAssistant(content=[])), 1, "item itm_x was a tool call"),
        (two_lanes_one_item, 1, "lane itm_l"),
    ],
)
def test_damage_is_found_and_numbered(damage: Callable[[Log], None], invariant: int, words: str) -> None:
    log = started()
    damage(log)
    violations = found(log)
    assert [v for v in violations if v.invariant == invariant and words in v.message], violations


@pytest.mark.parametrize(
    ("origins", "words"),
    [
        ([(2, 1, 1)], "part 1 of native message 1 was due"),
        ([(1, 1, 1), (1, 1, 1)], "part 1 of native message 2 was due"),
        ([(1, 1, 1), (3, 1, 1)], "part 1 of native message 2 was due"),
        ([(1, 1, 2), (2, 1, 1)], "part 2 of native message 1 was due"),
        ([(1, 2, 2)], "part 1 of native message 1 was due"),
        ([(1, 1, 2), (1, 2, 3)], "part 2 of native message 1 was due"),
        ([(1, 1, 1), (2, 1, 1), (1, 1, 1)], "part 1 of native message 3 was due"),
    ],
)
def test_native_messages_that_are_lost_doubled_or_torn(origins: list[tuple[int, int, int]], words: str) -> None:
    log = Log()
    log.created()
    for origin in origins:
        log.agent(SessionStatus(status=None), origin=origin)
    first = found(log)[0]
    assert (first.invariant, words in first.message) == (1, True)


def test_a_message_cut_off_by_the_end_of_an_epoch_is_no_hole() -> None:
    log = Log()
    log.created()
    log.agent(SessionStatus(status=None), origin=(1, 1, 3))
    log.claimed()
    log.agent(SessionStatus(status=None), origin=(1, 1, 1))
    assert found(log) == []


def test_a_gap_in_seq_and_a_missing_seq() -> None:
    log = started()
    log.agent(SessionStatus(status=None), seq=9)
    assert "has seq 9 where 4 was due" in found(log)[0].message
    log = started()
    log.agent(SessionStatus(status=None), seq=None)
    assert "has no seq" in found(log)[0].message


def test_an_adopted_agents_turn_goes_on() -> None:
    log = started()
    log.agent(ToolStarted(name="Bash"), item="itm_t", turn="tur_1")
    log.agent(ASKED)
    log.claimed(incarnation="inc")
    prompt(log, 1)
    assert found(log) == []
    decided = log.permission(ALLOW)
    log.agent(AskDelivered(ask="ask_1"), cause=decided.id)
    log.agent(ToolCompleted(status="completed"), item="itm_t", turn="tur_1")
    log.agent(TurnCompleted(outcome="success"), turn="tur_1")
    assert found(log) == []


def test_an_expiry_that_a_policy_says_is_an_end() -> None:
    log = started()
    add(ASKED, AskRouted(ask="ask_1", policy="p", expires_at="2026-11-27T22:00:00.000000Z"), AskExpired(ask="ask_1"))(
        log
    )
    log.agent(AskDelivered(ask="ask_1"))
    assert found(log) == []


def test_after_an_erasure_only_what_follows_is_judged() -> None:
    log = started()
    log.agent(ASKED)
    log.agent(ACCEPTED)
    log.agent(ToolStarted(name="Bash"), item="itm_t")
    log.agent(SessionErased(by="operator"))
    log.permission(SessionErased(by="operator"), src=None)
    log.permission(ALLOW)
    log.agent(FINISHED)
    log.agent(ToolCompleted(status="completed"), item="itm_t")
    log.agent(TurnCompleted(outcome="aborted"), turn="tur_1")
    assert found(log) == []
    log.agent(SessionStatus(status=None), seq=99)
    assert numbers(log) == {2}


def test_an_event_of_another_session_does_not_belong_here() -> None:
    log = started()
    log.agent(SessionStatus(status=None), session="ses_" + "f" * 32)
    assert numbers(log) == {2}


def test_asks_may_end_in_another_order_than_they_began() -> None:
    log = started()
    log.agent(ASKED)
    log.agent(replace(ASKED, ask="ask_2"))
    log.permission(AskRouted(ask="ask_2", policy="p"), src=("EVENTS", 5, 0))
    log.permission(ALLOW, src=("EVENTS", 4, 2))
    assert found(log) == []

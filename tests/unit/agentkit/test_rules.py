"""The rules for commands: accepted, repeated, refused, and what becomes of one that was left open."""

import datetime as dt
from typing import Any

import pytest

from trunkline_agentkit import rules
from trunkline_fold.commands import CommandRecord, CommandsState
from trunkline_fold.session import SessionState
from trunkline_fold.state import OpenTurn
from trunkline_wire import Command, Data, make_command, timestamp
from trunkline_wire.commands import Close, Fork, Interrupt, Kill, Prompt, Rename, Resume, SetModel, Steer
from trunkline_wire.session import Capabilities, SessionClosed

SESSION = "ses_" + "1" * 32
NOW = dt.datetime(2026, 11, 27, 12, tzinfo=dt.UTC)
ALL = Capabilities(interrupt=True, steering=True, model_switching=True, fork=True)
TURN = OpenTurn(id="tur_" + "2" * 32, number=1, started=timestamp(NOW))


def command(args: Data, *, id: str = "c1", session: str = SESSION, target: str | None = None) -> Command:
    return make_command(args, id=id, session=session, time=timestamp(NOW), target=target)


def judge(args: Data, *, age: float = 0.0, **more: Any) -> rules.Verdict:
    of_command = {name: more.pop(name) for name in ("id", "session", "target") if name in more}
    known: dict[str, Any] = {"commands": CommandsState(), "capabilities": ALL, "state": SessionState(session=SESSION)}
    known |= more
    return rules.judge(
        command(args, **of_command),
        NOW - dt.timedelta(seconds=age),
        NOW,
        session=known.pop("state"),
        **known,
    )


def code(verdict: rules.Verdict) -> str | None:
    return verdict.error.code if isinstance(verdict, rules.Refuse) else None


PROMPT = Prompt(content=[])


def test_a_known_id_is_a_repetition_whatever_else_is_wrong() -> None:
    known = CommandsState(commands={"c1": CommandRecord(command="c1", cmd_seq=1, time=timestamp(NOW))}, order=["c1"])
    assert judge(PROMPT, commands=known, age=1e6, session="ses_" + "9" * 32) == rules.Repeat()


@pytest.mark.parametrize(
    ("args", "age", "expected"),
    [
        (PROMPT, 24 * 3600 - 1, None),
        (PROMPT, 24 * 3600 + 1, "expired"),
        (Rename(title="x"), 3600, None),
        (Resume(), 3600, None),
        (SetModel(model="m"), 29, None),
        (SetModel(model="m"), 31, "expired"),
        (Close(), 31, "expired"),
        (Kill(), 31, "expired"),
    ],
)
def test_prompts_live_for_a_day_and_control_verbs_for_thirty_seconds(
    args: Data, age: float, expected: str | None
) -> None:
    assert code(judge(args, age=age)) == expected


def test_an_id_minted_before_the_window_of_known_ids_is_expired() -> None:
    millis = int((NOW - dt.timedelta(hours=24, seconds=1)).timestamp() * 1000)
    old = f"cmd_{millis:012x}7000" + "8" + "0" * 15
    assert rules.minted(old) == NOW - dt.timedelta(hours=24, seconds=1)
    assert code(judge(PROMPT, id=old)) == "expired"
    assert rules.minted("anything-else") is None


def test_a_closed_session_takes_nothing_but_resume() -> None:
    closed = SessionState(session=SESSION, closed=SessionClosed(reason="x"))
    assert code(judge(PROMPT, state=closed)) == "session_closed"
    assert code(judge(Close(), state=closed)) == "session_closed"
    assert judge(Resume(), state=closed) == rules.Accept()


def test_a_lacking_capability_is_named() -> None:
    verdict = judge(Fork(session="ses_" + "3" * 32), capabilities=Capabilities())
    assert isinstance(verdict, rules.Refuse)
    assert (verdict.error.code, verdict.error.details) == ("unsupported", {"capability": "fork"})


@pytest.mark.parametrize("verb", [Interrupt(), Steer(content=[])])
def test_interrupt_and_steer_mean_the_turn_that_runs(verb: Data) -> None:
    running = SessionState(session=SESSION, turn=TURN)
    assert judge(verb, state=running, target=TURN.id) == rules.Accept()
    assert judge(verb, state=running) == rules.Accept()
    assert code(judge(verb, state=running, target="tur_" + "9" * 32)) == "stale_target"
    assert code(judge(verb)) == "stale_target"


def test_an_interrupt_may_mean_a_prompt_whose_turn_has_not_begun() -> None:
    assert judge(Interrupt(), busy=True) == rules.Accept()
    assert code(judge(Interrupt(), busy=True, target=TURN.id)) == "stale_target"
    assert code(judge(Steer(content=[]), busy=True)) == "stale_target"


def test_a_full_log_takes_no_new_turn_but_every_end() -> None:
    assert code(judge(PROMPT, full=True)) == "log_full"
    assert judge(Close(), full=True) == rules.Accept()
    assert judge(Interrupt(), full=True, state=SessionState(session=SESSION, turn=TURN)) == rules.Accept()


def test_a_command_for_another_session_is_refused() -> None:
    assert code(judge(PROMPT, session="ses_" + "9" * 32)) == "bad_params"


@pytest.mark.parametrize(
    ("verb", "handed_over", "seen", "expected"),
    [
        ("prompt", False, False, "again"),
        ("prompt", True, False, "unknown"),
        ("prompt", True, True, "done"),
        ("run_command", False, False, "unknown"),
        ("run_command", False, True, "done"),
        ("native", False, False, "unknown"),
        ("interrupt", False, False, "unknown"),
        ("set_mode", False, False, "again"),
        ("close", False, False, "again"),
        ("fork", False, False, "again"),
    ],
)
def test_what_a_dead_owner_left_open(verb: str, handed_over: bool, seen: bool, expected: str) -> None:
    record = CommandRecord(command="c", cmd_seq=1, time=timestamp(NOW), verb=verb)
    assert rules.remainder(record, handed_over=handed_over, seen=seen) == expected


@pytest.mark.parametrize(("verb", "expected"), [("close", "done"), ("kill", "done"), ("resume", "again")])
def test_what_is_open_in_a_closed_session_closed_it_or_opens_it_again(verb: str, expected: str) -> None:
    record = CommandRecord(command="c", cmd_seq=1, time=timestamp(NOW), verb=verb)
    assert rules.remainder(record, handed_over=False, seen=False, closed=True) == expected

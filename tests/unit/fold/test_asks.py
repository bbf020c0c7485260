"""Asks: one end each, the first in stream order."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from trunkline_fold.asks import MAX_ENDED, AsksState, fold_asks
from trunkline_testkit.logs import Log
from trunkline_wire import Data, ErrorInfo, encode
from trunkline_wire.asks import (
    AnswerRejected,
    AskDecided,
    AskDelivered,
    AskExpired,
    AskRouted,
    AskVoted,
    AskWithdrawn,
    PermissionRequested,
    PlanProposed,
    QuestionAsked,
)
from trunkline_wire.session import SessionErased
from trunkline_wire.turn import TurnStarted


def folded(log: Log, start: AsksState | None = None) -> AsksState:
    state = start or AsksState()
    for sequence, channel, event in log.entries:
        state = fold_asks(state, event, sequence, channel)  # type: ignore[arg-type]  # the log knows channels only
    return state


def asked(ask: str = "ask_1", incarnation: str = "inc", **fields: Any) -> PermissionRequested:
    return PermissionRequested(ask=ask, name="Bash", incarnation=incarnation, **fields)


def allow(ask: str = "ask_1", by: str = "me", **fields: Any) -> AskDecided:
    return AskDecided(ask=ask, behaviour="allow", by=by, **fields)


def test_from_request_to_delivery() -> None:
    log = Log()
    log.created()
    request = log.agent(asked(input={"command": "ls"}), lane="itm_l", turn="tur_1")
    state = folded(log)
    (record,) = state.open
    assert (record.ask, record.kind, record.incarnation, record.sequence) == ("ask_1", "permission", "inc", 2)
    assert (record.time, record.lane, record.turn, record.event) == (request.time, "itm_l", "tur_1", request.id)
    assert record.requested == asked(input={"command": "ls"})
    log.permission(AskRouted(ask="ask_1", policy="p1", expires_at="2026-11-27T22:00:00.000000Z", quorum=2))
    log.permission(AskVoted(ask="ask_1", answer="ans_1", by="you", behaviour="allow"))
    log.permission(
        AnswerRejected(ask="ask_1", answer="ans_2", error=ErrorInfo(code="bad_answer", message="no such option"))
    )
    decided = log.permission(allow(updated_input={"command": "ls -l"}), src=("COMMANDS", 40, 1))
    state = folded(log)
    record = state.asks["ask_1"]
    assert state.open == []
    assert state.deliverable == [record]
    assert (record.status, record.ended_sequence, record.ended_time) == ("decided", 6, decided.time)
    assert record.routed is not None
    assert record.routed.quorum == 2
    assert [vote.by for vote in record.votes] == ["you"]
    assert [(refused.answer, refused.code) for refused in record.rejected] == [("ans_2", "bad_answer")]
    assert record.decision == allow(updated_input={"command": "ls -l"})
    assert (state.permission_seq, state.marks) == (6, {"EVENTS": 4, "COMMANDS": 40})
    log.agent(AskDelivered(ask="ask_1"))
    record = folded(log).asks["ask_1"]
    assert (record.delivered, record.delivered_sequence, record.late) == (True, 7, 0)
    assert record.decision == allow(), "inputs of what is over are in the log"
    assert folded(log).deliverable == []


def test_questions_and_plans_are_asks() -> None:
    log = Log()
    log.agent(QuestionAsked(ask="ask_q", incarnation="inc"))
    log.agent(PlanProposed(ask="ask_p", incarnation="inc", plan="1. go"))
    state = folded(log)
    assert [(record.ask, record.kind) for record in state.open] == [("ask_q", "question"), ("ask_p", "plan")]
    assert msgspec.json.decode(encode(state), type=AsksState) == state


def test_later_ends_change_nothing_but_the_count_of_the_late() -> None:
    log = Log()
    log.agent(asked())
    log.permission(allow(by="phone"))
    log.permission(AskDecided(ask="ask_1", behaviour="deny", by="laptop"))
    log.permission(AskExpired(ask="ask_1"))
    log.agent(AskWithdrawn(ask="ask_1", why="cancelled"))
    record = folded(log).asks["ask_1"]
    assert (record.status, record.ended_sequence, record.late) == ("decided", 2, 3)
    assert record.decision == allow(by="phone")
    assert (record.expired, record.withdrawn) == (None, None)


def test_a_withdrawn_ask_is_not_delivered() -> None:
    log = Log()
    log.agent(asked())
    log.agent(AskWithdrawn(ask="ask_1", why="answered_elsewhere"))
    log.permission(allow())
    log.agent(AskDelivered(ask="ask_1"))
    record = folded(log).asks["ask_1"]
    assert (record.status, record.withdrawn, record.delivered, record.late) == (
        "withdrawn",
        "answered_elsewhere",
        False,
        2,
    )


def test_an_expiry_is_delivered_like_a_decision() -> None:
    log = Log()
    log.agent(asked())
    log.permission(AskExpired(ask="ask_1", behaviour="deny"))
    assert [record.ask for record in folded(log).deliverable] == ["ask_1"]
    log.agent(AskDelivered(ask="ask_1"))
    assert folded(log).asks["ask_1"].delivered


def test_a_claim_ends_the_asks_of_other_incarnations() -> None:
    log = Log()
    log.created()
    log.agent(asked("ask_old", "inc1"))
    log.agent(asked("ask_new", "inc2"))
    log.claimed(incarnation="inc2")
    state = folded(log)
    assert (state.asks["ask_old"].status, state.asks["ask_old"].ended_sequence) == ("lost", 4)
    assert state.asks["ask_new"].status == "open"
    log.claimed()
    assert folded(log).open == []


def test_what_was_decided_for_a_dead_agent_can_still_be_told_from_what_was_delivered() -> None:
    log = Log()
    log.created()
    log.agent(asked(input={"big": 1}))
    log.permission(allow())
    log.claimed()
    record = folded(log).asks["ask_1"]
    assert (record.status, record.delivered) == ("decided", False)


def test_an_ask_does_not_open_again() -> None:
    log = Log()
    log.agent(asked())
    log.permission(allow())
    log.agent(asked())
    assert folded(log).asks["ask_1"].status == "decided"


def test_ends_of_unknown_asks_are_counted() -> None:
    log = Log()
    log.permission(allow("ask_x"))
    log.agent(AskWithdrawn(ask="ask_y", why="cancelled"))
    state = folded(log)
    assert (state.asks, state.late) == ({}, 2)


def test_the_oldest_ended_asks_are_forgotten_and_open_ones_never() -> None:
    log = Log()
    log.agent(asked("ask_open"))
    for n in range(MAX_ENDED + 3):
        log.agent(asked(f"ask_{n}", input={"command": "x" * 2000}))
        log.permission(allow(f"ask_{n}"))
        log.agent(AskDelivered(ask=f"ask_{n}"))
    state = folded(log)
    assert len(state.ended) == MAX_ENDED
    assert state.ended[0] == "ask_3"
    assert set(state.asks) == {"ask_open", *state.ended}
    assert [record.ask for record in state.open] == ["ask_open"]
    assert len(encode(state)) < 256 * 1024, "half of what one message may have"


def test_marks_never_go_back_and_say_which_part_was_last() -> None:
    log = Log()
    log.agent(asked())
    log.permission(AskVoted(ask="ask_1", answer="a", by="x", behaviour="allow"), src=("COMMANDS", 7, 0))
    log.permission(allow(), src=("COMMANDS", 7, 1))
    state = folded(log)
    assert (state.marks, state.parts, state.permission_seq) == ({"COMMANDS": 7}, {"COMMANDS": 1}, 3)
    log.permission(AskRouted(ask="ask_1", policy="p"), src=("EVENTS", 1, 0))
    state = folded(log)
    assert (state.marks, state.permission_seq) == ({"COMMANDS": 7, "EVENTS": 1}, 4)


def test_an_erasure_leaves_nothing_and_keeps_the_writers_place() -> None:
    log = Log()
    log.agent(asked())
    log.permission(allow())
    log.agent(SessionErased(by="operator"))
    log.permission(SessionErased(by="operator"), src=None)
    state = folded(log)
    assert state == AsksState(sequence=4, permission_seq=4)
    replayed = Log()
    replayed.entries = log.entries[2:]  # the rest was purged
    assert encode(folded(replayed)) == encode(state)


ASKS = ["ask_a", "ask_b", "ask_c"]
INCARNATIONS = ["inc1", "inc2"]
steps = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.sampled_from(ASKS), st.sampled_from(INCARNATIONS)),
        st.tuples(
            st.sampled_from(["decide", "expire", "withdraw", "deliver", "vote"]), st.sampled_from(ASKS), st.just("")
        ),
        st.tuples(st.just("claim"), st.just(""), st.sampled_from(["", *INCARNATIONS])),
        st.tuples(st.just("noise"), st.just(""), st.just("")),
    ),
    max_size=25,
)


def write(log: Log, step: tuple[str, str, str]) -> None:
    what, ask, incarnation = step
    agent: dict[str, Data] = {
        "ask": asked(ask, incarnation),
        "withdraw": AskWithdrawn(ask=ask, why="cancelled"),
        "deliver": AskDelivered(ask=ask),
        "noise": TurnStarted(number=1),
    }
    permission: dict[str, Data] = {
        "decide": allow(ask, answer=f"answer {log.sequence + 1}"),
        "expire": AskExpired(ask=ask),
        "vote": AskVoted(ask=ask, answer="a", by="x", behaviour="allow"),
    }
    if what == "claim":
        log.claimed(incarnation or None)
    elif what in agent:
        log.agent(agent[what])
    else:
        log.permission(permission[what])


def oracle(history: list[tuple[str, str, str]], ask: str) -> tuple[str, int | None]:
    """How an ask stands, and at which sequence it ended, told without a fold: the first end after its first request."""
    begun = next((n for n, (what, which, _) in enumerate(history) if what == "ask" and which == ask), None)
    if begun is None:
        return ("unknown", None)
    incarnation = history[begun][2]
    names = {"decide": "decided", "expire": "expired", "withdraw": "withdrawn"}
    for n in range(begun + 1, len(history)):
        what, which, about = history[n]
        if what in names and which == ask:
            return (names[what], n + 1)
        if what == "claim" and about != incarnation:
            return ("lost", n + 1)
    return ("open", None)


@given(steps)
def test_whatever_the_order_the_first_end_wins(history: list[tuple[str, str, str]]) -> None:
    log = Log()
    log.epoch = 1
    for step in history:
        write(log, step)
    state = folded(log)
    for ask in ASKS:
        record = state.asks.get(ask)
        expected = oracle(history, ask)
        assert (record.status if record else "unknown", record.ended_sequence if record else None) == expected
        if record and record.status == "decided":
            assert record.decision is not None
            assert record.decision.answer == f"answer {expected[1]}"
        if record and expected[1] is not None:
            told = any(what == "deliver" and which == ask for what, which, _ in history[expected[1] :])
            assert record.delivered == (told and expected[0] in ("decided", "expired"))
    assert sorted(state.ended, key=lambda ask: state.asks[ask].ended_sequence or 0) == state.ended or any(
        what == "claim" for what, _, _ in history
    )


@given(steps, st.data())
def test_any_prefix_then_the_rest_and_redelivery_give_the_same_bytes(
    history: list[tuple[str, str, str]], data: st.DataObject
) -> None:
    log = Log()
    log.epoch = 1
    for step in history:
        write(log, step)
    whole = folded(log)
    cut = data.draw(st.integers(0, len(log.entries)))
    first, rest = Log(), Log()
    first.entries = log.entries[:cut]
    back = data.draw(st.integers(0, cut))
    rest.entries = log.entries[back:]
    resumed = folded(rest, msgspec.json.decode(encode(folded(first)), type=AsksState))
    assert encode(resumed) == encode(whole)

from typing import Any

import pytest

from trunkline_fold.asks import AsksState, fold_asks
from trunkline_gateway.answers import check_answer
from trunkline_gateway.methods.asks import judge
from trunkline_wire import Answer, Data, TrunklineError, make_event
from trunkline_wire.asks import (
    AnswerRejected,
    AskDecided,
    AskExpired,
    AskOption,
    AskRouted,
    AskVoted,
    AskWithdrawn,
    PermissionRequested,
    PlanProposed,
    Question,
    QuestionAsked,
    QuestionOption,
)
from trunkline_wire.errors import ErrorInfo

SESSION, ASK = "ses_" + "1" * 32, "ask_" + "2" * 32
OPTIONS = [AskOption(id="once", name="Once", kind="allow_once")]
PERMISSION = PermissionRequested(ask=ASK, name="Bash", incarnation="i", options=OPTIONS)
PLAN = PlanProposed(ask=ASK, incarnation="i", plan="do", options=OPTIONS)
FREE = Question(id="name", text="What name?")
ONE = Question(id="colour", text="?", options=[QuestionOption(label="red")], free_text=False)
MANY = Question(id="sizes", text="?", options=[QuestionOption(label="S"), QuestionOption(label="M")], multiple=True)
QUESTION = QuestionAsked(ask=ASK, incarnation="i", questions=[FREE, ONE, MANY])
FORM = QuestionAsked(ask=ASK, incarnation="i", schema={"type": "object"})


def folded(*events: Data) -> Any:
    state = AsksState()
    for sequence, data in enumerate(events, 1):
        event = make_event(data, session=SESSION, time="2026-11-27T21:20:10.000000Z")
        state = fold_asks(state, event, sequence)
    return state.asks[ASK]


def answer(behaviour: Any, **fields: Any) -> Answer:
    return Answer(id="cmd_x", session=SESSION, ask=ASK, behaviour=behaviour, time="t", **fields)


@pytest.mark.parametrize(
    ("requested", "given"),
    [
        (PERMISSION, answer("allow")),
        (PERMISSION, answer("allow", option="once", updated_input={"command": "ls"}, rule_updates=[{}])),
        (PERMISSION, answer("deny", message="no", interrupt=True)),
        (PLAN, answer("allow", option="once")),
        (PLAN, answer("deny", message="think again")),
        (QUESTION, answer("answered", answers={"name": "x", "colour": "red", "sizes": ["S", "M"]})),
        (QUESTION, answer("answered", answers={"name": "x", "colour": ["red"][0], "sizes": "XL"})),
        (QUESTION, answer("deny")),
        (FORM, answer("answered", answers={"anything": {"a": 1}})),
    ],
)
def test_answers_that_fit(requested: Data, given: Answer) -> None:
    check_answer(folded(requested), given)


@pytest.mark.parametrize(
    ("requested", "given", "field"),
    [
        (PERMISSION, answer("answered"), "behaviour"),
        (PERMISSION, answer("allow", answers={}), "behaviour"),
        (PERMISSION, answer("allow", option="never"), "option"),
        (PERMISSION, answer("allow", updated_input=[]), "updated_input"),
        (PERMISSION, answer("deny", updated_input={}), "updated_input"),
        (PERMISSION, answer("deny", rule_updates=[{}]), "rule_updates"),
        (PLAN, answer("allow", updated_input={}), "updated_input"),
        (QUESTION, answer("allow"), "behaviour"),
        (QUESTION, answer("answered"), "behaviour"),
        (QUESTION, answer("deny", answers={"name": "x"}), "answers"),
        (QUESTION, answer("answered", answers={"name": "x"}), "answers"),
        (QUESTION, answer("answered", answers={"name": "x", "colour": "blue", "sizes": []}), "answers"),
        (QUESTION, answer("answered", answers={"name": ["x"], "colour": "red", "sizes": []}), "answers"),
        (QUESTION, answer("answered", answers={"name": 1, "colour": "red", "sizes": []}), "answers"),
        (QUESTION, answer("answered", answers={"name": "", "colour": "red", "sizes": [], "x": 1}), "answers"),
        (QUESTION, answer("answered", answers={}, option="once"), "option"),
    ],
)
def test_answers_that_do_not(requested: Data, given: Answer, field: str) -> None:
    with pytest.raises(TrunklineError) as refused:
        check_answer(folded(requested), given)
    assert (refused.value.code, refused.value.details["field"]) == ("bad_answer", field)


def decided(answer: str | None) -> AskDecided:
    return AskDecided(ask=ASK, behaviour="allow", by="ann", answer=answer)


def test_what_became_of_an_answer() -> None:
    assert judge(folded(PERMISSION), "cmd_x") is None
    won = judge(folded(PERMISSION, decided("cmd_x")), "cmd_x")
    assert won is not None
    assert won["outcome"] == "decided"
    routed = AskRouted(ask=ASK, policy="1", quorum=2)
    vote = AskVoted(ask=ASK, answer="cmd_x", by="ann", behaviour="allow")
    assert judge(folded(PERMISSION, routed, vote), "cmd_x") == {
        "outcome": "voted",
        "votes": 1,
        "quorum": 2,
        "answer": "cmd_x",
    }


@pytest.mark.parametrize(
    ("events", "code"),
    [
        ([decided("cmd_other")], "already_decided"),
        ([decided(None)], "already_decided"),
        ([AskExpired(ask=ASK)], "expired"),
        ([AskWithdrawn(ask=ASK, why="cancelled")], "withdrawn"),
        ([AskWithdrawn(ask=ASK, why="cancelled"), decided("cmd_x")], "withdrawn"),
        (
            [AnswerRejected(ask=ASK, answer="cmd_x", error=ErrorInfo(code="bad_answer", message="no"))],
            "bad_answer",
        ),
    ],
)
def test_what_became_of_an_answer_that_did_not_win(events: list[Data], code: str) -> None:
    with pytest.raises(TrunklineError) as refused:
        judge(folded(PERMISSION, *events), "cmd_x")
    assert refused.value.code == code

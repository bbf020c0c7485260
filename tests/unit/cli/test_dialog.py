"""Lines that people type, and the answers they make."""

from typing import Any

import pytest

from trunkline_cli.dialog import Dialog, allow, deny
from trunkline_fold.answering import choose
from trunkline_wire import TrunklineError
from trunkline_wire.asks import (
    AskOption,
    PermissionRequested,
    PlanProposed,
    Question,
    QuestionAsked,
    QuestionOption,
)

OPTIONS = [
    AskOption(id="once", name="Allow once", kind="allow_once"),
    AskOption(id="always", name="Always", kind="allow_always"),
    AskOption(id="no", name="Reject", kind="reject_once"),
    AskOption(id="edit", name="Edit", kind="other"),
]
ASKED = PermissionRequested(ask="ask_1", name="Bash", incarnation="i", options=OPTIONS)
PLAIN = PermissionRequested(ask="ask_1", name="Bash", incarnation="i")
PLAN = PlanProposed(ask="ask_1", incarnation="i", plan="go")


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("y", {"behaviour": "allow", "option": "once"}),
        ("YES", {"behaviour": "allow", "option": "once"}),
        ("n", {"behaviour": "deny", "option": "no"}),
        ("n use git mv", {"behaviour": "deny", "option": "no", "message": "use git mv"}),
        ("2", {"behaviour": "allow", "option": "always"}),
        ("3", {"behaviour": "deny", "option": "no"}),
        ("4", {"behaviour": "answered", "option": "edit"}),
    ],
)
def test_a_permission_is_answered_by_a_word_or_a_number(line: str, answer: dict[str, Any]) -> None:
    assert Dialog(ASKED).reply(line) == answer


@pytest.mark.parametrize("line", ["", "5", "0", "maybe", "yes please"])
def test_anything_else_is_no_answer(line: str) -> None:
    with pytest.raises(TrunklineError, match="is no answer"):
        Dialog(ASKED).reply(line)


def test_without_options_of_the_agent_the_behaviour_says_it_all() -> None:
    assert allow(PLAIN) == {"behaviour": "allow"}
    assert deny(PLAN, "too long", interrupt=True) == {"behaviour": "deny", "message": "too long", "interrupt": True}
    assert choose(OPTIONS[2]) == {"behaviour": "deny", "option": "no"}


def test_the_prompt_and_the_options_are_shown() -> None:
    dialog = Dialog(ASKED)
    assert dialog.text == ["1  Allow once", "2  Always", "3  Reject", "4  Edit"]
    assert dialog.prompt == "y allow, n deny, n why, 1-4 > "
    assert Dialog(PLAIN).prompt == "y allow, n deny, n why > "


COLOUR = Question(
    id="c", text="Which?", options=[QuestionOption(label="Red"), QuestionOption(label="Blue")], free_text=False
)
SIZES = Question(id="s", text="Sizes?", options=[QuestionOption(label="S"), QuestionOption(label="M")], multiple=True)
NAME = Question(id="n", text="Name?")


def test_questions_are_taken_one_after_the_other() -> None:
    dialog = Dialog(QuestionAsked(ask="ask_1", incarnation="i", questions=[COLOUR, SIZES, NAME]))
    assert dialog.prompt.splitlines() == ["Which?", "  1  Red", "  2  Blue", "a number, or n to refuse > "]
    assert dialog.reply("blue") is None
    assert dialog.reply("2, 1") is None
    assert dialog.prompt.splitlines()[-1] == "your answer, or n to refuse > "
    assert dialog.reply("Ann") == {"behaviour": "answered", "answers": {"c": "Blue", "s": ["M", "S"], "n": "Ann"}}


def test_a_question_may_be_refused_and_a_wrong_choice_is_told() -> None:
    dialog = Dialog(QuestionAsked(ask="ask_1", incarnation="i", questions=[COLOUR]))
    with pytest.raises(TrunklineError, match="none of the options"):
        dialog.reply("green")
    assert dialog.reply("n") == {"behaviour": "deny"}
    free = Dialog(QuestionAsked(ask="ask_1", incarnation="i", questions=[SIZES]))
    assert free.reply("XL, 1") == {"behaviour": "answered", "answers": {"s": "XL, 1"}}

"""Whether an answer fits what was asked. Pure."""

from typing import Any

from trunkline_fold.asks import Ask
from trunkline_wire import Answer, TrunklineError
from trunkline_wire.asks import PermissionRequested, PlanProposed, Question, QuestionAsked


def check_answer(ask: Ask, answer: Answer) -> None:
    """Raises TrunklineError `bad_answer` saying what does not fit; the ask stays open then."""
    requested = ask.requested
    match requested:
        case QuestionAsked():
            _check_question(requested, answer)
        case PermissionRequested() | PlanProposed():
            if answer.behaviour == "answered" or answer.answers is not None:
                raise _bad(f"a {ask.kind} is answered with `allow` or `deny`", "behaviour")
            known = [option.id for option in requested.options]
            if answer.option is not None and answer.option not in known:
                raise _bad(f"there is no option {answer.option!r}; there are {known}", "option")
        case _:
            raise TrunklineError("degraded", "the ask is of a kind that this version does not know")
    if answer.updated_input is not None:
        if not isinstance(requested, PermissionRequested) or answer.behaviour != "allow":
            raise _bad("only an allowed permission may have an updated input", "updated_input")
        if not isinstance(answer.updated_input, dict):
            raise _bad("updated_input replaces the tool's input and must be an object", "updated_input")
    if answer.rule_updates is not None and answer.behaviour != "allow":
        raise _bad("rules can only be updated when the request is allowed", "rule_updates")


def _check_question(requested: QuestionAsked, answer: Answer) -> None:
    if answer.behaviour == "deny":
        if answer.answers is not None:
            raise _bad("a question that is declined has no answers", "answers")
        return
    if answer.behaviour != "answered" or answer.answers is None:
        raise _bad("a question is `answered` with `answers`, or declined with `deny`", "behaviour")
    if answer.option is not None:
        raise _bad("a question has no options of its own: answer each of its questions", "option")
    questions = {question.id: question for question in requested.questions}
    if not questions:
        return
    unknown = sorted(set(answer.answers) - set(questions))
    if unknown:
        raise _bad(f"there is no question {unknown[0]!r}; there are {sorted(questions)}", "answers")
    missing = sorted(set(questions) - set(answer.answers))
    if missing:
        raise _bad(f"question {missing[0]!r} is not answered", "answers")
    for id_, question in questions.items():
        _check_one(question, answer.answers[id_])


def _check_one(question: Question, given: Any) -> None:
    values: list[Any] = given if isinstance(given, list) else [given]
    if isinstance(given, list) and not question.multiple:
        raise _bad(f"question {question.id!r} takes one answer", "answers")
    labels = [option.label for option in question.options]
    for value in values:
        if not isinstance(value, str):
            raise _bad(f"the answer to {question.id!r} must be a text", "answers")
        if labels and not question.free_text and value not in labels:
            raise _bad(f"{value!r} is no option of question {question.id!r}; there are {labels}", "answers")


def _bad(message: str, field: str) -> TrunklineError:
    return TrunklineError("bad_answer", message, field=field)

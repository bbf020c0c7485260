"""Answering an ask in a conversation of lines. Pure: lines in, texts and finally the answer's parameters out."""

from collections.abc import Sequence
from typing import Any, Final

from trunkline_fold.answering import Asked, choose
from trunkline_wire import TrunklineError
from trunkline_wire.asks import AskOption, Question, QuestionAsked

_YES: Final = frozenset({"y", "yes", "allow", "ok"})
_NO: Final = frozenset({"n", "no", "deny"})


class Dialog:
    """One ask. `text` is what to show, `prompt` what to print before reading a line, `reply` takes the line.

    `reply` returns the parameters of `ask.answer` (behaviour, option, answers, message) once it knows them, None when
    another line is needed; TrunklineError `bad_answer` for a line that answers nothing.
    """

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self._answers: dict[str, Any] = {}
        self._questions = list(asked.questions) if isinstance(asked, QuestionAsked) else []

    @property
    def text(self) -> list[str]:
        if isinstance(self.asked, QuestionAsked):
            return []
        lines: list[str] = []
        for number, option in enumerate(self.asked.options, 1):
            lines.append(f"{number}  {option.name}")
        return lines

    @property
    def question(self) -> Question | None:
        """The question that the next line answers."""
        return self._questions[0] if self._questions else None

    @property
    def prompt(self) -> str:
        question = self.question
        if question is not None:
            options = [
                f"  {number}  {option.label}{f' — {option.description}' if option.description else ''}"
                for number, option in enumerate(question.options, 1)
            ]
            how = "numbers, separated by commas" if question.multiple else "a number"
            if question.free_text:
                how = f"{how} or your own words" if question.options else "your answer"
            return "\n".join([question.text, *options, f"{how}, or n to refuse > "])
        numbers = f", 1-{len(self._options)}" if self._options else ""
        return f"y allow, n deny, n why{numbers} > "

    @property
    def _options(self) -> Sequence[AskOption]:
        return [] if isinstance(self.asked, QuestionAsked) else self.asked.options

    def reply(self, line: str) -> dict[str, Any] | None:
        line = line.strip()
        word, _, rest = line.partition(" ")
        if self.question is not None:
            if line.lower() in _NO:
                return {"behaviour": "deny"}
            question = self._questions[0]
            self._answers[question.id] = parse_choice(question, line)
            self._questions.pop(0)
            return None if self._questions else {"behaviour": "answered", "answers": self._answers}
        if line.isdecimal() and 1 <= int(line) <= len(self._options):
            return choose(self._options[int(line) - 1])
        if line.lower() in _YES:
            return allow(self.asked)
        if word.lower() in _NO:
            return deny(self.asked, rest.strip() or None)
        raise TrunklineError("bad_answer", f"{line!r} is no answer: say y, n, n and a reason, or an option's number")


def parse_choice(question: Question, line: str) -> Any:
    """The answer to a question as it goes to the agent: a label, a list of labels, or the person's own words.

    Raises `bad_answer` for an empty line, or words where only options count.
    """
    labels = [option.label for option in question.options]
    parts = [part.strip() for part in line.split(",")] if question.multiple else [line.strip()]
    chosen = [_label(labels, part) for part in parts]
    found = [label for label in chosen if label is not None]
    if len(found) == len(chosen) and found:
        return found if question.multiple else found[0]
    if not line.strip() or not question.free_text:
        known = ", ".join(labels)
        raise TrunklineError("bad_answer", f"{line!r} is none of the options of {question.text!r}: {known}")
    return line.strip()


def _label(labels: Sequence[str], part: str) -> str | None:
    if part.isdecimal() and 1 <= int(part) <= len(labels):
        return labels[int(part) - 1]
    return next((label for label in labels if label.casefold() == part.casefold()), None)


def allow(asked: Asked) -> dict[str, Any]:
    """Allow once."""
    return _plainly(asked, "allow", "allow_once")


def deny(asked: Asked, message: str | None = None, *, interrupt: bool = False) -> dict[str, Any]:
    """Deny once, with a word to the agent; `interrupt` ends its turn too."""
    answer = _plainly(asked, "deny", "reject_once")
    if message:
        answer["message"] = message
    if interrupt:
        answer["interrupt"] = True
    return answer


def _plainly(asked: Asked, behaviour: str, kind: str) -> dict[str, Any]:
    options = [] if isinstance(asked, QuestionAsked) else asked.options
    option = next((option for option in options if option.kind == kind), None)
    return {"behaviour": behaviour} | ({"option": option.id} if option else {})

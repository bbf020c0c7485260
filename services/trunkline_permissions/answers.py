"""What becomes of an answer: a decision, a vote, a revocation, or a refusal with a code. Pure."""

from collections.abc import Sequence
from typing import Any, Final, get_args

import msgspec

from trunkline_fold.asks import AskRecord, RuleRecord
from trunkline_fold.policy import Role
from trunkline_fold.session_rules import rule_name, suggested
from trunkline_wire import Answer, Data, TrunklineError
from trunkline_wire.actors import voices
from trunkline_wire.asks import (
    AnswerRejected,
    AskDecided,
    AskOption,
    AskRevoked,
    AskVoted,
    PermissionRequested,
    PlanProposed,
    Question,
    QuestionAsked,
    Signature,
)
from trunkline_wire.errors import ErrorInfo
from trunkline_wire.events import Source

GATEWAY = "gateway"
"""The NATS user whose word on who answered counts: actor, role, and the device that signed."""

_ROLES: Final[tuple[str, ...]] = get_args(Role)
"""The roles, the lowest first."""


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """An answer as it stands in COMMANDS: at `sequence`, stored at `time_ns`, published by NATS user `user`."""

    answer: Answer
    sequence: int
    time_ns: int
    user: str

    @property
    def source(self) -> Source:
        """Who answered: what the gateway says, or the NATS user itself."""
        if self.user == GATEWAY and self.answer.source is not None:
            return self.answer.source
        return Source(actor=self.user, via="nats")

    @property
    def signature(self) -> Signature | None:
        """The answer's signature, where the gateway has checked it."""
        signature = self.answer.signature
        return signature if signature is not None and signature.device == self.source.device else None


def is_repeated(record: AskRecord | None, answer: Answer) -> bool:
    """Whether this answer's id has its outcome already: then nothing more is written."""
    if record is None:
        return False
    known = {vote.answer for vote in record.votes} | {rejected.answer for rejected in record.rejected}
    if record.decision is not None and record.decision.answer is not None:
        known.add(record.decision.answer)
    return answer.id in known


def judge(record: AskRecord | None, given: Given, rules: Sequence[RuleRecord] = ()) -> Data:
    """The event that answers the answer: ask.decided, ask.voted (below a quorum), ask.revoked, or answer.rejected.

    `rules` are the session's own.
    """
    answer = given.answer
    try:
        if answer.revoke:
            return _revoked(given, rules)
        if record is None:
            raise TrunklineError("unknown_ask", f"the session has no ask {answer.ask!r}")
        check_open(record)
        check_right(record, given)
        check_answer(record.requested, answer)
        return _counted(record, given)
    except TrunklineError as error:
        return AnswerRejected(ask=answer.ask, answer=answer.id, error=ErrorInfo.of(error))


def check_right(record: AskRecord, given: Given) -> None:
    """Raises `forbidden` for a role below the one that the policy wants, `signature_required` for an unsigned answer."""
    routed, role = record.routed, given.source.role
    if routed is None:
        return
    needed = routed.role
    if needed is not None and (role not in _ROLES or _ROLES.index(role) < _rank(needed)):
        raise TrunklineError(
            "forbidden",
            f"rule {routed.rule!r} wants an answer of the role {needed!r}, yours is {role or 'unknown'!r}",
            needs=needed,
            role=role,
        )
    if routed.signed and given.signature is None:
        raise TrunklineError(
            "signature_required", f"rule {routed.rule!r} wants an answer that a registered device has signed"
        )


def _rank(role: str) -> int:
    """A role that this version does not know is above all that it knows."""
    return _ROLES.index(role) if role in _ROLES else len(_ROLES)


def _revoked(given: Given, rules: Sequence[RuleRecord]) -> Data:
    answer = given.answer
    name = rule_name(answer.ask)
    if not any(rule.rule == name and rule.in_force for rule in rules):
        raise TrunklineError("unknown_rule", f"the session has no rule {name!r} in force", rule=name)
    return AskRevoked(ask=answer.ask, rule=name, answer=answer.id, by=given.source.actor)


def check_open(record: AskRecord) -> None:
    """Raises `already_decided`, `expired` or `withdrawn` for an ask that has ended."""
    details: dict[str, Any] = {"ask": record.ask, "ended_sequence": record.ended_sequence}
    match record.status:
        case "open":
            return
        case "decided":
            by = record.decision.by if record.decision else "somebody"
            raise TrunklineError("already_decided", f"{by} decided first", **details)
        case "expired":
            raise TrunklineError("expired", "the ask expired before this answer", **details)
        case "withdrawn" | "lost":
            raise TrunklineError("withdrawn", "the agent no longer asks", **details)


def check_answer(requested: Data, answer: Answer) -> None:
    """Raises `bad_answer` for an answer that does not fit what was asked."""
    match requested:
        case QuestionAsked():
            _check_questions(requested, answer)
        case PermissionRequested(options=options) | PlanProposed(options=options):
            _check_permission(options, answer)
            if answer.updated_input is not None and not isinstance(requested, PermissionRequested):
                raise _bad("a plan has no input that could be updated")
        case _:
            raise _bad("this version does not know how to answer it")


def _check_permission(options: list[AskOption], answer: Answer) -> None:
    if answer.answers is not None:
        raise _bad("`answers` is for questions; say allow or deny")
    if answer.behaviour == "answered" and answer.option is None:
        raise _bad("say allow or deny, or choose an option")
    if answer.option is not None:
        option = next((option for option in options if option.id == answer.option), None)
        if option is None:
            known = ", ".join(option.id for option in options) or "none"
            raise _bad(f"there is no option {answer.option!r}; there are: {known}")
        contrary = {"allow": "reject", "deny": "allow"}.get(answer.behaviour)
        if contrary and option.kind.startswith(contrary):
            raise _bad(f"option {option.id!r} is {option.kind}, and the behaviour says {answer.behaviour}")
    if answer.updated_input is not None:
        if answer.behaviour == "deny":
            raise _bad("a denial takes no updated_input")
        if not isinstance(answer.updated_input, dict):
            raise _bad("updated_input must be an object")
    if answer.rule_updates is not None and not isinstance(answer.rule_updates, list | dict):
        raise _bad("rule_updates must be a list or an object")


def _check_questions(requested: QuestionAsked, answer: Answer) -> None:
    if answer.option is not None or answer.updated_input is not None:
        raise _bad("questions are answered with `answers`, by question id")
    if answer.behaviour == "deny":
        return
    if answer.behaviour != "answered":
        raise _bad("the behaviour must be `answered`, or `deny` to refuse")
    if not answer.answers:
        raise _bad("`answers` is missing: an object by question id")
    if requested.schema is not None and not requested.questions:
        return  # a form of the agent's own: only the agent can check it
    questions = {question.id: question for question in requested.questions}
    for key, value in answer.answers.items():
        question = questions.get(key)
        if question is None:
            raise _bad(f"there is no question {key!r}; there are: {', '.join(questions)}")
        _check_value(question, value)


def _check_value(question: Question, value: Any) -> None:
    labels = {option.label for option in question.options}
    given = value if isinstance(value, list) else [value]
    if isinstance(value, list) and not question.multiple:
        raise _bad(f"{question.id!r} takes one answer, not a list")
    if not given or not all(isinstance(one, str) and one for one in given):
        raise _bad(f"the answer to {question.id!r} must be a text, or a list of texts where several may be chosen")
    if labels and not question.free_text and not labels.issuperset(given):
        raise _bad(f"the answer to {question.id!r} must be one of: {', '.join(sorted(labels))}")


def _counted(record: AskRecord, given: Given) -> Data:
    answer, actor = given.answer, given.source.actor
    quorum = record.routed.quorum if record.routed else 1
    if answer.behaviour != "deny" and quorum > 1:
        if answer.updated_input is not None or answer.rule_updates is not None:
            raise _bad(f"{quorum} people have to allow it as it was asked: no updated_input, no rule_updates")
        voters = {vote.by for vote in record.votes}
        heard = voices(actor) & {voice for voter in voters for voice in voices(voter)}
        if heard:
            raise TrunklineError(
                "already_voted",
                f"{min(heard)} has voted already; {quorum} different people have to allow it",
                quorum=quorum,
            )
        if len(voters) + 1 < quorum:
            return AskVoted(
                ask=answer.ask, answer=answer.id, by=actor, behaviour=answer.behaviour, signature=given.signature
            )
    return AskDecided(
        ask=answer.ask,
        behaviour=answer.behaviour,
        by=actor,
        answer=answer.id,
        option=answer.option,
        updated_input=answer.updated_input,
        rule_updates=answer.rule_updates,
        answers=answer.answers,
        message=answer.message,
        interrupt=answer.interrupt,
        signature=given.signature,
        remembers=suggested(record.requested, answer.option) if _lasts(answer) else None,
    )


def _lasts(answer: Answer) -> bool:
    """Whether an answer may make a rule. One that changes the input or the agent's own rules is the agent's to keep."""
    return answer.behaviour != "deny" and answer.rule_updates is None and answer.updated_input is None


def _bad(why: str) -> TrunklineError:
    return TrunklineError("bad_answer", why)

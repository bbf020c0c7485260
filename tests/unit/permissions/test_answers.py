"""What an answer becomes, by the rules of what was asked. No server."""

from typing import Any

import pytest
from msgspec.structs import replace

from trunkline_fold.asks import AskRecord, PermissionAsk, PlanAsk, QuestionAsk, RuleRecord
from trunkline_permissions.answers import Given, is_repeated, judge
from trunkline_wire import Answer, Source
from trunkline_wire.asks import (
    AnswerRejected,
    AskDecided,
    AskOption,
    AskRevoked,
    AskRouted,
    AskVoted,
    PermissionRequested,
    PlanProposed,
    Question,
    QuestionAsked,
    QuestionOption,
    Signature,
)

SESSION, ASK = "ses_" + "0" * 32, "ask_" + "0" * 32
ABOUT: dict[str, Any] = {
    "ask": ASK,
    "session": SESSION,
    "incarnation": "one",
    "sequence": 5,
    "time": "2026-11-27T10:00:00.000000Z",
    "status": "open",
}
COLOUR = Question(
    id="colour",
    text="Which?",
    options=[QuestionOption(label="red"), QuestionOption(label="blue")],
    free_text=False,
)
SIZES = Question(id="sizes", text="Which sizes?", options=[QuestionOption(label="S")], multiple=True)


def permission(**fields: Any) -> AskRecord:
    options = [
        AskOption(id="y", name="Yes", kind="allow_once"),
        AskOption(id="n", name="No", kind="reject_once"),
        AskOption(id="later", name="Later"),
    ]
    asked = PermissionRequested(ask=ASK, name="Bash", incarnation="one", options=options)
    return PermissionAsk(requested=asked, **{**ABOUT, **fields})


def questions(*asked: Question, schema: Any = None) -> AskRecord:
    requested = QuestionAsked(ask=ASK, incarnation="one", questions=list(asked), schema=schema)
    return QuestionAsk(requested=requested, **ABOUT)


def plan() -> AskRecord:
    return PlanAsk(requested=PlanProposed(ask=ASK, incarnation="one", plan="1. go"), **ABOUT)


def given(behaviour: Any, *, user: str = "gateway", actor: str = "ann", id: str = "cmd_1", **fields: Any) -> Given:
    about: dict[str, Any] = {"source": Source(actor=actor), **fields}
    answer = Answer(id=id, session=SESSION, ask=ASK, behaviour=behaviour, time=ABOUT["time"], **about)
    return Given(answer=answer, sequence=9, time_ns=0, user=user)


GOOD = [
    (permission(), given("allow")),
    (permission(), given("allow", option="y", updated_input={"command": "ls"}, rule_updates=[{}])),
    (permission(), given("deny", option="n", message="no", interrupt=True)),
    (permission(), given("answered", option="later")),
    (plan(), given("allow")),
    (questions(COLOUR, SIZES), given("answered", answers={"colour": "red", "sizes": ["S", "my own"]})),
    (questions(SIZES), given("answered", answers={"sizes": "S"})),
    (questions(COLOUR), given("deny")),
    (questions(schema={"type": "object"}), given("answered", answers={"port": 8080})),
]
BAD = [
    (permission(), given("answered"), "say allow or deny"),
    (permission(), given("allow", option="x"), "there is no option 'x'"),
    (permission(), given("allow", option="n"), "the behaviour says allow"),
    (permission(), given("deny", option="y"), "the behaviour says deny"),
    (permission(), given("allow", updated_input=[1]), "must be an object"),
    (permission(), given("deny", updated_input={}), "takes no updated_input"),
    (permission(), given("allow", rule_updates="all"), "must be a list or an object"),
    (permission(), given("allow", answers={}), "for questions"),
    (plan(), given("allow", updated_input={}), "no input"),
    (questions(COLOUR), given("allow"), "must be `answered`"),
    (questions(COLOUR), given("answered"), "is missing"),
    (questions(COLOUR), given("answered", option="y"), "answered with `answers`"),
    (questions(COLOUR), given("answered", answers={"size": "S"}), "no question 'size'"),
    (questions(COLOUR), given("answered", answers={"colour": "green"}), "must be one of: blue, red"),
    (questions(COLOUR), given("answered", answers={"colour": ["red"]}), "takes one answer"),
    (questions(SIZES), given("answered", answers={"sizes": []}), "must be a text"),
    (questions(SIZES), given("answered", answers={"sizes": [1]}), "must be a text"),
]


@pytest.mark.parametrize(("record", "answer"), GOOD)
def test_what_fits_is_the_decision_word_for_word(record: AskRecord, answer: Given) -> None:
    decided = judge(record, answer)
    assert isinstance(decided, AskDecided)
    for name in ("behaviour", "option", "updated_input", "rule_updates", "answers", "message", "interrupt"):
        assert getattr(decided, name) == getattr(answer.answer, name)
    assert (decided.ask, decided.by, decided.answer) == (ASK, "ann", "cmd_1")


@pytest.mark.parametrize(("record", "answer", "why"), BAD)
def test_what_does_not_fit_is_refused_and_says_why(record: AskRecord, answer: Given, why: str) -> None:
    rejected = judge(record, answer)
    assert isinstance(rejected, AnswerRejected)
    assert (rejected.ask, rejected.answer, rejected.error.code) == (ASK, "cmd_1", "bad_answer")
    assert why in rejected.error.message


@pytest.mark.parametrize(
    ("status", "code"),
    [("decided", "already_decided"), ("expired", "expired"), ("withdrawn", "withdrawn"), ("lost", "withdrawn")],
)
def test_what_comes_after_the_end_is_told_which_end(status: str, code: str) -> None:
    rejected = judge(permission(status=status, ended_sequence=7), given("allow"))
    assert isinstance(rejected, AnswerRejected)
    assert rejected.error.code == code
    assert rejected.error.details["ended_sequence"] == 7


def test_an_unknown_ask_is_told_so() -> None:
    rejected = judge(None, given("allow"))
    assert isinstance(rejected, AnswerRejected)
    assert rejected.error.code == "unknown_ask"


def test_only_the_gateway_speaks_for_others() -> None:
    decided = judge(permission(), given("allow", user="script", actor="owner"))
    assert isinstance(decided, AskDecided)
    assert decided.by == "script"


def test_below_a_quorum_an_approval_is_a_vote_and_a_denial_is_the_end() -> None:
    routed = AskRouted(ask=ASK, policy="p", quorum=2)
    ann = AskVoted(ask=ASK, answer="cmd_0", by="ann", behaviour="allow")
    first = judge(permission(routed=routed), given("allow"))
    assert first == AskVoted(ask=ASK, answer="cmd_1", by="ann", behaviour="allow")
    again = judge(permission(routed=routed, votes=[ann]), given("allow"))
    assert isinstance(again, AnswerRejected)
    assert again.error.code == "already_voted"
    assert isinstance(judge(permission(routed=routed, votes=[ann]), given("allow", actor="bob")), AskDecided)
    assert isinstance(judge(permission(routed=routed), given("deny")), AskDecided)


@pytest.mark.parametrize(
    ("first", "second", "counts"),
    [
        ("ext:bot/ada", "ext:bot/bob", False),  # it lends its voice to a second person
        ("ext:bot", "ext:bot/bob", False),
        ("ext:bot/ada", "ext:bot", False),
        ("ext:bot/ada", "ada", False),  # a person speaks through it, and once more in person
        ("ada", "ext:bot/ada", False),
        ("ext:bot/ada", "ext:mail/ada", False),
        ("ext:bot/ada", "ext:mail/bob", True),
        ("ext:bot/ada", "bob", True),
        ("ada", "ext:bot/bob", True),
        ("bot", "ext:bot", True),  # an extension is no person of the same name
    ],
)
def test_an_extension_has_one_voice_whomever_it_names(first: str, second: str, counts: bool) -> None:
    record = permission(
        routed=AskRouted(ask=ASK, policy="p", quorum=2),
        votes=[AskVoted(ask=ASK, answer="cmd_0", by=first, behaviour="allow")],
    )
    said = judge(record, given("allow", actor=second))
    if counts:
        assert isinstance(said, AskDecided)
        assert said.by == second
    else:
        assert isinstance(said, AnswerRejected)
        assert said.error.code == "already_voted"


@pytest.mark.parametrize("changed", [{"updated_input": {"command": "rm"}}, {"rule_updates": [{}]}])
def test_what_two_have_to_allow_neither_may_change(changed: dict[str, Any]) -> None:
    rejected = judge(permission(routed=AskRouted(ask=ASK, policy="p", quorum=2)), given("allow", **changed))
    assert isinstance(rejected, AnswerRejected)
    assert rejected.error.code == "bad_answer"


@pytest.mark.parametrize("behaviour", ["allow", "deny"])
@pytest.mark.parametrize(
    ("needed", "role", "code"),
    [
        ("owner", "owner", None),
        ("owner", "approver", "forbidden"),
        ("approver", "owner", None),
        ("approver", "participant", "forbidden"),
        ("owner", None, "forbidden"),
        ("owner", "emperor", "forbidden"),
        ("emperor", "owner", "forbidden"),
    ],
)
def test_a_role_below_the_policys_is_refused(behaviour: str, needed: str, role: str | None, code: str | None) -> None:
    record = permission(routed=AskRouted(ask=ASK, policy="p", rule="r", role=needed))
    said = judge(record, given(behaviour, source=Source(actor="ann", via="web", role=role)))
    assert (said.error.code if isinstance(said, AnswerRejected) else None) == code


def test_a_role_counts_only_from_the_gateway() -> None:
    record = permission(routed=AskRouted(ask=ASK, policy="p", rule="r", role="owner"))
    said = judge(record, given("allow", user="script", source=Source(actor="ann", role="owner")))
    assert isinstance(said, AnswerRejected)
    assert said.error.code == "forbidden"


SIGNATURE = Signature(device="phone", time="2026-11-27T10:00:00Z", nonce="0" * 32, mac="0" * 64)


@pytest.mark.parametrize(
    ("user", "device", "signature", "accepted"),
    [
        ("gateway", "phone", SIGNATURE, True),
        ("gateway", None, SIGNATURE, False),
        ("gateway", "laptop", SIGNATURE, False),
        ("gateway", "phone", None, False),
        ("script", "phone", SIGNATURE, False),
    ],
)
def test_a_signature_counts_where_the_gateway_names_its_device(
    user: str, device: str | None, signature: Signature | None, accepted: bool
) -> None:
    record = permission(routed=AskRouted(ask=ASK, policy="p", rule="r", signed=True))
    source = Source(actor="ann", via="web", device=device)
    said = judge(record, given("allow", user=user, source=source, signature=signature))
    if accepted:
        assert isinstance(said, AskDecided)
        assert said.signature == SIGNATURE
    else:
        assert isinstance(said, AnswerRejected)
        assert said.error.code == "signature_required"


def test_a_signature_that_nobody_asked_for_is_kept_if_it_was_checked() -> None:
    checked = judge(permission(), given("allow", source=Source(actor="ann", device="phone"), signature=SIGNATURE))
    unchecked = judge(permission(), given("allow", signature=SIGNATURE))
    assert isinstance(checked, AskDecided)
    assert isinstance(unchecked, AskDecided)
    assert (checked.signature, unchecked.signature) == (SIGNATURE, None)


def test_a_rule_of_the_session_is_taken_back_once() -> None:
    rule = RuleRecord(rule=f"session-{'0' * 12}", ask=ASK, tool="Bash", by="ann", time="2026-11-27T10:00:00Z")
    decided = permission(status="decided", ended_sequence=7)
    said = judge(decided, given("deny", revoke=True, actor="bob"), [rule])
    assert said == AskRevoked(ask=ASK, rule=rule.rule, answer="cmd_1", by="bob")
    for rules in ([], [replace(rule, revoked_by="bob")]):
        again = judge(decided, given("deny", revoke=True), rules)
        assert isinstance(again, AnswerRejected)
        assert again.error.code == "unknown_rule"


def test_an_answer_is_repeated_when_its_id_has_an_outcome() -> None:
    decision = AskDecided(ask=ASK, behaviour="allow", by="ann", answer="cmd_1")
    record = permission(status="decided", decision=decision)
    assert is_repeated(record, given("allow").answer)
    assert not is_repeated(record, given("allow", id="cmd_2").answer)
    assert not is_repeated(None, given("allow").answer)

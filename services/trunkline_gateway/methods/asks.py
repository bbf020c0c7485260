"""`ask.list`, `ask.answer`, `ask.rules`, `ask.revoke`: what waits for a decision, deciding it, and taking back what was
decided for good.
"""

from collections.abc import Callable
from typing import Final, Literal, NotRequired, TypedDict, TypeVar

from msgspec.structs import replace

from trunkline_fold.asks import Ask, AsksState, RejectedAnswer, RuleRecord
from trunkline_fold.team.board import TeamRequest
from trunkline_gateway.answers import check_answer
from trunkline_gateway.boards import team_asks
from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.registry import Page, Paged, Params, method, page_of
from trunkline_gateway.sight import Sight, require_sight
from trunkline_gateway.signatures import WINDOW_S, check_signature, make_nonce
from trunkline_wire import ERRORS, Answer, Source, TrunklineError, timestamp
from trunkline_wire.asks import AskDecided, Behaviour, Signature
from trunkline_wire.blocks import Json
from trunkline_wire.ids import check_id, new_command_id
from trunkline_wire.signing import FORM

T = TypeVar("T")

DECISION_S: Final = 10.0


class List(Paged, frozen=True, kw_only=True):
    session: str | None = None
    team: str | None = None
    status: Literal["open", "decided", "expired", "withdrawn", "lost", "all"] = "open"


class AskPage(Page):
    """Of a team `members` and `requests` too: by ask the member that asks (None: the lead), and what no session can answer."""

    asks: list[Ask]
    members: NotRequired[dict[str, str | None]]
    requests: NotRequired[list[TeamRequest]]


@method("ask.list", "viewer", List, limited="itself")
async def list_(gateway: Gateway, caller: Caller, params: List) -> AskPage:
    """The asks of one session, of a team (its lead and its members) or of all, in the order in which they came; open ones by default.

    Of a team `members` says which member asks, and `requests` what members wait for that no session on the bus can answer.
    """
    if params.session is not None:
        check_id(params.session, "ses")
    sight = Sight(gateway.directory, caller.principal.scope)
    if params.team is None:
        asks = sight.asks(params.session)
        shown, page = page_of([ask for ask in asks if params.status in ("all", ask.status)], params)
        return {"asks": shown, **page}
    found = gateway.boards.find(gateway.directory, caller.principal.scope, params.team)
    known = team_asks(found, sight)
    asks = [ask for ask in known if params.status in ("all", ask.status)]
    shown, page = page_of([ask for ask in asks if params.session in (None, ask.session)], params)
    return {
        "asks": shown,
        **page,
        "members": {ask.ask: found.member_of(ask) for ask in asks},
        "requests": found.requests(known),
    }


class Answered(TypedDict):
    """`decided`, or `voted` where more voices are needed: `votes` of a `quorum`."""

    outcome: Literal["decided", "voted"]
    answer: str
    decision: NotRequired[AskDecided]
    votes: NotRequired[int]
    quorum: NotRequired[int]


class AnswerParams(Params, frozen=True, kw_only=True):
    ask: str
    behaviour: Behaviour
    session: str | None = None
    option: str | None = None
    updated_input: Json = None
    rule_updates: Json = None
    answers: dict[str, Json] | None = None
    message: str | None = None
    interrupt: bool = False
    signature: Signature | None = None
    id: str | None = None


@method("ask.answer", "approver", AnswerParams, acts_as_person=True, limited="itself")
async def answer(gateway: Gateway, caller: Caller, params: AnswerParams) -> Answered:
    """Decide an ask. The same `id` again gets the same outcome; who is too late learns what was decided.

    A signed answer has an id, which is signed with it.
    """
    check_id(params.ask, "ask")
    ask = await _find(gateway, params)
    await require_sight(gateway.directory, caller.principal, ask.session)
    if params.id is None and params.signature is not None:
        raise TrunklineError("bad_params", "a signed answer needs an `id`, which is signed with it", field="id")
    if params.id is not None and (known := judge(ask, check_id(params.id, "cmd"))) is not None:
        return known
    given = Answer(
        id=params.id or new_command_id(),
        session=ask.session,
        ask=params.ask,
        behaviour=params.behaviour,
        time=timestamp(),
        option=params.option,
        updated_input=params.updated_input,
        rule_updates=params.rule_updates,
        answers=params.answers,
        message=params.message,
        interrupt=params.interrupt,
        signature=params.signature,
        source=answering(caller),
    )
    if ask.status == "open":
        device = await check_signature(gateway.bus, gateway.requests.user, gateway.devices, caller.principal, given)
        given = replace(given, source=replace(answering(caller), device=device))
    return await give(gateway, ask, given)


class Nothing(Params, frozen=True, kw_only=True):
    pass


class Nonce(TypedDict):
    nonce: str
    time: str
    window_s: float
    form: str


@method("ask.nonce", "approver", Nothing, acts_as_person=True, limited="itself")
async def nonce(gateway: Gateway, caller: Caller, _: Nothing) -> Nonce:
    """For one signed answer: a nonce, the server's time, how many seconds both are good for, and the form of what is signed."""
    made = await make_nonce(gateway.bus, caller.principal.actor)
    return {"nonce": made, "time": timestamp(), "window_s": WINDOW_S, "form": FORM}


def answering(caller: Caller) -> Source:
    """Who answers, and with what right: the permission service has no other word for it than the gateway's."""
    return replace(caller.principal.source, role=caller.principal.role)


async def give(gateway: Gateway, ask: Ask, given: Answer) -> Answered:
    """Bring an answer to the log, and wait for what becomes of it. Raises TrunklineError for one that did not win."""
    if ask.status == "open":
        check_answer(ask, given)
        await gateway.requests.answer(given)

    def judged() -> Answered | None:
        record = gateway.directory.ask(given.ask)
        if record is None:
            raise TrunklineError("unknown_ask", f"the ask {given.ask!r} is no longer in the log", ask=given.ask)
        return judge(record, given.id)

    return await _outcome(gateway, given, judged)


async def _find(gateway: Gateway, params: AnswerParams) -> Ask:
    ask = gateway.directory.ask(params.ask)
    if ask is None and params.session is not None:
        # It may be in the log and not yet here.
        check_id(params.session, "ses")
        await gateway.directory.session(params.session)
        ask = gateway.directory.ask(params.ask)
    if ask is None or (params.session is not None and ask.session != params.session):
        raise TrunklineError("unknown_ask", f"there is no ask {params.ask!r}", ask=params.ask)
    return ask


async def _outcome(gateway: Gateway, given: Answer, judged: Callable[[], T | None]) -> T:
    try:
        return await gateway.directory.until(given.session, judged, DECISION_S)
    except TimeoutError:
        raise TrunklineError(
            "timeout",
            f"no decision within {DECISION_S:g} s; the answer {given.id!r} may still take effect: "
            "repeat it with the same id to learn the outcome",
            answer=given.id,
        ) from None


def judge(record: Ask, answer: str) -> Answered | None:
    """What became of an answer, by the fold; None while it is open. Raises TrunklineError for one that did not win."""
    if record.status == "decided" and record.decision is not None:
        if record.decision.answer == answer:
            return {"outcome": "decided", "decision": record.decision, "answer": answer}
        raise TrunklineError(
            "already_decided",
            f"{record.decision.by} was first: {record.decision.behaviour}",
            ask=record.ask,
            behaviour=record.decision.behaviour,
            by=record.decision.by,
        )
    if record.status == "expired":
        raise TrunklineError("expired", "the ask has expired", ask=record.ask)
    if record.status in ("withdrawn", "lost"):
        why = record.withdrawn or "its agent is gone"
        raise TrunklineError("withdrawn", f"the agent no longer asks ({why})", ask=record.ask)
    for rejected in record.rejected:
        if rejected.answer == answer:
            raise _refusal(rejected, record.ask)
    if any(vote.answer == answer for vote in record.votes):
        quorum = record.routed.quorum if record.routed is not None else 1
        return {"outcome": "voted", "votes": len(record.votes), "quorum": quorum, "answer": answer}
    return None


def _refusal(rejected: RejectedAnswer, ask: str) -> TrunklineError:
    """What the permission service said no with. A code that this version does not know is one of a bad answer."""
    code = rejected.code if rejected.code in ERRORS else "bad_answer"
    return TrunklineError(code, rejected.message or rejected.code, ask=ask, reason=rejected.code)


class Rules(Params, frozen=True, kw_only=True):
    session: str


class SessionRules(TypedDict):
    rules: list[RuleRecord]


@method("ask.rules", "viewer", Rules)
async def rules(gateway: Gateway, _: Caller, params: Rules) -> SessionRules:
    """The session's own rules, which people made by allowing something for good, those that were revoked too."""
    await gateway.directory.session(params.session)
    return {"rules": gateway.directory.asks_of(params.session).rules}


class Revoke(Params, frozen=True, kw_only=True):
    session: str
    rule: str
    id: str | None = None


class RuleRevoked(TypedDict):
    rule: RuleRecord
    answer: str


@method("ask.revoke", "approver", Revoke, acts_as_person=True)
async def revoke(gateway: Gateway, caller: Caller, params: Revoke) -> RuleRevoked:
    """Take a rule of the session back: what it allowed is asked about again. The same `id` again gets the same outcome."""
    await gateway.directory.session(params.session)
    known = gateway.directory.asks_of(params.session)
    rule = next((rule for rule in known.rules if rule.rule == params.rule), None)
    if rule is None:
        raise TrunklineError(
            "unknown_rule", f"the session has no rule {params.rule!r}; `ask.rules` names them", rule=params.rule
        )
    given = Answer(
        id=check_id(params.id, "cmd") if params.id is not None else new_command_id(),
        session=params.session,
        ask=rule.ask,
        behaviour="deny",
        time=timestamp(),
        revoke=True,
        source=answering(caller),
    )
    if rule.in_force:
        await gateway.requests.answer(given)
    return await _outcome(
        gateway, given, lambda: _revoked(gateway.directory.asks_of(params.session), params.rule, given)
    )


def _revoked(state: AsksState, name: str, given: Answer) -> RuleRevoked | None:
    rule = next((rule for rule in state.rules if rule.rule == name), None)
    if rule is None or not rule.in_force:
        if rule is not None and rule.revoked_answer == given.id:
            return {"rule": rule, "answer": given.id}
        by = "" if rule is None else f" by {rule.revoked_by}"
        raise TrunklineError("unknown_rule", f"the rule {name!r} was revoked already{by}", rule=name)
    record = state.asks.get(given.ask)
    for rejected in record.rejected if record is not None else ():
        if rejected.answer == given.id:
            raise _refusal(rejected, given.ask)
    return None

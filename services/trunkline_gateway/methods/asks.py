"""`ask.*`: what waits for a decision, and deciding it."""

from typing import Any, Final, Literal

from trunkline_fold.asks import AskRecord
from trunkline_gateway.answers import check_answer
from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.registry import Params, method
from trunkline_gateway.sight import Sight, require_sight
from trunkline_wire import Answer, TrunklineError, timestamp
from trunkline_wire.asks import Behaviour
from trunkline_wire.blocks import Json
from trunkline_wire.ids import check_id, new_command_id

DECISION_S: Final = 10.0


class List(Params, frozen=True, kw_only=True):
    session: str | None = None
    status: Literal["open", "decided", "expired", "withdrawn", "lost", "all"] = "open"


@method("ask.list", "viewer", List, limited="itself")
async def list_(gateway: Gateway, caller: Caller, params: List) -> dict[str, Any]:
    """The asks of one session or of all, open ones by default."""
    if params.session is not None:
        check_id(params.session, "ses")
    asks = Sight(gateway.directory, caller.principal.scope).asks(params.session)
    return {"asks": [ask for ask in asks if params.status in ("all", ask.status)]}


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
    id: str | None = None


@method("ask.answer", "approver", AnswerParams, acts_as_person=True, limited="itself")
async def answer(gateway: Gateway, caller: Caller, params: AnswerParams) -> dict[str, Any]:
    """Decide an ask. The same `id` again gets the same outcome; who is too late learns what was decided."""
    check_id(params.ask, "ask")
    ask = await _find(gateway, params)
    await require_sight(gateway.directory, caller.principal, ask.session)
    given = Answer(
        id=check_id(params.id, "cmd") if params.id is not None else new_command_id(),
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
        source=caller.principal.source,
    )
    if ask.status == "open":
        check_answer(ask, given)
        await gateway.requests.answer(given)
    return await _outcome(gateway, given)


async def _find(gateway: Gateway, params: AnswerParams) -> AskRecord:
    ask = gateway.directory.ask(params.ask)
    if ask is None and params.session is not None:
        # It may be in the log and not yet here.
        check_id(params.session, "ses")
        await gateway.directory.session(params.session)
        ask = gateway.directory.ask(params.ask)
    if ask is None or (params.session is not None and ask.session != params.session):
        raise TrunklineError("unknown_ask", f"there is no ask {params.ask!r}", ask=params.ask)
    return ask


async def _outcome(gateway: Gateway, given: Answer) -> dict[str, Any]:
    def judged() -> dict[str, Any] | None:
        record = gateway.directory.ask(given.ask)
        if record is None:
            raise TrunklineError("unknown_ask", f"the ask {given.ask!r} is no longer in the log", ask=given.ask)
        return judge(record, given.id)

    try:
        return await gateway.directory.until(given.session, judged, DECISION_S)
    except TimeoutError:
        raise TrunklineError(
            "timeout",
            f"no decision within {DECISION_S:g} s; the answer {given.id!r} may still take effect: "
            "repeat it with the same id to learn the outcome",
            answer=given.id,
        ) from None


def judge(record: AskRecord, answer: str) -> dict[str, Any] | None:
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
            raise TrunklineError("bad_answer", rejected.message or rejected.code, ask=record.ask, reason=rejected.code)
    if any(vote.answer == answer for vote in record.votes):
        quorum = record.routed.quorum if record.routed is not None else 1
        return {"outcome": "voted", "votes": len(record.votes), "quorum": quorum, "answer": answer}
    return None

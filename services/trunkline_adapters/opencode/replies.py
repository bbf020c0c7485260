"""Decisions in OpenCode's own words: where the answer to an ask goes, and what it says."""

from typing import Any

from trunkline_adapters.opencode.state import Ask
from trunkline_adapters.opencode.translate_asks import ALWAYS, ONCE, REJECT, STOP
from trunkline_agentkit.fields import Obj, objects, text
from trunkline_wire import TrunklineError
from trunkline_wire.asks import AskDecided

_NO = "The user rejected this."


def answer(ask: Ask, decided: AskDecided) -> tuple[str, Any]:
    """(path, body) of the request that answers. Raises TrunklineError `bad_answer` where the decision does not fit the ask."""
    if ask.kind == "question":
        return _question(ask, decided)
    return f"/permission/{ask.key}/reply", _permission(decided)


def repeated(ask: Ask) -> tuple[str, Any]:
    """The answer that was given before, once more."""
    if ask.kind == "permission":
        return f"/permission/{ask.key}/reply", ask.body
    return f"/question/{ask.key}/{'reply' if ask.body else 'reject'}", ask.body or None


def _permission(decided: AskDecided) -> Obj:
    if decided.updated_input is not None:
        raise TrunklineError("bad_answer", "the agent runs what its model wrote, or nothing: leave the input as it is")
    if decided.behaviour != "deny":
        return {"reply": ALWAYS if decided.option == ALWAYS or decided.rule_updates is not None else ONCE}
    if decided.interrupt or decided.option == STOP:
        return {"reply": REJECT}
    # Without a message the whole turn would end.
    return {"reply": REJECT, "message": decided.message or _NO}


def _question(ask: Ask, decided: AskDecided) -> tuple[str, Any]:
    if decided.behaviour == "deny":
        return f"/question/{ask.key}/reject", None
    if not decided.answers:
        raise TrunklineError("bad_answer", "a question is answered by `answers`: the label or text for each question")
    asked = [text(one, "question") or "" for one in objects(ask.request, "questions")]
    answers = [_labels(decided.answers.get(question)) for question in asked]
    return f"/question/{ask.key}/reply", {"answers": answers}


def _labels(said: object) -> list[str]:
    if said is None:
        return []
    return [str(one) for one in said] if isinstance(said, list) else [str(said)]

"""Decisions in the agent's words."""

from typing import Any

from trunkline_adapters.acp.state import Ask
from trunkline_adapters.acp.translate_asks import choices
from trunkline_agentkit.fields import Obj, as_obj, items, obj, objects, text
from trunkline_wire import TrunklineError
from trunkline_wire.asks import AskDecided

CANCELLED: Obj = {"outcome": {"outcome": "cancelled"}}


def result_of(ask: Ask, decided: AskDecided) -> Obj:
    """The result that answers `ask`. Raises TrunklineError `bad_answer` where the decision does not fit."""
    match ask.kind:
        case "form":
            return _form(ask, decided)
        case "url":
            return {"action": "decline" if decided.behaviour == "deny" else "accept"}
        case _:
            option = _option(ask, decided)
            if option is None:
                return CANCELLED
            chosen: Obj = {"outcome": {"outcome": "selected", "optionId": option}}
            return chosen | (
                {"answers": _answers(decided.answers)} if ask.kind == "questions" and decided.answers else {}
            )


def cancelled(ask: Ask) -> Obj:
    """The result that calls the ask off."""
    return {"action": "cancel"} if ask.kind in ("form", "url") else CANCELLED


def _option(ask: Ask, decided: AskDecided) -> str | None:
    """The option that was chosen, or the first that does what was decided and nothing beyond this once, if there is one."""
    options = [(text(one, "optionId") or "", text(one, "kind") or "other") for one in objects(ask.params, "options")]
    if decided.option is not None:
        if decided.option not in [name for name, _ in options]:
            raise TrunklineError("bad_answer", f"the ask has no option {decided.option!r}: take one of those it lists")
        return decided.option
    wanted = ("reject_once", "reject_always") if decided.behaviour == "deny" else ("allow_once", "allow_always")
    for kind in wanted:
        for name, its in options:
            if its == kind:
                return name
    if decided.behaviour == "deny":
        return None
    raise TrunklineError("bad_answer", "the ask has no option that allows: choose one of those it lists by its id")


def _answers(given: Obj) -> dict[str, str]:
    """An answer for each question, as a text: several choices one behind the other."""
    return {name: ", ".join(map(str, items(given, name) or [value])) for name, value in given.items()}


def _form(ask: Ask, decided: AskDecided) -> Obj:
    if decided.behaviour == "deny":
        return {"action": "decline"}
    given = decided.answers if decided.answers is not None else as_obj(decided.updated_input)
    properties = obj(obj(ask.params, "requestedSchema"), "properties")
    content = {name: _value(name, as_obj(properties.get(name)), value) for name, value in given.items()}
    return {"action": "accept", "content": content}


def _value(name: str, schema: Obj, given: Any) -> Any:
    """An answer as its property wants it: people answer with labels and texts."""
    labels = choices(schema)
    match text(schema, "type"):
        case "array":
            many = given if isinstance(given, list) else [given]
            return [labels.get(str(one), one) for one in many]
        case "boolean" if isinstance(given, str):
            if given.lower() not in ("yes", "true", "no", "false"):
                raise TrunklineError("bad_answer", f"{name!r} is answered by yes or no")
            return given.lower() in ("yes", "true")
        case "integer" | "number" as kind if isinstance(given, str):
            try:
                return int(given) if kind == "integer" else float(given)
            except ValueError as error:
                raise TrunklineError("bad_answer", f"{name!r} is answered by a number") from error
        case _:
            return labels.get(given, given) if isinstance(given, str) else given

"""What goes back to the CLI: decisions in its own words, and answers to requests that nobody has to decide."""

from typing import Any

from trunkline_adapters.claude.state import Ask
from trunkline_adapters.claude.translate_asks import ACCEPT_EDITS, SUGGESTION
from trunkline_agentkit.fields import Obj, as_obj, items, obj, text
from trunkline_wire import TrunklineError
from trunkline_wire.asks import AskDecided

_DENIED = "The user refused this. Ask what to do instead, or go on without it."


def decision(ask: Ask, decided: AskDecided) -> Obj:
    """The payload of the `control_response` to `ask`. Raises TrunklineError `bad_answer` where it does not fit."""
    if ask.kind == "form":
        return _form(decided)
    if decided.behaviour == "deny":
        # `message` is required: without it the CLI calls the answer invalid.
        return {"behavior": "deny", "message": decided.message or _DENIED, "interrupt": decided.interrupt}
    if ask.kind == "question":
        return {"behavior": "allow", "updatedInput": _answers(ask, decided)}
    # `updatedInput` is optional today; older CLIs want it always.
    changed = decided.updated_input
    reply: Obj = {
        "behavior": "allow",
        "updatedInput": changed if isinstance(changed, dict) else obj(ask.request, "input"),
    }
    updates = _updates(ask, decided)
    return reply | ({"updatedPermissions": updates} if updates else {})


def _answers(ask: Ask, decided: AskDecided) -> Obj:
    changed = decided.updated_input
    if decided.answers is None and isinstance(changed, dict):
        return as_obj(changed)
    if not decided.answers:
        raise TrunklineError("bad_answer", "a question is answered by `answers`: the label or text for each question")
    answers = {
        question: ", ".join(str(one) for one in said) if isinstance(said, list) else str(said)
        for question, said in decided.answers.items()
    }
    return {"questions": items(obj(ask.request, "input"), "questions"), "answers": answers}


def _updates(ask: Ask, decided: AskDecided) -> list[Any]:
    rules = decided.rule_updates
    if isinstance(rules, list):
        return rules
    if rules is not None:
        raise TrunklineError("bad_answer", "`rule_updates` is a list of the agent's own permission updates")
    option = decided.option or ""
    if option == ACCEPT_EDITS:
        return [{"type": "setMode", "mode": "acceptEdits", "destination": "session"}]
    if not option.startswith(SUGGESTION):
        return []
    suggestions = items(ask.request, "permission_suggestions")
    number = option.removeprefix(SUGGESTION)
    if not number.isdigit() or int(number) >= len(suggestions):
        raise TrunklineError("bad_answer", f"the ask has no option {option!r}: take one of those it lists")
    return [suggestions[int(number)]]


def _form(decided: AskDecided) -> Obj:
    if decided.behaviour == "deny":
        return {"action": "decline"}
    content = decided.answers if decided.answers is not None else decided.updated_input
    return {"action": "accept", "content": content if isinstance(content, dict) else {}}


def response(request_id: str, payload: Obj) -> Obj:
    return {
        "type": "control_response",
        "response": {"subtype": "success", "request_id": request_id, "response": payload},
    }


def refusal(request_id: str, error: str) -> Obj:
    return {"type": "control_response", "response": {"subtype": "error", "request_id": request_id, "error": error}}


def automatic(message: Obj) -> Obj | None:
    """The answer to a request that no person decides; None for one that a person does."""
    request_id = text(message, "request_id")
    if text(message, "type") != "control_request" or request_id is None:
        return None
    match text(obj(message, "request"), "subtype"):
        case "can_use_tool" | "elicitation":
            return None
        case "hook_callback":
            return response(request_id, {})
        case "request_user_dialog":
            return response(request_id, {"behavior": "cancelled"})
        case other:
            return refusal(request_id, f"this host does not serve requests of subtype {other!r}")

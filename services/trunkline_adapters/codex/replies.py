"""Decisions in Codex's own words: the `result` of the answer to each kind of request."""

from typing import Any

from trunkline_adapters.codex.state import Ask
from trunkline_adapters.codex.translate_asks import (
    ACCEPT_ALWAYS,
    ACCEPT_SESSION,
    CANCEL,
    EXECPOLICY,
    NETWORK,
    RESULT,
)
from trunkline_agentkit.fields import Obj, items, obj, objects, strings
from trunkline_wire import TrunklineError, encode
from trunkline_wire.asks import AskDecided


def result(ask: Ask, decided: AskDecided) -> Obj:
    """The result to answer with. Raises TrunklineError `bad_answer` where the decision does not fit the ask."""
    match ask.kind:
        case "command":
            return {"decision": _command(ask, decided)}
        case "file":
            return {"decision": _once_or_session(decided)}
        case "permissions":
            return _permissions(ask, decided)
        case "tool":
            return _tool(decided)
        case "question":
            return {"answers": _answers(decided)}
        case "call":
            return _call(decided)
        case _:
            return _form(decided)


def _once_or_session(decided: AskDecided) -> str:
    if decided.behaviour == "deny":
        return "cancel" if decided.interrupt or decided.option == CANCEL else "decline"
    return "acceptForSession" if decided.option == ACCEPT_SESSION else "accept"


def _command(ask: Ask, decided: AskDecided) -> Any:
    option = decided.option or ""
    if option.startswith(NETWORK):
        rules = objects(ask.params, "proposedNetworkPolicyAmendments")
        number = option.removeprefix(NETWORK)
        if not number.isdigit() or int(number) >= len(rules):
            raise TrunklineError("bad_answer", f"the ask has no option {option!r}: take one of those it lists")
        return {"applyNetworkPolicyAmendment": {"network_policy_amendment": rules[int(number)]}}
    if decided.behaviour == "deny":
        return _once_or_session(decided)
    if decided.rule_updates is not None or option == EXECPOLICY:
        return {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": _prefix(ask, decided)}}
    return _once_or_session(decided)


def _prefix(ask: Ask, decided: AskDecided) -> list[str]:
    """The words that an allowed command begins with: those of the decision, or those that Codex proposed."""
    chosen = decided.rule_updates
    if chosen is None:
        return strings(items(ask.params, "proposedExecpolicyAmendment"))
    if not isinstance(chosen, list) or not chosen or not all(isinstance(word, str) for word in chosen):
        raise TrunklineError("bad_answer", "`rule_updates` is a list of the words that an allowed command begins with")
    return strings(chosen)


def _permissions(ask: Ask, decided: AskDecided) -> Obj:
    if decided.behaviour == "deny":
        return {"permissions": {}}
    changed = decided.updated_input
    granted = changed if isinstance(changed, dict) else obj(ask.params, "permissions")
    return {"permissions": granted, "scope": "session" if decided.option == ACCEPT_SESSION else "turn"}


def _tool(decided: AskDecided) -> Obj:
    if decided.behaviour == "deny":
        return {"action": "decline", "content": None, "_meta": None}
    scope = {ACCEPT_SESSION: "session", ACCEPT_ALWAYS: "always"}.get(decided.option or "")
    return {"action": "accept", "content": {}, "_meta": {"persist": scope} if scope else None}


def _answers(decided: AskDecided) -> Obj:
    if decided.behaviour == "deny":
        return {}
    if not decided.answers:
        raise TrunklineError("bad_answer", "a question is answered by `answers`: the label or text for each question")
    return {
        question: {"answers": [str(one) for one in said] if isinstance(said, list) else [str(said)]}
        for question, said in decided.answers.items()
    }


def _call(decided: AskDecided) -> Obj:
    if decided.behaviour == "deny":
        return _output(decided.message or "The call was refused.", success=False)
    said = (decided.answers or {}).get(RESULT, decided.updated_input)
    if said is None:
        raise TrunklineError("bad_answer", f"a call is answered by `answers` with {RESULT!r}: what the tool returns")
    return _output(said if isinstance(said, str) else encode(said).decode(), success=True)


def _output(said: str, *, success: bool) -> Obj:
    return {"contentItems": [{"type": "inputText", "text": said}], "success": success}


def _form(decided: AskDecided) -> Obj:
    if decided.behaviour == "deny":
        return {"action": "decline", "content": None, "_meta": None}
    content = decided.answers if decided.answers is not None else decided.updated_input
    return {"action": "accept", "content": content if isinstance(content, dict) else {}, "_meta": None}

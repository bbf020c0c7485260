"""What an agent wants decided, as dialogs of the editor, and the editor's answers as ours. Pure.

A permission and a plan are `session/request_permission`, with the agent's own options. Questions are a form
(`elicitation/create`); an editor without forms gets each question with a single choice as a dialog of its own.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from trunkline_acp.content import edit_of, text_content, words, wrapped
from trunkline_acp.native import ELICITATION, PERMISSION
from trunkline_agentkit.fields import Obj, as_obj, obj, text
from trunkline_fold.answering import Asked, choose, input_line
from trunkline_wire.asks import AskOption, PermissionRequested, PlanProposed, Question, QuestionAsked

ALLOW: Final = AskOption(id="trunkline:allow", name="Allow", kind="allow_once")
DENY: Final = AskOption(id="trunkline:deny", name="Deny", kind="reject_once")
OWN_WORDS: Final = "__own_words"
"""Ends the name of a form's field in which a question with options is answered in one's own words."""

Answer = dict[str, Any]
"""The parameters of `ask.answer`, but for the ask itself."""

DENIED: Final[Mapping[str, Any]] = {"behaviour": "deny"}
CALLED_OFF: Final[Mapping[str, Any]] = {"behaviour": "deny", "interrupt": True}
"""A dialog that was cancelled: the protocol's editors do that only with the whole turn."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A request to the editor."""

    method: str
    params: Obj


def tool_title(name: str, title: str | None, given: Any) -> str:
    """What a tool call is called: its own title, or its name and what it is about."""
    about = input_line(given)
    return title or (f"{name}: {about}" if about else name)


def permission(asked: PermissionRequested | PlanProposed, session: str, cwd: str | None) -> Request:
    """The dialog for a permission or a plan."""
    call: Obj = {"toolCallId": asked.tool or asked.ask, "status": "pending"}
    match asked:
        case PermissionRequested():
            call |= {"title": tool_title(asked.name, asked.title, asked.input), "kind": asked.kind}
            call |= {} if asked.input is None else {"rawInput": asked.input}
            shown = edit_of(asked.input, cwd)
            content = [] if shown is None else [shown]
            content += [wrapped(text_content(said)) for said in (asked.description, asked.reason) if said]
        case PlanProposed():
            call |= {"title": "A plan to approve", "kind": "switch_mode", "rawInput": {"plan": words(asked.plan)}}
            content = [wrapped(text_content(words(asked.plan)))]
    if content:
        call["content"] = content
    options = [{"optionId": one.id, "name": one.name, "kind": one.kind} for one in _offered(asked.options)]
    return Request(method=PERMISSION, params={"sessionId": session, "toolCall": call, "options": options})


def permission_answer(asked: PermissionRequested | PlanProposed, result: Obj) -> Answer:
    """What the editor has chosen."""
    outcome = obj(result, "outcome")
    chosen = text(outcome, "optionId")
    if text(outcome, "outcome") != "selected" or chosen is None:
        return dict(CALLED_OFF)
    for option in (ALLOW, DENY):
        if chosen == option.id:
            return {"behaviour": choose(option)["behaviour"]}
    option = next((one for one in asked.options if one.id == chosen), None)
    return dict(DENIED) if option is None else choose(option)


def _offered(options: Sequence[AskOption]) -> list[AskOption]:
    """The options that allow or deny, and a plain one where the agent has none of its own."""
    offered = [one for one in options if one.kind != "other"]
    kinds = {one.kind.partition("_")[0] for one in offered}
    return offered + [one for one in (ALLOW, DENY) if one.kind.partition("_")[0] not in kinds]


def form(asked: QuestionAsked, session: str) -> Request:
    """The form for all questions of an ask."""
    properties: Obj = {}
    required: list[str] = []
    for question in asked.questions:
        properties[question.id] = _property(question)
        if question.options and question.free_text:
            title = f"{question.header or question.text}: in your own words"
            properties[question.id + OWN_WORDS] = {"type": "string", "title": title}
        else:
            required.append(question.id)
    params: Obj = {
        "mode": "form",
        "sessionId": session,
        "message": asked.message or "\n".join(one.text for one in asked.questions) or "The agent asks.",
        "requestedSchema": {"type": "object", "properties": properties, "required": required},
    }
    return Request(method=ELICITATION, params=params | ({"toolCallId": asked.tool} if asked.tool else {}))


def form_answer(asked: QuestionAsked, result: Obj) -> Answer:
    """What was filled in. A form that leaves a question open declines, as the log knows no half answers."""
    if text(result, "action") != "accept":
        return dict(DENIED)
    content = obj(result, "content")
    answers: dict[str, Any] = {}
    for question in asked.questions:
        said = content.get(question.id + OWN_WORDS) or content.get(question.id)
        value = [str(one) for one in said] if isinstance(said, list) else said
        if value in (None, "", []):
            return dict(DENIED)
        answers[question.id] = [value] if question.multiple and isinstance(value, str) else value
    return {"behaviour": "answered", "answers": answers}


def choice(question: Question, session: str, tool: str) -> Request:
    """The dialog for one question with a single choice, for an editor without forms."""
    options: list[Obj] = [
        {"optionId": str(number), "name": one.label, "kind": "allow_once"}
        for number, one in enumerate(question.options)
    ]
    options.append({"optionId": DENY.id, "name": "Don't answer", "kind": "reject_once"})
    details = [f"- {one.label}: {one.description}" for one in question.options if one.description]
    call: Obj = {"toolCallId": tool, "status": "pending", "title": question.text, "kind": "other"}
    if details:
        call["content"] = [wrapped(text_content("\n".join(details)))]
    return Request(method=PERMISSION, params={"sessionId": session, "toolCall": call, "options": options})


def choice_answer(question: Question, result: Obj) -> str | None:
    """The label that was chosen; None for no answer."""
    chosen = text(obj(result, "outcome"), "optionId") or ""
    return question.options[int(chosen)].label if chosen.isdecimal() and int(chosen) < len(question.options) else None


def choosable(asked: QuestionAsked) -> bool:
    """Whether each of its questions can be put as one choice."""
    return bool(asked.questions) and all(one.options and not one.multiple for one in asked.questions)


def unanswerable(asked: Asked) -> str:
    """What an editor is told that can't show a question."""
    lines = [asked.message or ""] if isinstance(asked, QuestionAsked) else []
    lines += [one.text for one in asked.questions] if isinstance(asked, QuestionAsked) else []
    said = "\n".join(f"> {line}" for line in lines if line)
    return f"{said}\n\nThis editor has no form for it: answer it in the browser, or with `trunkline answer {asked.ask[:16]}`."


def _property(question: Question) -> Obj:
    title = {"title": question.header or question.text}
    if question.header and question.header != question.text:
        title["description"] = question.text
    options = [_option(one.label, one.description) for one in question.options]
    if question.multiple and options:
        return {"type": "array", "items": {"anyOf": options}} | title
    return {"type": "string"} | title | ({"oneOf": options} if options else {})


def _option(label: str, description: str | None) -> Obj:
    return as_obj({"const": label, "title": label}) | ({"description": description} if description else {})

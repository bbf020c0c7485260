"""Asks as an editor's dialogs, and its answers. Every request fits the protocol's schema."""

from typing import Any

import pytest
from acp.schema import CreateFormSessionElicitationRequest, RequestPermissionRequest

from trunkline_acp import asks
from trunkline_wire.asks import AskOption, PermissionRequested, PlanProposed, Question, QuestionAsked, QuestionOption

SESSION = "ses_" + "1" * 32


def permission(**fields: Any) -> PermissionRequested:
    return PermissionRequested(ask="ask_1", incarnation="i", name="Bash", kind="execute", tool="itm_1", **fields)


OPTIONS = [
    AskOption(id="once", name="Yes", kind="allow_once"),
    AskOption(id="always", name="Always", kind="allow_always"),
    AskOption(id="edit", name="Change it", kind="other"),
    AskOption(id="no", name="No", kind="reject_once"),
]


def test_a_permission_has_the_agents_own_options() -> None:
    request = asks.permission(permission(input={"command": "ls"}, options=OPTIONS, reason="policy"), SESSION, "/work")
    RequestPermissionRequest.model_validate(request.params)
    assert request.method == "session/request_permission"
    assert request.params == {
        "sessionId": SESSION,
        "toolCall": {
            "toolCallId": "itm_1",
            "status": "pending",
            "title": "Bash: ls",
            "kind": "execute",
            "rawInput": {"command": "ls"},
            "content": [{"type": "content", "content": {"type": "text", "text": "policy"}}],
        },
        "options": [
            {"optionId": "once", "name": "Yes", "kind": "allow_once"},
            {"optionId": "always", "name": "Always", "kind": "allow_always"},
            {"optionId": "no", "name": "No", "kind": "reject_once"},
        ],
    }


def test_a_permission_without_options_is_allowed_or_denied() -> None:
    asked = permission()
    offered = asks.permission(asked, SESSION, None).params["options"]
    assert [(one["optionId"], one["kind"]) for one in offered] == [
        ("trunkline:allow", "allow_once"),
        ("trunkline:deny", "reject_once"),
    ]
    assert asks.permission_answer(asked, selected("trunkline:allow")) == {"behaviour": "allow"}
    assert asks.permission_answer(asked, selected("trunkline:deny")) == {"behaviour": "deny"}


def selected(option: str) -> dict[str, Any]:
    return {"outcome": {"outcome": "selected", "optionId": option}}


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        (selected("once"), {"behaviour": "allow", "option": "once"}),
        (selected("always"), {"behaviour": "allow", "option": "always"}),
        (selected("no"), {"behaviour": "deny", "option": "no"}),
        (selected("never heard of"), {"behaviour": "deny"}),
        ({"outcome": {"outcome": "cancelled"}}, {"behaviour": "deny", "interrupt": True}),
        ({}, {"behaviour": "deny", "interrupt": True}),
        ({"outcome": {"outcome": "of_next_year"}, "_meta": {"x": 1}}, {"behaviour": "deny", "interrupt": True}),
    ],
)
def test_what_was_chosen_is_our_answer(result: dict[str, Any], answer: dict[str, Any]) -> None:
    assert asks.permission_answer(permission(options=OPTIONS), result) == answer


def test_a_change_shows_in_its_permission() -> None:
    asked = permission(input={"file_path": "/work/a", "content": "new"})
    (shown,) = asks.permission(asked, SESSION, "/work").params["toolCall"]["content"]
    assert shown == {"type": "diff", "path": "/work/a", "oldText": None, "newText": "new"}


def test_a_plan_is_a_switch_of_modes() -> None:
    asked = PlanProposed(ask="ask_1", incarnation="i", plan="1. do A", options=OPTIONS)
    request = asks.permission(asked, SESSION, None)
    RequestPermissionRequest.model_validate(request.params)
    call = request.params["toolCall"]
    assert (call["toolCallId"], call["kind"], call["rawInput"]) == ("ask_1", "switch_mode", {"plan": "1. do A"})
    assert call["content"] == [{"type": "content", "content": {"type": "text", "text": "1. do A"}}]


COLOUR = Question(
    id="Which colour?",
    text="Which colour?",
    header="Colour",
    options=[QuestionOption(label="Red", description="warm"), QuestionOption(label="Blue")],
)
SIZES = Question(
    id="sizes",
    text="Sizes?",
    options=[QuestionOption(label="S"), QuestionOption(label="L")],
    multiple=True,
    free_text=False,
)
NAME = Question(id="name", text="Your name?")


def question(*questions: Question) -> QuestionAsked:
    return QuestionAsked(ask="ask_1", incarnation="i", questions=list(questions), tool="itm_1")


def test_questions_are_a_form() -> None:
    request = asks.form(question(COLOUR, SIZES, NAME), SESSION)
    CreateFormSessionElicitationRequest.model_validate(request.params)
    assert request.method == "elicitation/create"
    assert request.params["toolCallId"] == "itm_1"
    assert request.params["requestedSchema"] == {
        "type": "object",
        "properties": {
            "Which colour?": {
                "type": "string",
                "title": "Colour",
                "description": "Which colour?",
                "oneOf": [
                    {"const": "Red", "title": "Red", "description": "warm"},
                    {"const": "Blue", "title": "Blue"},
                ],
            },
            "Which colour?__own_words": {"type": "string", "title": "Colour: in your own words"},
            "sizes": {
                "type": "array",
                "items": {"anyOf": [{"const": "S", "title": "S"}, {"const": "L", "title": "L"}]},
                "title": "Sizes?",
            },
            "name": {"type": "string", "title": "Your name?"},
        },
        "required": ["sizes", "name"],
    }


@pytest.mark.parametrize(
    ("content", "answers"),
    [
        (
            {"Which colour?": "Blue", "sizes": ["S", "L"], "name": "Ada"},
            {"Which colour?": "Blue", "sizes": ["S", "L"], "name": "Ada"},
        ),
        (
            {"Which colour?": "Blue", "Which colour?__own_words": "Teal", "sizes": "S", "name": "Ada"},
            {"Which colour?": "Teal", "sizes": ["S"], "name": "Ada"},
        ),
    ],
)
def test_a_form_that_is_filled_in_answers(content: dict[str, Any], answers: dict[str, Any]) -> None:
    given = asks.form_answer(question(COLOUR, SIZES, NAME), {"action": "accept", "content": content})
    assert given == {"behaviour": "answered", "answers": answers}


@pytest.mark.parametrize(
    "result", [{"action": "decline"}, {"action": "cancel"}, {}, {"action": "accept", "content": {"name": "Ada"}}]
)
def test_a_form_that_is_not_declines(result: dict[str, Any]) -> None:
    assert asks.form_answer(question(COLOUR, NAME), result) == {"behaviour": "deny"}


def test_an_editor_without_forms_chooses() -> None:
    assert asks.choosable(question(COLOUR))
    assert not asks.choosable(question(COLOUR, NAME))
    assert not asks.choosable(question(SIZES))
    request = asks.choice(COLOUR, SESSION, "itm_1")
    RequestPermissionRequest.model_validate(request.params)
    assert [(one["optionId"], one["name"]) for one in request.params["options"]] == [
        ("0", "Red"),
        ("1", "Blue"),
        ("trunkline:deny", "Don't answer"),
    ]
    assert asks.choice_answer(COLOUR, selected("1")) == "Blue"
    for none in (selected("trunkline:deny"), selected("7"), {"outcome": {"outcome": "cancelled"}}):
        assert asks.choice_answer(COLOUR, none) is None


def test_what_no_dialog_can_ask_says_where_to_answer() -> None:
    said = asks.unanswerable(question(NAME))
    assert "> Your name?" in said
    assert "trunkline answer ask_1" in said

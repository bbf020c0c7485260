"""What the CLI wants decided, how the decision goes back, and how an ask ends without one."""

from typing import Any

import pytest
from tests.unit.claude import native_messages as says
from tests.unit.claude.recorded import CONTEXT, RECORDINGS, new_translator, read

from trunkline_adapters.claude import replies
from trunkline_adapters.claude.translate import ClaudeTranslator
from trunkline_wire import TrunklineError
from trunkline_wire.asks import AskDecided, AskWithdrawn, PermissionRequested, QuestionAsked
from trunkline_wire.turn import ToolCompleted
from trunkline_wire.work import HookFired, NativeMessage

RULE = {
    "type": "addRules",
    "rules": [{"toolName": "Bash", "ruleContent": "ls"}],
    "behavior": "allow",
    "destination": "session",
}
QUESTIONS = [{"question": "Which colour?", "header": "Colour", "options": [{"label": "Red"}, {"label": "Blue"}]}]


def asking(**fields: Any) -> ClaudeTranslator:
    """A translator in a turn whose tool call `t` has asked by request `r`."""
    translator = new_translator()
    request = says.can_use_tool("r", "t", **fields)
    says.facts(translator, says.init(), says.assistant("m", says.tool_use("t", command="ls")), request)
    return translator


def reply(translator: ClaudeTranslator, behaviour: Any = "allow", **fields: Any) -> dict[str, Any]:
    waiting = translator.open_ask(says.ask("t"))
    assert waiting is not None
    return replies.decision(waiting, AskDecided(ask=says.ask("t"), behaviour=behaviour, by="someone", **fields))


@pytest.mark.parametrize(
    ("decided", "expected"),
    [
        ({}, {"behavior": "allow", "updatedInput": {"command": "ls"}}),
        ({"updated_input": {"command": "pwd"}}, {"behavior": "allow", "updatedInput": {"command": "pwd"}}),
        (
            {"option": "suggestion:0"},
            {"behavior": "allow", "updatedInput": {"command": "ls"}, "updatedPermissions": [RULE]},
        ),
        (
            {"rule_updates": [RULE, RULE]},
            {"behavior": "allow", "updatedInput": {"command": "ls"}, "updatedPermissions": [RULE, RULE]},
        ),
        (
            {"behaviour": "deny", "message": "not now", "interrupt": True},
            {"behavior": "deny", "message": "not now", "interrupt": True},
        ),
    ],
)
def test_a_decision_in_the_agents_words(decided: dict[str, Any], expected: dict[str, Any]) -> None:
    assert reply(asking(permission_suggestions=[RULE]), **decided) == expected


def test_a_denial_always_has_the_message_that_the_agent_requires() -> None:
    assert reply(asking(), "deny")["message"]


def test_an_option_that_was_not_offered_is_a_bad_answer() -> None:
    with pytest.raises(TrunklineError, match="suggestion:3") as error:
        reply(asking(permission_suggestions=[RULE]), option="suggestion:3")
    assert error.value.code == "bad_answer"


def test_answers_to_questions_go_back_by_the_text_of_the_question() -> None:
    translator = asking(tool_name="AskUserQuestion", input={"questions": QUESTIONS})
    assert reply(translator, "answered", answers={"Which colour?": ["Red", "Blue"]}) == {
        "behavior": "allow",
        "updatedInput": {"questions": QUESTIONS, "answers": {"Which colour?": "Red, Blue"}},
    }
    with pytest.raises(TrunklineError) as error:
        reply(translator, "answered")
    assert error.value.code == "bad_answer"


def test_a_plan_may_be_approved_together_with_edits() -> None:
    translator = asking(tool_name="ExitPlanMode", input={"plan": "# Plan"})
    assert reply(translator, option="allow_accept_edits")["updatedPermissions"] == [
        {"type": "setMode", "mode": "acceptEdits", "destination": "session"}
    ]


def test_the_recorded_host_said_the_same() -> None:
    """The payloads that the recordings hold, made from the decisions that they stand for."""
    for case, decided in (
        ("02-permission-allow", {}),
        ("03-permission-allow-updatedInput", {"updated_input": {"command": "echo CHANGED-BY-HOST", "description": "Run test command"}}),
        ("15-AskUserQuestion", {"behaviour": "answered", "answers": {"Which colour?": "Blue"}}),
    ):  # fmt: skip
        translator = new_translator()
        for _, speaker, message in read(RECORDINGS / case / "native.jsonl"):
            if speaker == "agent":
                translator.feed(message)
            elif speaker == "host" and message["type"] == "control_response":
                (ask,) = translator.open_asks()
                waiting = translator.open_ask(ask)
                assert waiting is not None
                about: dict[str, Any] = {"behaviour": "allow"} | decided
                made = replies.response(
                    waiting.request_id, replies.decision(waiting, AskDecided(ask=ask, by="x", **about))
                )
                assert made == message
                break
        else:
            pytest.fail(f"{case} has no answer")


def test_an_ask_that_the_agent_withdraws_ends_whether_or_not_it_was_answered() -> None:
    translator = asking()
    (withdrawn,) = says.datas(translator, says.cancel("r"))
    assert withdrawn == AskWithdrawn(ask=says.ask("t"), why="cancelled")
    assert translator.open_asks() == set()

    translator = asking()
    translator.sent(says.answer("r", behavior="allow"))
    assert translator.open_asks() == set()
    (withdrawn,) = says.datas(translator, says.cancel("r"))
    assert withdrawn == AskWithdrawn(ask=says.ask("t"), why="answered_elsewhere")
    assert says.datas(translator, says.cancel("r")) == []


def test_an_interrupt_withdraws_and_the_tool_is_cancelled() -> None:
    translator = asking()
    translator.sent({"type": "control_request", "request_id": "i", "request": {"subtype": "interrupt"}})
    said = "The user doesn't want to proceed with this tool use. The tool use was rejected"
    meta = [{"id": "t", "non_execution_kind": "user-rejected"}]
    found = says.datas(translator, says.cancel("r"), says.tool_result("t", said, is_error=True, tool_result_meta=meta))
    assert found[0] == AskWithdrawn(ask=says.ask("t"), why="interrupted")
    assert isinstance(found[1], ToolCompleted)
    assert found[1].status == "cancelled"


def test_a_tool_that_runs_without_our_answer_was_answered_elsewhere() -> None:
    found = says.datas(asking(), says.tool_result("t"))
    assert found[0] == AskWithdrawn(ask=says.ask("t"), why="answered_elsewhere")
    assert isinstance(found[1], ToolCompleted)


def test_older_clis_cancel_nothing_so_the_end_of_the_turn_withdraws() -> None:
    kinds = [type(data).__name__ for data in says.datas(asking(), says.result())]
    assert kinds == ["ToolCompleted", "AskWithdrawn", "TurnCompleted"]


def test_a_second_ask_of_the_same_tool_call_is_another_ask() -> None:
    translator = asking()
    translator.sent(says.answer("r", behavior="allow"))
    (again,) = says.datas(translator, says.can_use_tool("r2", "t"))
    assert isinstance(again, PermissionRequested)
    assert again.ask == says.ask("t#2")
    assert translator.open_asks() == {again.ask}


def test_a_host_that_comes_late_learns_of_open_asks_and_of_settled_ones() -> None:
    translator = asking()
    translator.sent({"type": "control_request", "request_id": "i", "request": {"subtype": "initialize"}})
    listed = {"pending_permission_requests": [says.can_use_tool("missed", "t9", agent_id="a")]}
    envelope = {"subtype": "success", "request_id": "i", "response": {}, **listed}
    found = says.datas(translator, {"type": "control_response", "response": envelope})
    assert found[0] == AskWithdrawn(ask=says.ask("t"), why="answered_elsewhere")
    assert isinstance(found[1], PermissionRequested)
    assert translator.open_asks() == {says.ask("t9")}


def test_a_subagents_ask_stands_in_its_lane_and_outlives_the_turn() -> None:
    translator = new_translator()
    started = {"type": "system", "subtype": "task_started", "task_id": "a1", "task_type": "local_agent"}
    says.facts(
        translator,
        says.init(),
        says.assistant("m", says.tool_use("agent", "Agent")),
        started | {"tool_use_id": "agent"},
    )
    (asked,) = says.facts(translator, says.can_use_tool("r", "t", agent_id="a1"))
    assert asked.lane == says.item("agent")
    says.facts(translator, says.result())
    assert translator.open_asks() == {says.ask("t")}


def test_a_form_of_an_mcp_server_is_a_question_with_a_schema() -> None:
    translator = new_translator()
    request = {"subtype": "elicitation", "message": "Who?", "requested_schema": {"type": "object"}}
    (asked,) = says.datas(translator, {"type": "control_request", "request_id": "e", "request": request})
    assert isinstance(asked, QuestionAsked)
    assert (asked.message, asked.schema) == ("Who?", {"type": "object"})
    waiting = translator.open_ask(asked.ask)
    assert waiting is not None
    accept = AskDecided(ask=asked.ask, behaviour="answered", by="x", answers={"name": "me"})
    assert replies.decision(waiting, accept) == {"action": "accept", "content": {"name": "me"}}
    deny = AskDecided(ask=asked.ask, behaviour="deny", by="x")
    assert replies.decision(waiting, deny) == {"action": "decline"}


@pytest.mark.parametrize(
    ("subtype", "succeeds"),
    [("hook_callback", True), ("request_user_dialog", True), ("mcp_message", False), ("from_the_future", False)],
)
def test_what_nobody_decides_is_answered_at_once(subtype: str, succeeds: bool) -> None:
    request = {"subtype": subtype, "input": {"hook_event_name": "Stop"}}
    message = {"type": "control_request", "request_id": "x", "request": request}
    answer = replies.automatic(message)
    assert answer is not None
    assert answer["response"]["request_id"] == "x"
    assert answer["response"]["subtype"] == ("success" if succeeds else "error")
    found = says.datas(new_translator(), message)
    match subtype:
        case "hook_callback":
            assert [type(one) for one in found] == [HookFired]
        case "from_the_future":
            assert found == [
                NativeMessage(known=False, kind="control_request/from_the_future", reason="unknown_request")
            ]
        case _:
            assert found == []


def test_what_a_person_decides_is_never_answered_by_itself() -> None:
    assert replies.automatic(says.can_use_tool("r", "t")) is None
    assert replies.automatic(says.result()) is None


def test_ask_ids_are_of_the_incarnation() -> None:
    (asked,) = says.datas(new_translator(), says.can_use_tool("r", "t"))
    assert isinstance(asked, PermissionRequested)
    assert asked.incarnation == CONTEXT.incarnation

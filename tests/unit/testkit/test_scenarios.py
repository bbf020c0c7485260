from typing import Any

import pytest

from trunkline_testkit.model_api import messages
from trunkline_testkit.model_api.answer import Failure, Message, Text, Thinking, ToolUse
from trunkline_testkit.model_api.conversation import Conversation, ToolResult, directives_of
from trunkline_testkit.model_api.scenarios import GREETING, PLAN, pieces_of, reply
from trunkline_testkit.model_api.tools import minimal


def ask(prompt: str, **more: Any) -> Conversation:
    return Conversation(prompt=prompt, directives=directives_of(prompt), **more)


def spoken(answer: Message | Failure) -> str:
    assert isinstance(answer, Message)
    return "".join("".join(block.pieces) for block in answer.blocks if isinstance(block, Text))


def calls(answer: Message | Failure) -> list[tuple[str, dict[str, Any]]]:
    assert isinstance(answer, Message)
    return [
        (block.name, block.input)
        for block in answer.blocks
        if isinstance(block, ToolUse) and isinstance(block.input, dict)
    ]


def test_a_text_comes_in_several_pieces_that_join_to_it() -> None:
    assert spoken(reply(ask("hi"))) == GREETING
    assert spoken(reply(ask("SAY=one two three four"))) == "one two three four"
    assert pieces_of("one two three four") == ("one two three ", "four")
    assert pieces_of("") == ("",)


def test_long_streams() -> None:
    assert reply(ask("SCENARIO=slow N=2 DELAY_MS=30")) == Message((Text(("piece 1 ", "piece 2 "), delay=0.03),))
    flood = reply(ask("SCENARIO=flood N=3"))
    assert flood == Message((Text(("piece 1 ", "piece 2 ", "piece 3 ")),))
    assert len(spoken(reply(ask("SCENARIO=huge BYTES=20000")))) == 20_000
    assert reply(ask("SCENARIO=hold")) == Message((Text(("Holding. ", "Released."), hold_after=1),))


def test_the_model_says_which_prompts_came_before() -> None:
    said = [{"role": role, "content": text} for role, text in (("user", "one"), ("assistant", "a"), ("user", "two"))]
    recall = {"role": "user", "content": "SCENARIO=recall"}
    assert spoken(reply(messages.read({"messages": [*said, recall]}))) == "You said before: one | two"
    assert spoken(reply(messages.read({"messages": [recall]}))) == "You said before: nothing"


def test_thinking_comes_before_speaking() -> None:
    answer = reply(ask("SCENARIO=thinking SAY=done"))
    assert isinstance(answer, Message)
    assert [type(block) for block in answer.blocks] == [Thinking, Text]


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("SCENARIO=bash CMD=touch x", [("Bash", "touch x")]),
        ("SCENARIO=twobash CMD=touch x CMD2=touch y", [("Bash", "touch x"), ("Bash", "touch y")]),
        ("SCENARIO=bgtask CMD=true", [("Bash", "true")]),
    ],
)
def test_commands(prompt: str, expected: list[tuple[str, str]]) -> None:
    answer = calls(reply(ask(prompt)))
    assert [(name, used["command"]) for name, used in answer] == expected
    assert answer[0][1].get("run_in_background", False) == ("bgtask" in prompt)


def test_after_a_tool_the_model_repeats_what_it_was_told() -> None:
    results = (ToolResult("a", "no, thanks", is_error=True), ToolResult("b", "ok", is_error=False))
    answer = reply(ask("SCENARIO=twobash", used=("Bash", "Bash"), results=results))
    assert calls(answer) == []
    assert spoken(answer) == "The tool said: no, thanks | ok"


def test_a_plan_is_written_first_where_the_agent_names_a_file() -> None:
    file = "/h/.claude/plans/p.md"
    assert calls(reply(ask("SCENARIO=plan", plan_file=file))) == [("Write", {"file_path": file, "content": PLAN})]
    assert calls(reply(ask("SCENARIO=plan", plan_file=file, used=("Write",)))) == [("ExitPlanMode", {"plan": PLAN})]
    assert calls(reply(ask("SCENARIO=plan"))) == [("ExitPlanMode", {"plan": PLAN})]
    assert calls(reply(ask("SCENARIO=plan", used=("ExitPlanMode",)))) == []


def test_a_child_gets_its_own_prompt_in_the_foreground() -> None:
    ((name, used),) = calls(reply(ask('SCENARIO=sub CHILD="SCENARIO=bash CMD=touch y"')))
    assert (name, used["prompt"], used["run_in_background"]) == ("Agent", "SCENARIO=bash CMD=touch y", False)


def test_failures() -> None:
    assert reply(ask("SCENARIO=err529")) == Failure(529)
    assert messages.error(Failure(529))["error"]["type"] == "overloaded_error"
    assert messages.error(Failure(500))["error"]["type"] == "api_error"
    assert reply(ask("SCENARIO=once429")) == Failure(429)
    assert spoken(reply(ask("SCENARIO=once429"), failed_before=True)) == GREETING
    assert reply(ask("SCENARIO=err429"), failed_before=True) == Failure(429)
    cut = reply(ask("SCENARIO=oncedrop"))
    assert cut == reply(ask("SCENARIO=drop"))
    assert isinstance(cut, Message)
    assert isinstance(cut.blocks[0], Text)
    assert cut.blocks[0].cut_after == 2
    assert spoken(reply(ask("SCENARIO=oncedrop"), failed_before=True)) == GREETING


def test_side_requests_are_answered_harmlessly() -> None:
    schema = {"type": "object", "properties": {"title": {"type": "string"}, "ok": {"type": "boolean"}}}
    assert spoken(reply(ask("", kind="side", schema=schema))) == '{"title": "Scripted answer", "ok": false}'
    assert spoken(reply(ask("", kind="side"))) == "Scripted answer"
    assert "<summary>" in spoken(reply(ask("SCENARIO=bash", kind="compaction")))
    assert minimal({"type": "array"}) == []
    assert minimal({"type": "integer"}) == 0
    assert minimal({"enum": ["low", "high"]}) == "low"


def test_a_member_agrees_to_be_shut_down() -> None:
    said = '{"type":"shutdown_request","requestId":"shutdown-1795946326710@ann","reason":"thanks SCENARIO=leave now"}'
    message = {"type": "shutdown_response", "request_id": "shutdown-1795946326710@ann", "approve": True}
    ((name, given),) = calls(reply(ask(f"<teammate-message>\n{said}\n</teammate-message>")))
    assert (name, given["to"], given["message"]) == ("SendMessage", "team-lead", message)
    assert calls(reply(ask("SCENARIO=leave"))) == []

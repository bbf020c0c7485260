from typing import Any

import pytest

from trunkline_testkit.model_api.conversation import ToolResult, directives_of
from trunkline_testkit.model_api.messages import read


def user(*blocks: str | dict[str, Any]) -> dict[str, Any]:
    return {
        "role": "user",
        "content": [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks],
    }


def tool_use(name: str) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": name, "input": {}}]}


def result(text: str, *, is_error: bool = False) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "t1", "content": text, "is_error": is_error}


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("hello", {}),
        ("SAY=one two three", {"SAY": "one two three"}),
        ("please SCENARIO=slow N=3 DELAY_MS=5 now", {"SCENARIO": "slow", "N": "3", "DELAY_MS": "5"}),
        (
            "SCENARIO=bash CMD=FOO=1 make a\nSAY=next line",
            {"SCENARIO": "bash", "CMD": "FOO=1 make a", "SAY": "next line"},
        ),
        (
            'SCENARIO=sub CHILD="SCENARIO=bash CMD=touch y" N=2',
            {"SCENARIO": "sub", "CHILD": "SCENARIO=bash CMD=touch y", "N": "2"},
        ),
        ('SAY="two\\nlines"', {"SAY": "two\nlines"}),
        ('SAY="unfinished', {"SAY": '"unfinished'}),
        ("SCENARIO= SAY=x", {"SCENARIO": "", "SAY": "x"}),
        ("SAY=a SAY=b", {"SAY": "a"}),
        ("XSAY=no", {}),
    ],
)
def test_directives(prompt: str, expected: dict[str, str]) -> None:
    assert directives_of(prompt) == expected


def test_the_last_prompt_counts_and_reminders_and_interruptions_do_not() -> None:
    conversation = read(
        {
            "tools": [{"name": "Bash"}],
            "messages": [
                user("<system-reminder>SAY=reminder</system-reminder>", "SAY=first"),
                {"role": "assistant", "content": "half an ans"},
                user("[Request interrupted by user]"),
                user("SAY=second", "<system-reminder>date</system-reminder>"),
                {"role": "system", "content": "# Environment"},
            ],
        }
    )
    assert conversation.prompt == "SAY=second"
    assert conversation.directives == {"SAY": "second"}
    assert conversation.position == 3
    assert conversation.kind == "prompt"


def test_a_tool_result_continues_the_turn_of_its_prompt() -> None:
    conversation = read(
        {
            "tools": [{"name": "Bash"}],
            "messages": [user("SCENARIO=bash"), tool_use("Bash"), user(result("no, thanks", is_error=True))],
        }
    )
    assert conversation.scenario == "bash"
    assert conversation.used == ("Bash",)
    assert conversation.results == (ToolResult("t1", "no, thanks", is_error=True),)


def test_tools_of_earlier_turns_do_not_count() -> None:
    earlier = [user("SCENARIO=bash"), tool_use("Bash"), user(result("done")), {"role": "assistant", "content": "ok"}]
    conversation = read({"tools": [{}], "messages": [*earlier, user("SCENARIO=bash")]})
    assert conversation.used == ()
    assert conversation.results == ()
    assert conversation.position == 4


def test_the_end_of_a_background_task_is_a_turn_of_its_own_unless_it_rides_on_a_tool_result() -> None:
    report = "<system-reminder>\n<task-notification>\n<status>completed</status></task-notification></system-reminder>"
    before = [user("SCENARIO=bgtask"), tool_use("Bash")]
    assert read({"tools": [{}], "messages": [*before, user(report)]}).kind == "notification"
    riding = read({"tools": [{}], "messages": [*before, user(result("started"), report)]})
    assert (riding.kind, riding.scenario) == ("prompt", "bgtask")


def test_side_requests_are_told_from_prompts() -> None:
    compaction = user("Your task is to create a detailed summary of the conversation so far. SCENARIO=bash")
    assert read({"tools": [{}], "messages": [compaction]}).kind == "compaction"
    assert read({"messages": [user("Write a short title")]}).kind == "side"
    assert read({"messages": [user("SAY=x")]}).kind == "prompt"
    assert read({}).kind == "side"


def test_the_plan_file_is_found_only_where_plans_can_be_proposed() -> None:
    messages = [user("SCENARIO=plan"), {"role": "system", "content": "Write it to /h/.claude/plans/a-b.md now"}]
    assert read({"tools": [{"name": "ExitPlanMode"}], "messages": messages}).plan_file == "/h/.claude/plans/a-b.md"
    assert read({"tools": [{"name": "Bash"}], "messages": messages}).plan_file is None

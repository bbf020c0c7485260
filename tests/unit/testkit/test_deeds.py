"""What a scripted model wants done, as calls of the tools that real agents offer: schemas as recorded from them."""

from typing import Any

import pytest

from trunkline_testkit.model_api.answer import ToolUse
from trunkline_testkit.model_api.conversation import Conversation, Tool, directives_of
from trunkline_testkit.model_api.scenarios import reply
from trunkline_testkit.model_api.tools import call, fit, question, read, shell, write

STRING = {"type": "string"}


def tool(name: str, required: tuple[str, ...] = (), **properties: dict[str, Any]) -> Tool:
    return Tool(name, {"type": "object", "properties": properties, "required": list(required)})


@pytest.mark.parametrize(
    ("offered", "expected"),
    [
        (tool("exec_command", cmd=STRING, workdir=STRING), {"cmd": "ls"}),
        (
            tool("run_shell_command", ("command", "is_background"), command=STRING, is_background={"type": "boolean"}),
            {"command": "ls", "is_background": False},
        ),
        (tool("shell", command={"type": "array", "items": STRING}), {"command": ["bash", "-lc", "ls"]}),
        (
            tool("bash", ("command", "mode"), command=STRING, mode={"enum": ["sync", "async"]}),
            {"command": "ls", "mode": "sync"},
        ),
    ],
)
def test_a_command_goes_to_the_shell_that_the_agent_has(offered: Tool, expected: dict[str, Any]) -> None:
    assert call(shell("ls"), [tool("other"), offered]) == ToolUse(offered.name, expected)


def test_a_file_is_read_and_written_by_the_agents_own_tool() -> None:
    assert call(read("/a"), [tool("view", path=STRING)]) == ToolUse("view", {"path": "/a"})
    assert call(write("a", "x\n"), [tool("write", filePath=STRING, content=STRING)]) == ToolUse(
        "write", {"filePath": "a", "content": "x\n"}
    )
    patch = "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\n"
    assert call(write("a", "x\n"), [Tool("apply_patch", None)]) == ToolUse("apply_patch", patch)


def test_an_agent_with_nothing_but_a_shell_reads_and_writes_with_it() -> None:
    only = [tool("exec_command", cmd=STRING)]
    assert call(read("/a"), only) == ToolUse("exec_command", {"cmd": "cat /a"})
    written = call(write("a", "x"), only)
    assert written.input == {"cmd": "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\nEOF"}


def test_an_editor_is_told_which_of_its_commands_is_meant() -> None:
    editor = tool("file_editor", command=STRING, path=STRING, file_text=STRING)
    assert call(read("/a"), [editor]).input == {"command": "view", "path": "/a"}
    assert call(write("/a", "x"), [editor]).input == {"command": "create", "path": "/a", "file_text": "x"}


def test_a_question_has_the_members_that_the_tool_wants() -> None:
    asked = {"id": STRING, "question": STRING, "options": {"type": "array", "items": {"$ref": "#/$defs/Option"}}}
    schema = {
        "properties": {"questions": {"type": "array", "items": {"properties": asked}}},
        "$defs": {"Option": {"properties": {"label": STRING}}},
    }
    assert call(
        question("Which?", "Colour", [{"label": "Red", "description": "warm"}]), [Tool("ask_user", schema)]
    ) == (ToolUse("ask_user", {"questions": [{"id": "colour", "question": "Which?", "options": [{"label": "Red"}]}]}))
    flat = tool("ask_user", question=STRING, choices={"type": "array"})
    assert call(question("Which?", "Colour", [{"label": "Red"}]), [flat]).input == {
        "question": "Which?",
        "choices": ["Red"],
    }


def test_a_value_that_a_tool_does_not_know_becomes_one_that_it_does() -> None:
    assert fit("general-purpose", {"enum": ["general", "explore"]}, {}) == "general"
    assert fit("x", {"anyOf": [{"type": "string"}, {"type": "null"}]}, {}) == "x"


def test_any_tool_can_be_called_by_its_name_and_any_input_extended() -> None:
    def calls(prompt: str) -> ToolUse:
        answer = reply(Conversation(prompt=prompt, directives=directives_of(prompt)))
        (block,) = [block for block in getattr(answer, "blocks", ()) if isinstance(block, ToolUse)]
        return block

    assert calls('SCENARIO=tool TOOL=get_goal INPUT={"a": 1}') == ToolUse("get_goal", {"a": 1})
    assert calls("SCENARIO=tool TOOL=apply_patch INPUT=*** Begin") == ToolUse("apply_patch", "*** Begin")
    extended = calls('SCENARIO=bash CMD=ls INPUT={"timeout": 5}').input
    assert extended == {"command": "ls", "description": "Run a scripted command", "timeout": 5}

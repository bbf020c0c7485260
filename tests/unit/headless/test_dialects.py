"""What no recording shows: messages that are known from the agents' documentation, and the turns that they make."""

from typing import Any

import pytest
from tests.unit.claude.recorded import CONTEXT
from tests.unit.headless.recorded import new_translator

from trunkline_adapters.headless.translate import HeadlessTranslator
from trunkline_agentkit import Fact, Out, Piece
from trunkline_wire import Data
from trunkline_wire.blocks import TextBlock, join_text
from trunkline_wire.errors import ErrorInfo
from trunkline_wire.session import SessionInitialized, SessionStatus, SessionUpdated
from trunkline_wire.turn import MessageAssistant, MessageSystem, ToolCompleted, ToolStarted, TurnCompleted, TurnStarted
from trunkline_wire.work import NativeMessage

Obj = dict[str, Any]


class Said:
    """What a translator made of these messages."""

    def __init__(self, agent: str, *messages: Obj) -> None:
        self.translator = new_translator(agent)
        self.translator.begin("cmd_1")
        self.out: list[Out] = []
        self.hear(*messages)

    def hear(self, *messages: Obj) -> None:
        self.out += [out for message in messages for out in self.translator.feed(message)]

    def all(self, kind: type[Data]) -> list[Any]:
        return [one.data for one in self.out if isinstance(one, Fact) and isinstance(one.data, kind)]

    def types(self) -> list[str]:
        return [one.data.TYPE for one in self.out if isinstance(one, Fact)]


CURSOR = {"type": "system", "subtype": "init", "session_id": "c-1", "model": "Auto", "permissionMode": "default"}


def cursor_call(member: str, subtype: str, **body: Any) -> Obj:
    return {"type": "tool_call", "subtype": subtype, "call_id": "call_1\nfc_2", "tool_call": {member: body}}


def text(said: str, **more: Any) -> Obj:
    return {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": said}]}, **more}


def test_a_turn_of_cursor_as_its_documentation_shows_it() -> None:
    args = {"command": "ls -l", "timeout": 30000}
    good = {"exitCode": 0, "stdout": "a.txt\n", "stderr": "", "executionTime": 12}
    heard = Said(
        "cursor",
        CURSOR,
        {"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": "list"}]}},
        {"type": "thinking", "subtype": "delta", "text": "I look"},
        {"type": "thinking", "subtype": "delta", "text": " first."},
        {"type": "thinking", "subtype": "completed"},
        text("Listing.", model_call_id="m-1"),
        cursor_call("shellToolCall", "started", args=args),
        cursor_call("shellToolCall", "completed", args=args, result={"success": good}),
        text("There is one file."),
        {
            "type": "result",
            "subtype": "success",
            "duration_ms": 5234,
            "duration_api_ms": 5000,
            "is_error": False,
            "result": "Listing.There is one file.",
            "session_id": "c-1",
        },
    )
    assert heard.types() == [
        "session.initialized",
        "turn.started",
        "message.assistant",
        "message.assistant",
        "tool.started",
        "tool.completed",
        "message.assistant",
        "turn.completed",
    ]
    initialized = heard.all(SessionInitialized)[0]
    assert (initialized.native_session, initialized.model, initialized.mode) == ("c-1", "Auto", None)
    assert [one.type for message in heard.all(MessageAssistant) for one in _tags(message)] == [
        "thinking",
        "text",
        "text",
    ]
    (tool,), (done,) = heard.all(ToolStarted), heard.all(ToolCompleted)
    assert (tool.name, tool.kind, tool.title, tool.input) == ("shell", "execute", "shell ls -l", args)
    assert (done.status, done.exit_code, done.content) == ("completed", 0, [TextBlock(text="a.txt\n")])
    ended = heard.all(TurnCompleted)[0]
    assert (ended.outcome, ended.duration_ms, ended.api_duration_ms) == ("success", 5234, 5000)


def _tags(message: MessageAssistant) -> list[Any]:
    return [type("Tag", (), {"type": block.__struct_config__.tag}) for block in message.content]


@pytest.mark.parametrize(
    ("result", "status", "code"),
    [
        ({"success": {"exitCode": 2, "stdout": "", "stderr": "no"}}, "failed", 2),
        ({"failure": {"reason": "gone"}}, "failed", None),
        ({"rejected": {"reason": "not allowed"}}, "rejected", None),
        ({"success": {"path": "a", "linesCreated": 1}}, "completed", None),
        ({}, "failed", None),
    ],
)
def test_a_tool_of_cursor_ends_as_its_result_says(result: Obj, status: str, code: int | None) -> None:
    heard = Said(
        "cursor", CURSOR, cursor_call("writeToolCall", "started", args={"path": "a"}),
        cursor_call("writeToolCall", "completed", result=result),
    )  # fmt: skip
    (done,) = heard.all(ToolCompleted)
    assert (done.status, done.exit_code) == (status, code)
    assert [one.kind for one in heard.all(ToolStarted)] == ["edit"]


def test_a_tool_of_cursor_that_has_only_a_function() -> None:
    body = {"name": "mcp_search", "arguments": '{"q":"x"}'}
    heard = Said("cursor", CURSOR, cursor_call("function", "started", **body))
    (tool,) = heard.all(ToolStarted)
    assert (tool.name, tool.kind, tool.input) == ("mcp_search", "other", '{"q":"x"}')


def test_a_turn_of_amp_as_its_announcement_shows_it() -> None:
    session = "T-2775dc92-90ed-4f85-8b73-8f9766029e83"
    usage = {
        "input_tokens": 10,
        "cache_creation_input_tokens": 367,
        "cache_read_input_tokens": 12416,
        "output_tokens": 8,
    }
    said = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "2 + 2 equals 4."}]}
    heard = Said(
        "amp",
        {
            "type": "system",
            "subtype": "init",
            "cwd": "/p",
            "session_id": session,
            "tools": ["oracle"],
            "mcp_servers": [],
        },
        {"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": "what is 2+2?"}]}},
        {"type": "assistant", "message": {**said, "stop_reason": "end_turn", "usage": usage}, "session_id": session},
        {"type": "result", "subtype": "success", "duration_ms": 2906, "is_error": False, "num_turns": 1, "result": "4"},
    )
    assert heard.types() == ["session.initialized", "turn.started", "message.assistant", "turn.completed"]
    initialized = heard.all(SessionInitialized)[0]
    assert (initialized.native_session, initialized.tools) == (session, ["oracle"])
    (message,) = heard.all(MessageAssistant)
    assert (join_text(message.content), message.stop_reason) == ("2 + 2 equals 4.", "end_turn")
    assert (message.usage.input, message.usage.cache_write, message.usage.cache_read) == (10, 367, 12416)


@pytest.mark.parametrize(
    ("result", "outcome", "code"),
    [
        ({"subtype": "error_max_turns", "is_error": True}, "max_turns", None),
        ({"subtype": "error_during_execution", "is_error": True, "error": "it broke"}, "error", "agent_failed"),
        ({"subtype": "success", "is_error": True, "result": "Error: run `amp login` first"}, "error", "agent_auth"),
        ({}, "error", "agent_failed"),
    ],
)
def test_a_result_that_is_no_success(result: Obj, outcome: str, code: str | None) -> None:
    heard = Said("amp", {"type": "system", "subtype": "init"}, {"type": "result", **result})
    ended = heard.all(TurnCompleted)[0]
    assert (ended.outcome, ended.error and ended.error.code) == (outcome, code)


def test_a_subagents_words_stand_in_the_lane_of_its_call() -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "Task", "input": {"prompt": "look"}}
    inner = {"type": "tool_use", "id": "toolu_2", "name": "Read", "input": {"path": "a"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_2", "content": [{"type": "text", "text": "A"}]}
    heard = Said(
        "amp",
        {"type": "system", "subtype": "init"},
        {"type": "assistant", "message": {"id": "m1", "content": [call]}},
        {"type": "assistant", "message": {"id": "m2", "content": [inner]}, "parent_tool_use_id": "toolu_1"},
        {"type": "user", "message": {"content": [result]}, "parent_tool_use_id": "toolu_1"},
        text("Found.", parent_tool_use_id="toolu_1"),
    )
    facts = [one for one in heard.out if isinstance(one, Fact)]
    outer = next(one.item for one in facts if isinstance(one.data, ToolStarted))
    lanes = [(one.data.TYPE, one.lane == outer) for one in facts[2:]]
    assert lanes == [
        ("tool.started", False),
        ("tool.started", True),
        ("tool.completed", True),
        ("message.assistant", True),
    ]


def test_a_failed_tool_and_a_warning_of_gemini() -> None:
    heard = Said(
        "gemini",
        {"type": "init", "session_id": "g-1", "model": "auto"},
        {"type": "tool_use", "tool_name": "read_file", "tool_id": "r1", "parameters": {"file_path": "x"}},
        {
            "type": "tool_result",
            "tool_id": "r1",
            "status": "error",
            "error": {"type": "x", "message": "File not found"},
        },
        {"type": "error", "severity": "warning", "message": "Loop detected, stopping execution"},
        {"type": "result", "status": "error", "error": {"type": "FatalTurnLimitedError", "message": "max"}},
    )
    (done,) = heard.all(ToolCompleted)
    assert (done.status, done.reason) == ("failed", "File not found")
    assert [(one.text, one.level) for one in heard.all(MessageSystem)] == [
        ("Loop detected, stopping execution", "warning")
    ]
    assert heard.all(TurnCompleted)[0].outcome == "max_turns"


def test_a_retry_ends_with_the_next_word() -> None:
    details = {"kind": "provider_error_retry", "attempt": 1, "maxRetries": 3, "delayMs": 1000, "providerError": "gone"}
    heard = Said(
        "cline",
        {"type": "hook_event", "hookEventName": "agent_start", "parentAgentId": None},
        {"type": "agent_event", "event": {"type": "notice", "message": "retrying", "metadata": details}},
    )
    (status,) = heard.all(SessionStatus)
    assert (status.status, status.attempt, status.max_attempts, status.after_ms, status.reason) == (
        "retrying", 1, 3, 1000, "gone",
    )  # fmt: skip
    heard.hear({"type": "agent_event", "event": {"type": "content_start", "contentType": "text", "text": "I am back"}})
    assert [one.status for one in heard.all(SessionStatus)] == ["retrying", None]


def test_an_end_that_was_not_told_closes_what_is_open() -> None:
    heard = Said(
        "gemini",
        {"type": "init", "session_id": "g-1", "model": "auto"},
        {"type": "tool_use", "tool_name": "run_shell_command", "tool_id": "s1", "parameters": {"command": "sleep 9"}},
        {"type": "message", "role": "assistant", "content": "I am wri", "delta": True},
    )
    assert heard.translator.working
    heard.translator.interrupting()
    heard.out += heard.translator.over("interrupted", None)
    assert [(join_text(one.content), one.aborted) for one in heard.all(MessageAssistant)] == [("I am wri", True)]
    assert [one.status for one in heard.all(ToolCompleted)] == ["cancelled"]
    assert [one.outcome for one in heard.all(TurnCompleted)] == ["interrupted"]
    assert not heard.translator.open


def test_a_program_that_ends_before_its_first_word_has_a_turn_all_the_same() -> None:
    heard = Said("gemini")
    heard.out += heard.translator.over("error", ErrorInfo(code="agent_auth", message="log in"))
    assert next(one.cause for one in heard.out if isinstance(one, Fact)) == "cmd_1"
    assert heard.types() == ["turn.started", "turn.completed"]


def test_a_failure_behind_an_interrupt_is_the_interrupt() -> None:
    heard = Said("qwen", {"type": "system", "subtype": "init"})
    heard.translator.interrupting()
    heard.hear({"type": "result", "subtype": "error_during_execution", "is_error": True})
    ended = heard.all(TurnCompleted)[0]
    assert (ended.outcome, ended.error) == ("interrupted", None)


def test_another_session_or_model_is_told_as_a_change() -> None:
    heard = Said(
        "gemini", {"type": "init", "session_id": "g-1", "model": "auto"}, {"type": "result", "status": "success"}
    )
    heard.translator.begin("cmd_2")
    heard.hear({"type": "init", "session_id": "g-2", "model": "auto"})
    (changed,) = heard.all(SessionUpdated)
    assert (changed.native_session, changed.model) == ("g-2", None)
    assert len(heard.all(SessionInitialized)) == 1
    assert [one.number for one in heard.all(TurnStarted)] == [1, 2]


def test_a_text_answer_of_lines_is_joined() -> None:
    heard = Said("continue")
    heard.out += [*heard.translator.line("{"), *heard.translator.line('  "a": 1'), *heard.translator.line("}")]
    assert heard.translator.answered()
    heard.out += heard.translator.over("success", None)
    assert [join_text(one.content) for one in heard.all(MessageAssistant)] == ['{\n  "a": 1\n}\n']
    assert [one.text for one in heard.out if isinstance(one, Piece)] == ["{\n", '  "a": 1\n', "}\n"]


def test_nothing_said_is_no_answer() -> None:
    heard = Said("continue", {"status": "info", "message": "Auto-compacting triggered"})
    assert not heard.translator.answered()
    assert [one.level for one in heard.all(MessageSystem)] == ["info"]


@pytest.mark.parametrize(
    ("agent", "message", "kind"),
    [
        ("gemini", {"type": "thought", "content": "x"}, "thought"),
        ("cline", {"type": "agent_event", "event": {"type": "dreamt"}}, "agent_event/dreamt"),
        ("cline", {"type": "hook_event", "hookEventName": "agent_dreamt"}, "hook_event/agent_dreamt"),
        ("cursor", {"type": "tool_call", "subtype": "paused", "tool_call": {}}, "tool_call/paused"),
        ("qwen", {"type": "system", "subtype": "compact_boundary"}, "system/compact_boundary"),
        ("qwen", {"type": "stream_event", "event": {"type": "odd"}}, "stream_event/odd"),
    ],
)
def test_a_kind_that_is_unknown_is_kept_and_counted_by_its_name(agent: str, message: Obj, kind: str) -> None:
    (unknown,) = Said(agent, message).all(NativeMessage)
    assert (unknown.known, unknown.kind, unknown.reason) == (False, kind, "unknown_type")


def test_without_a_profile_the_first_message_says_which_dialect_it_is() -> None:
    for agent, first, last in (
        ("gemini", {"type": "init", "session_id": "s"}, {"type": "result", "status": "success"}),
        ("qwen", {"type": "system", "subtype": "init"}, {"type": "result", "subtype": "success", "is_error": False}),
        (
            "cline",
            {"type": "hook_event", "hookEventName": "agent_start", "parentAgentId": None},
            {"type": "run_result", "finishReason": "completed"},
        ),
    ):
        translator = HeadlessTranslator(CONTEXT)
        out = [*translator.feed(first), *translator.feed(last)]
        types = [one.data.TYPE for one in out if isinstance(one, Fact)]
        assert types == ["session.initialized", "turn.started", "turn.completed"], agent

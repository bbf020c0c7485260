"""What the recordings do not hold: rarer messages, older CLIs, and what may go into a prompt."""

from typing import Any

import pytest
from tests.unit.claude import native_messages as says
from tests.unit.claude.recorded import CONTEXT, new_translator

from trunkline_adapters.claude.adapter import CAPABILITIES
from trunkline_adapters.claude.content import blocks_of, native_content
from trunkline_adapters.claude.translate import ClaudeTranslator
from trunkline_agentkit import Fact, Progress
from trunkline_wire import Data, TrunklineError
from trunkline_wire.blocks import (
    BlobRef,
    Block,
    Choice,
    CodeBlock,
    DiffBlock,
    FileBlock,
    ImageBlock,
    ResourceBlock,
    TerminalBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from trunkline_wire.session import McpServer, SessionInitialized, SessionStatus, SessionUpdated
from trunkline_wire.turn import (
    MessageAssistant,
    MessageSystem,
    MessageUser,
    ToolCompleted,
    ToolProgress,
    ToolStarted,
    ToolSummary,
    TurnCompleted,
    TurnStarted,
)
from trunkline_wire.work import AuthUpdated, ErrorRaised, HookFired, NativeMessage, PlanEntry, PlanUpdated


def system(subtype: str, **fields: Any) -> dict[str, Any]:
    return {"type": "system", "subtype": subtype, **fields}


def in_turn() -> ClaudeTranslator:
    translator = new_translator()
    translator.feed(says.init())
    return translator


def ended(tool: dict[str, Any], result: dict[str, Any]) -> ToolCompleted:
    """How a tool call ends whose block is `tool`."""
    translator = in_turn()
    found = says.datas(translator, says.assistant("m", tool), result)
    assert isinstance(found[-1], ToolCompleted)
    return found[-1]


# Tools


@pytest.mark.parametrize(
    ("result", "status", "code"),
    [
        (says.tool_result("t", "Exit code 3\nno such file", is_error=True), "failed", 3),
        (says.tool_result("t", "Error: Exit code 127", is_error=True), "failed", 127),
        (says.tool_result("t", "ok", tool_use_result={"stdout": "ok", "stderr": ""}), "completed", 0),
        (says.tool_result("t", "ok", tool_use_result={"stdout": "", "backgroundTaskId": "b"}), "completed", None),
        (says.tool_result("t", "half", tool_use_result={"stdout": "half", "interrupted": True}), "cancelled", None),
        # Older CLIs say only this, for a refusal as for an interrupt.
        (
            says.tool_result(
                "t", "The user doesn't want to proceed with this tool use. The tool use was", is_error=True
            ),
            "rejected",
            None,
        ),
    ],
)
def test_how_a_command_ends(result: dict[str, Any], status: str, code: int | None) -> None:
    done = ended(says.tool_use("t", command="x"), result)
    assert (done.status, done.exit_code) == (status, code)


def test_a_tool_that_we_refused_is_rejected_whatever_the_result_says() -> None:
    translator = in_turn()
    says.facts(translator, says.assistant("m", says.tool_use("t")), says.can_use_tool("r", "t"))
    translator.sent(says.answer("r", behavior="deny", message="no"))
    (done,) = says.datas(translator, says.tool_result("t", "no", is_error=True))
    assert isinstance(done, ToolCompleted)
    assert done.status == "rejected"


@pytest.mark.parametrize(
    ("name", "tool_input", "kind", "title"),
    [
        ("Grep", {"pattern": "x+"}, "search", "Grep x+"),
        ("WebFetch", {"url": "http://127.0.0.1/"}, "fetch", "WebFetch http://127.0.0.1/"),
        ("Bash", {"command": "a\nb"}, "execute", "Bash a"),
        ("Bash", {"command": "a", "description": "Do a"}, "execute", "Do a"),
        ("mcp__x__y", {}, "other", "mcp__x__y"),
    ],
)
def test_what_a_tool_call_is_called(name: str, tool_input: dict[str, Any], kind: str, title: str) -> None:
    found = says.datas(in_turn(), says.assistant("m", says.tool_use("t", name, **tool_input)))
    assert isinstance(found[-1], ToolStarted)
    assert (found[-1].kind, found[-1].title) == (kind, title)


def test_a_call_told_twice_begins_once() -> None:
    found = says.datas(in_turn(), *[says.assistant("m", says.tool_use("t"))] * 2)
    assert [type(data) for data in found].count(ToolStarted) == 1


def test_a_todo_list_is_a_plan() -> None:
    todos = [
        {"content": "one", "status": "completed"},
        {"content": "two", "status": "in_progress"},
        {"content": "three", "status": "someday"},
    ]
    found = says.datas(in_turn(), says.assistant("m", says.tool_use("t", "TodoWrite", todos=todos)))
    assert found[-1] == PlanUpdated(
        entries=[
            PlanEntry(content="one", status="completed"),
            PlanEntry(content="two", status="in_progress"),
            PlanEntry(content="three", status="pending"),
        ]
    )


def test_tools_of_the_api_itself_begin_and_end_within_a_message() -> None:
    call = {"type": "server_tool_use", "id": "srv", "name": "web_search", "input": {"query": "x"}}
    result = {"type": "web_search_tool_result", "tool_use_id": "srv", "content": [{"type": "text", "text": "found"}]}
    found = says.datas(in_turn(), says.assistant("m", call, result))
    kinds: list[type[Data]] = [MessageAssistant, ToolStarted, MessageAssistant, ToolCompleted]
    assert [type(data) for data in found] == kinds
    assert isinstance(found[0], MessageAssistant)
    assert isinstance(found[2], MessageAssistant)
    assert found[0].content == [ToolUseBlock(id=says.item("srv"), name="web_search", input={"query": "x"})]
    assert found[2].content == [ToolResultBlock(tool=says.item("srv"), content=result["content"])]
    assert (found[0].block, found[2].block) == (0, 1)


def test_a_heartbeat_belongs_to_its_tool_and_to_that_tools_lane() -> None:
    translator = in_turn()
    inner = says.assistant("m2", says.tool_use("t"), parent_tool_use_id="agent")
    says.facts(translator, says.assistant("m1", says.tool_use("agent", "Agent")), inner)
    beat = {
        "type": "tool_progress",
        "tool_use_id": "t-heartbeat-4",
        "parent_tool_use_id": "t",
        "elapsed_time_seconds": 150,
    }
    (progress,) = translator.feed(beat)
    assert isinstance(progress, Progress)
    assert isinstance(progress.data, ToolProgress)
    assert (progress.item, progress.lane, progress.data.elapsed_s) == (says.item("t"), says.item("agent"), 150.0)


def test_a_summary_names_the_calls_that_it_sums_up() -> None:
    summary = {"type": "tool_use_summary", "summary": "s", "preceding_tool_use_ids": ["a", "b"]}
    assert says.datas(in_turn(), summary) == [ToolSummary(summary="s", tools=[says.item("a"), says.item("b")])]


# Sessions


def test_only_changes_are_told_after_the_first_init() -> None:
    translator = new_translator()
    reply = {
        "commands": [{"name": "compact", "description": "Frees context", "argumentHint": "[how]"}],
        "models": [{"value": "default", "displayName": "Default", "resolvedModel": "claude-opus-5-5"}],
        "agents": [{"name": "Plan", "model": "opus"}],
        "account": {"apiProvider": "firstParty"},
    }
    translator.sent({"type": "control_request", "request_id": "i", "request": {"subtype": "initialize"}})
    says.facts(translator, says.answer("i", **reply))
    (first, _) = says.datas(
        translator, says.init(slash_commands=["compact"], mcp_servers=[{"name": "db", "status": "pending"}])
    )
    assert isinstance(first, SessionInitialized)
    compact = Choice(id="compact", description="Frees context", hint="[how]")
    assert first.commands == [compact]
    assert first.models == [Choice(id="default", name="Default", hint="claude-opus-5-5")]
    assert first.agents == [Choice(id="Plan", hint="opus")]
    assert (first.native_session, first.incarnation) == (says.NATIVE, CONTEXT.incarnation)
    says.facts(translator, says.result())
    again = says.init(slash_commands=["compact", "new"], mcp_servers=[{"name": "db", "status": "failed", "error": "e"}])
    (changed, begun) = says.datas(translator, again)
    assert changed == SessionUpdated(
        commands=[compact, Choice(id="new")], mcp_servers=[McpServer(name="db", status="failed", error="e")]
    )
    assert isinstance(begun, TurnStarted)
    assert says.datas(translator, again) == []


def test_a_session_that_asks_nothing_says_so_among_its_modes() -> None:
    (first, _) = says.datas(new_translator(), says.init(permissionMode="bypassPermissions"))
    assert isinstance(first, SessionInitialized)
    assert first.modes[-1].id == "bypassPermissions"


def test_signing_in() -> None:
    translator = new_translator()
    found = says.datas(translator, {"type": "auth_status", "isAuthenticating": True, "output": ["Open http://…"]})
    assert found == [
        AuthUpdated(authenticating=True, output=["Open http://…"]),
        SessionStatus(status="authenticating"),
    ]
    found = says.datas(translator, {"type": "auth_status", "isAuthenticating": False, "error": "refused"})
    assert found == [AuthUpdated(error="refused"), SessionStatus(status=None)]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            system("commands_changed", commands=[{"name": "x"}]),
            SessionUpdated(commands=[Choice(id="x")]),
        ),
        (system("notification", text="Look"), MessageSystem(text="Look", kind="notification")),
        (
            system("model_refusal_fallback"),
            MessageSystem(text="The model refused to answer", level="warning", kind="model_refusal_fallback"),
        ),
        (
            system("files_persisted", files=[{"filename": "a.txt", "file_id": "f"}]),
            MessageSystem(text="Files kept: a.txt", kind="files_persisted"),
        ),
        (
            system("mirror_error", error="disk full"),
            ErrorRaised(code="agent_failed", message="disk full", details={"kind": "mirror_error"}),
        ),
        (
            system("hook_response", hook_event="Stop", hook_name="Stop", outcome="error", exit_code=2, stderr="bad"),
            HookFired(hook_event="Stop", name="Stop", status="failed", output="bad", exit_code=2),
        ),
        (
            {"type": "stream_event", "event": {"type": "content_block_glow"}},
            NativeMessage(known=False, kind="stream_event/content_block_glow", reason="unknown_event"),
        ),
    ],
)
def test_single_messages(message: dict[str, Any], expected: Data) -> None:
    assert says.datas(new_translator(), message) == [expected]


@pytest.mark.parametrize(
    "message",
    [
        {"type": "keep_alive"},
        system("session_state_changed", state="idle"),
        system("worker_shutting_down"),
        system("memory_recall"),
        system("hook_progress"),
        {"type": "active_goal"},
    ],
)
def test_what_is_known_to_mean_nothing_is_no_drift(message: dict[str, Any]) -> None:
    assert new_translator().feed(message) == []


def test_a_compaction_that_fails_ends_with_its_reason() -> None:
    translator = in_turn()
    found = says.datas(
        translator, system("status", status="compacting"), system("status", status=None, compact_error="too long")
    )
    assert found == [SessionStatus(status="compacting"), SessionStatus(status=None, reason="too long")]
    assert says.datas(translator, system("status", status=None)) == []


def test_what_the_agent_tells_twice_is_told_once() -> None:
    translator = new_translator()
    told = {"type": "user", "message": {"role": "user", "content": "<local-command-stdout>x</local-command-stdout>"}}
    told |= {"uuid": "u", "isReplay": True}
    assert says.datas(translator, told, told) == [
        MessageUser(content=[TextBlock(text="<local-command-stdout>x</local-command-stdout>")], synthetic=True)
    ]


# Turns


def end_of(translator: ClaudeTranslator, **fields: Any) -> TurnCompleted:
    found = says.datas(translator, says.result(**fields))
    assert isinstance(found[-1], TurnCompleted)
    return found[-1]


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ({"stop_reason": "refusal"}, "refused"),
        ({"subtype": "error_max_structured_output_retries", "is_error": True}, "max_structured_output"),
        ({"is_error": True, "terminal_reason": "structured_output_retry_exhausted"}, "max_structured_output"),
        ({"is_error": True, "terminal_reason": "budget_exhausted"}, "max_budget"),
        ({"is_error": True, "api_error_status": 500}, "error"),
        ({"subtype": "error_during_execution", "is_error": True, "errors": ["it broke"]}, "error"),
        ({"subtype": "error_during_execution", "is_error": True, "terminal_reason": "aborted_tools"}, "interrupted"),
    ],
)
def test_outcomes(fields: dict[str, Any], outcome: str) -> None:
    done = end_of(in_turn(), **fields)
    assert done.outcome == outcome
    assert (done.error is not None) == (outcome == "error")


def test_diagnostics_are_not_shown_to_people() -> None:
    errors = ["[ede_diagnostic] result_type=user", "The disk is full"]
    done = end_of(in_turn(), subtype="error_during_execution", is_error=True, errors=errors, result=None)
    assert done.error is not None
    assert done.error.message == "The disk is full"


def test_structured_output_is_kept() -> None:
    assert end_of(in_turn(), structured_output={"a": 1}).structured_output == {"a": 1}


def test_another_origin_than_a_prompt_or_a_task() -> None:
    assert end_of(in_turn(), origin={"kind": "peer-message"}).trigger == "other"


def test_older_clis_give_running_totals_only() -> None:
    translator = in_turn()
    usage = {"claude-x": {"inputTokens": 10, "outputTokens": 5, "costUSD": 0.01}}
    first = end_of(translator, total_cost_usd=0.01, modelUsage=usage)
    more = {"claude-x": {"inputTokens": 30, "outputTokens": 6, "costUSD": 0.03}}
    second = end_of(translator, total_cost_usd=0.03, modelUsage=more)
    assert (first.cost_usd, first.total_cost_usd) == (0.01, 0.01)
    assert second.cost_usd == pytest.approx(0.02)
    assert (second.models[0].usage.input, second.models[0].usage.output) == (20, 1)


def test_the_first_total_after_a_resume_is_no_turns_cost() -> None:
    translator = ClaudeTranslator(CONTEXT, CAPABILITIES, resumed=True)
    translator.feed(says.init())
    usage = {"claude-x": {"inputTokens": 10, "outputTokens": 5, "costUSD": 5.0}}
    first = end_of(translator, total_cost_usd=5.0, modelUsage=usage)
    assert (first.cost_usd, first.total_cost_usd, first.models) == (None, 5.0, [])
    assert end_of(translator, total_cost_usd=5.5, modelUsage=usage).cost_usd == pytest.approx(0.5)


def test_prompts_without_the_life_of_a_uuid_are_taken_in_order() -> None:
    translator = new_translator()
    for command in ("cmd_1", "cmd_2"):
        translator.prompt(says.user_line(command, f"uuid-{command}"), command)
    begun = [
        fact
        for fact in says.facts(translator, says.init(), says.result(), says.init())
        if fact.data.TYPE == "turn.started"
    ]
    assert [fact.cause for fact in begun] == ["cmd_1", "cmd_2"]


def test_a_result_out_of_nowhere_is_a_whole_turn() -> None:
    assert [type(data) for data in says.datas(new_translator(), says.result())] == [TurnStarted, TurnCompleted]


def test_pieces_of_a_message_whose_start_was_not_seen() -> None:
    event = {"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "x"}}
    (piece,) = new_translator().feed({"type": "stream_event", "event": event, "api_message_id": "m"})
    assert not isinstance(piece, Fact)
    assert (getattr(piece, "item", None), getattr(piece, "block", None)) == (says.item("m"), 2)


# Content


@pytest.mark.parametrize(
    ("native", "expected"),
    [
        ({"type": "text", "text": "x"}, TextBlock(text="x")),
        ({"type": "redacted_thinking", "data": "abc"}, ThinkingBlock(text="", signature="abc")),
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "AA=="}},
            ImageBlock(media_type="image/gif", data="AA=="),
        ),
        (
            {"type": "image", "source": {"type": "url", "url": "http://127.0.0.1/a.png"}},
            ImageBlock(media_type="image/png", url="http://127.0.0.1/a.png"),
        ),
        (
            {"type": "document", "title": "t", "source": {"media_type": "application/pdf", "data": "AA=="}},
            FileBlock(name="t", media_type="application/pdf", data="AA=="),
        ),
        ({"type": "resource_link", "uri": "db://x", "name": "x"}, ResourceBlock(uri="db://x", name="x")),
        ({"type": "hologram"}, CodeBlock(text='{"type":"hologram"}', language="json")),
    ],
)
def test_blocks_of_the_agent(native: dict[str, Any], expected: Block) -> None:
    assert blocks_of([native]) == [expected]


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (TextBlock(text="x"), {"type": "text", "text": "x"}),
        (
            ImageBlock(media_type="image/png", data="AA=="),
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
        ),
        (ImageBlock(media_type="image/png", url="u"), {"type": "image", "source": {"type": "url", "url": "u"}}),
        (FileBlock(path="src/a.py"), {"type": "text", "text": "@src/a.py"}),
        (FileBlock(name="a.txt", data="hello"), {"type": "text", "text": "<file name='a.txt'>\nhello\n</file>"}),
        (
            FileBlock(name="a.pdf", media_type="application/pdf", data="AA=="),
            {
                "type": "document",
                "title": "a.pdf",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "AA=="},
            },
        ),
        (CodeBlock(text="x", language="py"), {"type": "text", "text": "```py\nx\n```"}),
        (DiffBlock(path="a", unified="-x\n+y"), {"type": "text", "text": "```diff\n-x\n+y\n```"}),
        (TerminalBlock(output="$"), {"type": "text", "text": "```\n$\n```"}),
        (ResourceBlock(uri="db://x", text="row"), {"type": "text", "text": "db://x\nrow"}),
    ],
)
def test_blocks_of_a_prompt(block: Block, expected: dict[str, Any]) -> None:
    assert native_content([TextBlock(text="first"), block]) == [{"type": "text", "text": "first"}, expected]


def test_a_prompt_of_one_text_is_a_string() -> None:
    assert native_content([TextBlock(text="/compact")]) == "/compact"


@pytest.mark.parametrize(
    ("block", "code"),
    [
        (ThinkingBlock(text="hm"), "bad_params"),
        (TextBlock(text=BlobRef(sha256="0" * 64, size=9)), "blob_missing"),
    ],
)
def test_what_a_prompt_cannot_hold(block: Block, code: str) -> None:
    with pytest.raises(TrunklineError) as error:
        native_content([block])
    assert error.value.code == code

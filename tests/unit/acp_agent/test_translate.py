"""Events as an editor's updates. What is expected is written down from the protocol's schema, which every update fits."""

from typing import Any

from acp.schema import SessionNotification

from trunkline_acp.native import Able
from trunkline_acp.translate import Translator
from trunkline_fold.session import SessionState
from trunkline_fold.state import OpenTool
from trunkline_wire import Data, make_event
from trunkline_wire.asks import PermissionRequested
from trunkline_wire.blocks import (
    BlobRef,
    Block,
    Choice,
    DiffBlock,
    ImageBlock,
    Location,
    TerminalBlock,
    TextBlock,
    ThinkingBlock,
    Usage,
)
from trunkline_wire.session import Capabilities, SessionCreated, SessionInitialized, SessionUpdated
from trunkline_wire.turn import (
    MessageAssistant,
    MessageDelta,
    MessageSystem,
    MessageUser,
    ToolCompleted,
    ToolProgress,
    ToolStarted,
    TurnCompleted,
    TurnStarted,
)
from trunkline_wire.work import PlanEntry, PlanUpdated, UsageUpdated

SESSION = "ses_" + "1" * 32
ITEM = "itm_" + "a" * 32
TIME = "2026-01-02T03:04:05.000006Z"


class Told:
    def __init__(self, **able: bool) -> None:
        self.translator = Translator(SESSION, Able(**able))
        self.feed(SessionCreated(adapter="demo", cwd="/work", host="h", workspace="ws", title="named"))

    def feed(self, data: Data, *, past: bool = False, **fields: Any) -> list[dict[str, Any]]:
        event = make_event(data, session=SESSION, time=TIME, **fields)
        updates = self.translator.feed(event, past=past)
        for update in updates:
            if update["sessionUpdate"] != "notice":  # younger than the SDK
                SessionNotification.model_validate({"sessionId": SESSION, "update": update})
        return updates


def message(text: str, item: str = ITEM) -> dict[str, Any]:
    return {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}, "messageId": item}


def test_the_pieces_of_a_text_are_told_once_and_its_end_tells_the_rest() -> None:
    told = Told()
    assert told.feed(MessageDelta(block=0, at=0, text="Hel"), item=ITEM) == [message("Hel")]
    assert told.feed(MessageDelta(block=0, at=3, text="lo"), item=ITEM) == [message("lo")]
    # the whole block so far, as after a restart of the gateway
    assert told.feed(MessageDelta(block=0, at=0, text="Hello, w"), item=ITEM) == [message(", w")]
    assert told.feed(MessageDelta(block=0, at=0, text="Hello"), item=ITEM) == []
    done = MessageAssistant(content=[TextBlock(text="Hello, world")], block=0)
    assert told.feed(done, item=ITEM) == [message("orld")]


def test_a_hole_waits_for_the_whole_text() -> None:
    told = Told()
    assert told.feed(MessageDelta(block=0, at=0, text="one"), item=ITEM) == [message("one")]
    assert told.feed(MessageDelta(block=0, at=8, text="three"), item=ITEM) == []
    done = MessageAssistant(content=[TextBlock(text="one two three")], block=0)
    assert told.feed(done, item=ITEM) == [message(" two three")]


def test_offsets_count_characters_and_not_bytes() -> None:
    told = Told()
    told.feed(MessageDelta(block=0, at=0, text="é🦀"), item=ITEM)
    assert told.feed(MessageDelta(block=0, at=2, text="!"), item=ITEM) == [message("!")]


def test_a_text_without_deltas_is_told_whole_and_thinking_as_thought() -> None:
    content: list[Block] = [ThinkingBlock(text="hm"), TextBlock(text="yes")]
    thought = {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}, "messageId": ITEM}
    assert Told().feed(MessageAssistant(content=content), item=ITEM) == [thought, message("yes")]


def test_a_long_text_that_was_streamed_is_not_cut_to_what_the_log_keeps_of_it() -> None:
    told = Told()
    told.feed(MessageDelta(block=0, at=0, text="long text"), item=ITEM)
    kept = BlobRef(sha256="0" * 64, size=9, preview="long")
    assert told.feed(MessageAssistant(content=[TextBlock(text=kept)], block=0), item=ITEM) == []


def test_an_image_of_the_agents() -> None:
    image = MessageAssistant(content=[ImageBlock(media_type="image/png", data="aGk=")])
    (update,) = Told().feed(image, item=ITEM)
    assert update["content"] == {"type": "image", "mimeType": "image/png", "data": "aGk="}


def test_what_others_prompt_shows_and_what_this_editor_has_sent_does_not() -> None:
    told = Told()
    told.translator.mine.add("cmd_mine")
    assert told.feed(MessageUser(content=[TextBlock(text="mine")], command="cmd_mine"), item=ITEM) == []
    other = MessageUser(content=[TextBlock(text="theirs")], command="cmd_other", author="ada")
    (update,) = told.feed(other, item=ITEM)
    assert update == {
        "sessionUpdate": "user_message_chunk",
        "content": {"type": "text", "text": "theirs"},
        "messageId": ITEM,
        "_meta": {"trunkline": {"author": "ada"}},
    }
    # folded into a turn later: the log tells it again, the editor not
    again = MessageUser(content=[TextBlock(text="theirs")], command="cmd_other", delivery="steered")
    assert told.feed(again, item=ITEM) == []
    assert told.feed(MessageUser(content=[TextBlock(text="x")], synthetic=True), item=ITEM) == []
    assert told.feed(MessageUser(content=[TextBlock(text="x")], delivery="cancelled"), item=ITEM) == []


def test_a_tool_call_from_its_start_to_its_end() -> None:
    told = Told()
    started = ToolStarted(
        name="Bash", kind="execute", input={"command": "ls"}, locations=[Location(path="/work/a", line=3)]
    )
    assert told.feed(started, item=ITEM) == [
        {
            "sessionUpdate": "tool_call",
            "toolCallId": ITEM,
            "title": "Bash: ls",
            "kind": "execute",
            "status": "in_progress",
            "rawInput": {"command": "ls"},
            "locations": [{"path": "/work/a", "line": 3}],
        }
    ]
    printed = {"type": "content", "content": {"type": "text", "text": "```console\na\n```"}}
    assert told.feed(ToolProgress(output="a"), item=ITEM) == [
        {"sessionUpdate": "tool_call_update", "toolCallId": ITEM, "status": "in_progress", "content": [printed]}
    ]
    done = ToolCompleted(status="completed", content=[TerminalBlock(output="a\nb", exit_code=0)], structured={"n": 2})
    printed = {"type": "content", "content": {"type": "text", "text": "```console\na\nb\n```"}}
    assert told.feed(done, item=ITEM) == [
        {
            "sessionUpdate": "tool_call_update",
            "toolCallId": ITEM,
            "status": "completed",
            "rawOutput": {"n": 2},
            "content": [printed],
        }
    ]


def test_a_refused_tool_has_failed_and_says_why() -> None:
    told = Told()
    told.feed(ToolStarted(name="Edit", kind="edit"), item=ITEM)
    (update,) = told.feed(ToolCompleted(status="rejected", reason="not today"), item=ITEM)
    assert (update["status"], update["content"]) == (
        "failed",
        [{"type": "content", "content": {"type": "text", "text": "not today"}}],
    )


def test_an_edit_shows_its_change_with_the_call_and_the_agents_own_at_its_end() -> None:
    told = Told()
    given = {"file_path": "a.py", "old_string": "1", "new_string": "2"}
    (call,) = told.feed(ToolStarted(name="Edit", kind="edit", input=given), item=ITEM)
    assert call["content"] == [{"type": "diff", "path": "/work/a.py", "oldText": "1", "newText": "2"}]
    done = ToolCompleted(status="completed", content=[DiffBlock(path="/work/a.py", old="x=1", new="x=2")])
    (update,) = told.feed(done, item=ITEM)
    assert update["content"] == [{"type": "diff", "path": "/work/a.py", "oldText": "x=1", "newText": "x=2"}]
    told.feed(ToolStarted(name="Edit", kind="edit", input=given), item="itm_2")
    (update,) = told.feed(ToolCompleted(status="completed", content=[TextBlock(text="ok")]), item="itm_2")
    assert "content" not in update  # the change that the call has shown stays


def test_a_permission_that_comes_before_its_call_tells_the_call() -> None:
    told = Told()
    asked = PermissionRequested(
        ask="ask_1", name="Bash", incarnation="i", kind="execute", input={"command": "ls"}, tool=ITEM
    )
    (call,) = told.feed(asked)
    assert (call["sessionUpdate"], call["toolCallId"], call["status"]) == ("tool_call", ITEM, "pending")
    assert told.feed(asked) == []
    (update,) = told.feed(ToolStarted(name="Bash", kind="execute", input={"command": "ls"}), item=ITEM)
    assert (update["sessionUpdate"], update["status"]) == ("tool_call_update", "in_progress")


def test_an_editor_with_terminals_sees_what_a_command_prints_as_it_comes() -> None:
    told = Told(terminal_output=True)
    (call,) = told.feed(ToolStarted(name="Bash", kind="execute"), item=ITEM)
    assert call["content"] == [{"type": "terminal", "terminalId": ITEM}]
    assert call["_meta"]["terminal_info"] == {"terminal_id": ITEM, "cwd": "/work"}
    (update,) = told.feed(ToolProgress(output="a\n"), item=ITEM)
    assert update["_meta"] == {"terminal_output": {"terminal_id": ITEM, "data": "a\n"}}
    done = ToolCompleted(status="completed", content=[TerminalBlock(output="a\nb\n", exit_code=1)])
    rest, ended = told.feed(done, item=ITEM)
    assert rest["_meta"] == {"terminal_output": {"terminal_id": ITEM, "data": "b\n"}}
    assert ended["_meta"] == {"terminal_exit": {"terminal_id": ITEM, "exit_code": 1, "signal": None}}
    assert (ended["status"], ended["content"]) == ("completed", [{"type": "terminal", "terminalId": ITEM}])


def test_a_subagents_calls_show_and_its_words_do_not() -> None:
    told = Told()
    assert told.feed(MessageAssistant(content=[TextBlock(text="x")]), item=ITEM, lane="itm_p") == []
    assert told.feed(MessageDelta(block=0, at=0, text="x"), item=ITEM, lane="itm_p") == []
    (call,) = told.feed(ToolStarted(name="Read", kind="read"), item="itm_2", lane="itm_p")
    assert call["_meta"] == {"trunkline": {"lane": "itm_p"}}


def test_what_the_session_becomes() -> None:
    told = Told()
    begun = SessionInitialized(
        capabilities=Capabilities(thinking=True),
        mode="ask",
        model="small",
        modes=[Choice(id="ask", name="Ask", description="asks"), Choice(id="free")],
        models=[Choice(id="small"), Choice(id="large", name="Large")],
        commands=[Choice(id="review", description="Reviews", hint="what")],
    )
    commands, mode, options = told.feed(begun)
    assert commands == {
        "sessionUpdate": "available_commands_update",
        "availableCommands": [{"name": "review", "description": "Reviews", "input": {"hint": "what"}}],
    }
    assert mode == {"sessionUpdate": "current_mode_update", "currentModeId": "ask"}
    assert options["configOptions"][:2] == [
        {
            "type": "select",
            "id": "mode",
            "name": "Mode",
            "category": "mode",
            "currentValue": "ask",
            "options": [
                {"value": "ask", "name": "Ask", "description": "asks"},
                {"value": "free", "name": "free"},
            ],
        },
        {
            "type": "select",
            "id": "model",
            "name": "Model",
            "category": "model",
            "currentValue": "small",
            "options": [{"value": "small", "name": "small"}, {"value": "large", "name": "Large"}],
        },
    ]
    thinking = options["configOptions"][2]
    assert (thinking["category"], thinking["currentValue"]) == ("thought_level", "default")
    assert [one["value"] for one in thinking["options"]] == ["default", "off", "low", "medium", "high", "max"]
    assert told.feed(begun) == []
    (options,) = told.feed(SessionUpdated(model="large"))
    assert options["configOptions"][1]["currentValue"] == "large"
    assert told.feed(SessionUpdated(title="A name")) == [
        {"sessionUpdate": "session_info_update", "title": "A name", "updatedAt": TIME}
    ]


def test_plans_and_usage() -> None:
    told = Told()
    entries = [PlanEntry(content="a", status="completed", priority="high"), PlanEntry(content="b")]
    assert told.feed(PlanUpdated(entries=entries)) == [
        {
            "sessionUpdate": "plan",
            "entries": [
                {"content": "a", "priority": "high", "status": "completed"},
                {"content": "b", "priority": "medium", "status": "pending"},
            ],
        }
    ]
    used = UsageUpdated(usage=Usage(context_used=10, context_size=200), total_cost_usd=0.5)
    assert told.feed(used) == [
        {"sessionUpdate": "usage_update", "used": 10, "size": 200, "cost": {"amount": 0.5, "currency": "USD"}}
    ]


def test_a_word_of_the_agents_program() -> None:
    said = MessageSystem(text="Limit reached\nuntil noon", level="warning")
    (update,) = Told().feed(said, id="evt")
    assert update == message("Limit reached\nuntil noon", "evt")
    assert Told(notices=True).feed(said) == [
        {"sessionUpdate": "notice", "severity": "warning", "title": "Limit reached", "description": "until noon"}
    ]


def test_the_past_tells_what_was_said_and_not_what_has_changed_since() -> None:
    told = Told()
    assert told.feed(SessionUpdated(title="A name"), past=True) == []
    assert told.feed(TurnStarted(number=1), past=True) == []
    assert told.feed(MessageAssistant(content=[TextBlock(text="yes")]), item=ITEM, past=True) == [message("yes")]
    assert told.feed(PlanUpdated(entries=[PlanEntry(content="b")]), past=True) == []
    assert told.feed(TurnCompleted(outcome="success"), past=True) == []
    assert [one["sessionUpdate"] for one in told.translator.summary()] == ["plan"]


def test_a_snapshot_tells_what_is_under_way() -> None:
    told = Told()
    tool = OpenTool(name="Bash", started=TIME, kind="execute", title="ls", locations=[Location(path="/a")])
    state = SessionState(session=SESSION, cwd="/work", open_tools={"itm_t": tool})
    block = {"item": ITEM, "block": 0, "kind": "text", "text": "so far"}
    call, piece = told.translator.begin(state, [block, block | {"kind": "tool_input", "item": "itm_t"}])
    assert (call["toolCallId"], call["title"], call["status"]) == ("itm_t", "ls", "in_progress")
    assert piece == message("so far")
    assert told.feed(MessageDelta(block=0, at=6, text="!"), item=ITEM) == [message("!")]
    (ended,) = told.feed(ToolCompleted(status="cancelled"), item="itm_t")
    assert (ended["sessionUpdate"], ended["status"]) == ("tool_call_update", "failed")

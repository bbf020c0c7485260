"""Every kind of update of the schema (version 1, stable and unstable), of which agents have sent only some on record.

Messages are made by hand after the schema; expected values are derived from it.
"""

from typing import Any

import msgspec
import pytest
from tests.unit.acp.talk import Obj, Talk, data_of

from trunkline_adapters.acp.profiles import NO_PROFILE, Profile, Sign
from trunkline_adapters.acp.replies import result_of
from trunkline_adapters.acp.translate_session import capabilities
from trunkline_agentkit import Fact
from trunkline_wire.asks import (
    AskDecided,
    AskWithdrawn,
    PermissionRequested,
    PlanProposed,
    Question,
    QuestionAsked,
    QuestionOption,
)
from trunkline_wire.blocks import Choice, FileBlock, ImageBlock, ResourceBlock, TextBlock
from trunkline_wire.errors import ErrorInfo
from trunkline_wire.session import SessionCompacted, SessionInitialized, SessionStatus, SessionUpdated
from trunkline_wire.turn import MessageAssistant, MessageSystem, MessageUser, ToolCompleted, ToolStarted, TurnCompleted
from trunkline_wire.work import NativeMessage, PlanEntry, PlanUpdated, TaskUpdated


def test_what_an_agent_can_do_with_its_commands_is_told_with_them() -> None:
    """They come after the answer that describes the session."""
    talk = Talk()
    first = capabilities(talk.translator.state)
    assert (first.slash_commands, first.compaction) == (False, False)
    web: Obj = {"name": "web", "description": "d", "input": {"hint": "query"}}
    told = Choice(id="web", description="d", hint="query")
    for commands, expected in (
        ([web], (True, False)),
        ([web, {"name": "compact"}], (True, True)),
        ([web], (True, False)),
        ([], (False, False)),
    ):
        (data,) = talk.update("available_commands_update", availableCommands=commands)
        assert isinstance(data, SessionInitialized)
        assert data.native_session == "s"
        assert data.commands[:1] == ([told] if commands else [])
        assert (data.capabilities.slash_commands, data.capabilities.compaction) == expected
    talk.update("available_commands_update", availableCommands=[web])
    help = {"name": "help"}
    assert talk.update("available_commands_update", availableCommands=[web, help]) == [
        SessionUpdated(commands=[told, Choice(id="help")])
    ]


def test_a_profile_says_by_which_command_an_agent_compacts() -> None:
    talk = Talk(Profile(compact="compress"))
    (data,) = talk.update("available_commands_update", availableCommands=[{"name": "compact"}, {"name": "compress"}])
    assert isinstance(data, SessionInitialized)
    assert data.capabilities.compaction
    (data,) = talk.update("available_commands_update", availableCommands=[{"name": "compact"}])
    assert isinstance(data, SessionInitialized)
    assert not data.capabilities.compaction


@pytest.mark.parametrize("claim", ["streaming", "questions", "plans"])
def test_what_the_protocol_has_no_word_for_is_claimed_by_the_profile(claim: str) -> None:
    for has in (True, False):
        profile = msgspec.structs.replace(NO_PROFILE, **{claim: has})
        claimed = capabilities(Talk(profile).translator.state)
        assert getattr(claimed, claim) == has
    unknown = capabilities(Talk().translator.state)
    assert (unknown.streaming, unknown.questions, unknown.plans) == (True, False, False)


def test_a_plan_is_its_entries() -> None:
    entries = [
        {"content": "a", "status": "in_progress", "priority": "high"},
        {"content": "b", "status": "later", "priority": "soon"},
    ]
    expected = [PlanEntry(content="a", status="in_progress", priority="high"), PlanEntry(content="b")]
    talk = Talk()
    assert talk.update("plan", entries=entries) == [PlanUpdated(entries=expected)]
    assert talk.update("plan_update", plan={"type": "items", "planId": "p", "entries": entries}) == [
        PlanUpdated(entries=expected)
    ]
    assert talk.update("plan_update", plan={"type": "markdown", "planId": "p", "content": "# Do"}) == [
        PlanUpdated(entries=[PlanEntry(content="# Do")])
    ]
    assert talk.update("plan_update", plan={"type": "file", "planId": "p", "uri": "file:///p.md"}) == [
        PlanUpdated(entries=[PlanEntry(content="file:///p.md")])
    ]
    assert talk.update("plan_removed", planId="p") == [PlanUpdated(entries=[])]


@pytest.mark.parametrize(("severity", "level"), [("info", "info"), ("warning", "warning"), ("_mine", "info")])
def test_a_notice_is_for_the_user(severity: str, level: Any) -> None:
    said = Talk().update("notice", severity=severity, title="Slow", description="The model is busy.")
    assert said == [MessageSystem(text="Slow\nThe model is busy.", level=level, kind="notice")]


def test_a_compaction_begins_and_ends_with_what_it_kept() -> None:
    talk = Talk()
    assert talk.update("compaction_update", compactionId="c", status="in_progress") == [
        SessionStatus(status="compacting")
    ]
    for piece in ("We did ", "a thing."):
        talk.update("compaction_summary_chunk", compactionId="c", content={"type": "text", "text": piece})
    assert talk.update("compaction_update", compactionId="c", status="completed") == [
        SessionStatus(status=None),
        SessionCompacted(trigger="agent"),
        MessageSystem(text="We did a thing.", kind="compaction"),
    ]


def test_a_compaction_may_come_as_one_message_or_fail() -> None:
    talk = Talk()
    summary = [{"type": "text", "text": "All."}]
    assert talk.update("compaction_update", compactionId="c", status="completed", summary=summary) == [
        SessionCompacted(trigger="agent"),
        MessageSystem(text="All.", kind="compaction"),
    ]
    assert talk.update("compaction_update", compactionId="d", status="failed", error="too long") == [
        MessageSystem(text="too long", level="warning", kind="compaction")
    ]


def test_a_compaction_that_never_ends_is_over_with_the_turn() -> None:
    talk = Talk()
    talk.update("compaction_update", compactionId="c", status="in_progress")
    assert talk.end()[:1] == [SessionStatus(status=None)]


@pytest.mark.parametrize(
    ("stop", "outcome"),
    [
        ("end_turn", "success"),
        ("max_tokens", "success"),
        ("max_turn_requests", "max_turns"),
        ("refusal", "refused"),
        ("cancelled", "interrupted"),
        ("a_reason_of_next_year", "success"),
    ],
)
def test_a_stop_reason_is_an_outcome(stop: str, outcome: str) -> None:
    (ended,) = Talk().end(stopReason=stop)
    assert isinstance(ended, TurnCompleted)
    assert (ended.outcome, ended.stop_reason) == (outcome, stop)


def _interrupted(**result: Any) -> TurnCompleted:
    """The end of a turn that was interrupted behind a text."""
    talk = Talk()
    talk.update("agent_message_chunk", content={"type": "text", "text": "All of it."})
    talk.translator.sent({"method": "session/cancel", "params": {"sessionId": "s"}})
    told, ended = talk.end(**result)
    assert isinstance(told, MessageAssistant)
    assert isinstance(ended, TurnCompleted)
    assert talk.translator.state.turn is None
    assert told.aborted == (ended.outcome == "interrupted")
    return ended


def test_an_interrupt_that_came_too_late_is_what_the_agent_says_it_is() -> None:
    assert _interrupted(usage={"inputTokens": 4, "outputTokens": 3, "totalTokens": 7}).outcome == "success"


def test_an_agent_that_has_no_word_for_an_interrupt_was_interrupted() -> None:
    """OpenHands 1.16 says `end_turn` alone; opencode 1.18, interrupted while it tries to reach its model again, that nothing was said."""
    assert _interrupted().outcome == "interrupted"
    assert _interrupted(usage={"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}).outcome == "interrupted"
    (ended,) = Talk().end(usage={"inputTokens": 0, "outputTokens": 0, "totalTokens": 0})
    assert isinstance(ended, TurnCompleted)
    assert ended.outcome == "success", "nobody has interrupted it"


def test_a_process_that_gave_way_to_the_next_has_ended_its_turn() -> None:
    """As a recording of a session tells it: nothing but the next introduction."""
    for interrupt, told in ((True, ["interrupted"]), (False, [])):
        talk = Talk()
        if interrupt:
            talk.translator.sent({"method": "session/cancel", "params": {"sessionId": "s"}})
        out = data_of(talk.translator.sent({"id": 1, "method": "initialize", "params": {}}))
        assert [one.outcome for one in out if isinstance(one, TurnCompleted)] == told


WHY = "exceeded retry limit, last status: 429 Too Many Requests"


def _failing(said: str | None, *, then: str | None = None) -> TurnCompleted:
    """The end of a turn that the agent says has failed, as codex-acp 2.6.0 says it: in a field, with the reason as a text."""
    talk = Talk(Profile(failure=Sign(at="_meta.own.status", value="systemError")))
    talk.update("agent_message_chunk", messageId="m", content={"type": "text", "text": "Half of"})
    talk.update("session_info_update", _meta={"own": {"status": "systemError"}})
    if said is not None:
        told = talk.update("agent_message_chunk", content={"type": "text", "text": f"{said}\n\n"})
        half = MessageAssistant(content=[TextBlock(text="Half of")], block=0, aborted=True)
        assert told == [half, MessageSystem(text=said, level="error")]
    if then is not None:
        talk.update("agent_message_chunk", messageId="n", content={"type": "text", "text": then})
    *_, ended = talk.end()
    assert isinstance(ended, TurnCompleted)
    return ended


def test_a_turn_that_the_agent_says_has_failed_is_an_error_with_its_reason() -> None:
    ended = _failing(WHY)
    assert ended.outcome == "error"
    assert ended.error == ErrorInfo(code="agent_failed", message=WHY)
    body = '{"error": {"message": "Scripted error 400.", "code": null}}'
    assert _failing(body).error == ErrorInfo(code="agent_failed", message="Scripted error 400.")
    silent = _failing(None)
    assert (silent.outcome, silent.error and silent.error.code) == ("error", "agent_failed")


def test_a_turn_that_goes_on_after_a_failure_has_not_failed() -> None:
    assert _failing(WHY, then="All is well.").outcome == "success"
    assert _failing(None, then="All is well.").outcome == "success"


@pytest.mark.parametrize(("said", "outcome"), [("Error: 400 no.", "error"), ("No Error: 400", "success")])
def test_a_text_of_the_programs_own_may_tell_that_the_turn_has_failed(said: str, outcome: str) -> None:
    talk = Talk(Profile(error_chunk=r"\AError: \d{3} "))
    talk.update("agent_message_chunk", content={"type": "text", "text": said})
    *_, ended = talk.end()
    assert isinstance(ended, TurnCompleted)
    assert ended.outcome == outcome
    assert ended.error == (ErrorInfo(code="agent_failed", message=said) if outcome == "error" else None)


def test_an_agent_that_answers_an_interrupt_by_an_error_was_interrupted() -> None:
    talk = Talk()
    talk.update("agent_message_chunk", content={"type": "text", "text": "Some"})
    talk.translator.sent({"method": "session/cancel", "params": {"sessionId": "s"}})
    *_, ended = data_of(talk.feed({"id": 2, "error": {"code": -32603, "message": "aborted"}}))
    assert isinstance(ended, TurnCompleted)
    assert (ended.outcome, ended.error) == ("interrupted", None)


def test_an_agent_that_is_signed_out_in_mid_session_says_so() -> None:
    (ended,) = data_of(Talk().feed({"id": 2, "error": {"code": -32000, "message": "sign in"}}))
    assert isinstance(ended, TurnCompleted)
    assert ended.error is not None
    assert (ended.outcome, ended.error.code) == ("error", "agent_auth")


def test_content_of_every_kind_is_a_block() -> None:
    talk = Talk()
    contents: list[Obj] = [
        {"type": "text", "text": "See: "},
        {"type": "image", "mimeType": "image/png", "data": "aGk="},
        {"type": "audio", "mimeType": "audio/wav", "data": "aGk="},
        {"type": "resource_link", "uri": "file:///a", "name": "a", "mimeType": "text/plain"},
        {"type": "resource", "resource": {"uri": "file:///b", "text": "b"}},
        {"type": "text", "text": "end"},
    ]
    for content in contents:
        talk.update("agent_message_chunk", content=content)
    said, _ = talk.end()
    assert said == MessageAssistant(
        content=[
            TextBlock(text="See: "),
            ImageBlock(media_type="image/png", data="aGk="),
            FileBlock(media_type="audio/wav", data="aGk="),
            ResourceBlock(uri="file:///a", name="a", media_type="text/plain"),
            ResourceBlock(uri="file:///b", text="b"),
            TextBlock(text="end"),
        ],
        block=0,
    )


def test_a_message_goes_on_behind_a_tool_call_with_further_blocks() -> None:
    talk = Talk()
    talk.update("agent_message_chunk", messageId="m", content={"type": "text", "text": "before"})
    first, tool = talk.update("tool_call", toolCallId="t", title="x", status="in_progress")
    talk.update("agent_message_chunk", messageId="m", content={"type": "text", "text": "after"})
    second, *_ = talk.end()
    assert isinstance(tool, ToolStarted)
    assert isinstance(first, MessageAssistant)
    assert isinstance(second, MessageAssistant)
    assert (first.block, second.block) == (0, 1)


def test_an_echo_of_the_prompt_says_nothing_and_words_in_the_users_name_do() -> None:
    talk = Talk(prompted=False)
    talk.send("do it now")
    assert talk.update("user_message_chunk", content={"type": "text", "text": "do it "}) == []
    block = TextBlock(text="Summary so far")
    assert talk.update("user_message_chunk", content={"type": "text", "text": "Summary so far"}) == [
        MessageUser(content=[block], synthetic=True)
    ]


def test_what_is_said_outside_of_a_turn_is_told_at_once() -> None:
    talk = Talk(prompted=False)
    content = {"type": "text", "text": "Your build is done."}
    assert talk.update("agent_message_chunk", content=content) == [
        MessageAssistant(content=[TextBlock(text="Your build is done.")], block=0)
    ]


def test_questions_that_come_as_a_permission_are_answered_by_their_number() -> None:
    """Qwen Code 0.24.4 asks so; the request is one that it sent."""
    profile = Profile(questions_at="_meta.questions")
    options = [
        {"label": "Red", "description": "warm"},
        {"label": "Blue", "description": "cool"},
    ]
    asked = [
        {"question": "Which colour?", "header": "Colour", "options": options, "multiSelect": False},
        {"question": "Which sizes?", "options": [{"label": "S"}, {"label": "L"}], "multiSelect": True},
    ]
    params = {
        "options": [
            {"optionId": "proceed_once", "name": "Submit", "kind": "allow_once"},
            {"optionId": "cancel", "name": "Cancel", "kind": "reject_once"},
        ],
        "toolCall": {"toolCallId": "call_1", "title": "Ask user 2 questions", "_meta": {"questions": asked}},
    }
    talk = Talk(profile)
    tool, question = data_of(talk.feed({"id": "x", "method": "session/request_permission", "params": params}))
    assert isinstance(tool, ToolStarted)
    assert isinstance(question, QuestionAsked)
    colours = [QuestionOption(label="Red", description="warm"), QuestionOption(label="Blue", description="cool")]
    sizes = [QuestionOption(label="S"), QuestionOption(label="L")]
    assert question.questions == [
        Question(id="0", text="Which colour?", header="Colour", options=colours),
        Question(id="1", text="Which sizes?", options=sizes, multiple=True),
    ]
    (ask,) = talk.translator.open_asks()
    answers: dict[str, Any] = {"0": "Blue", "1": ["S", "L"]}
    assert result_of(ask, AskDecided(ask=ask.ask, behaviour="answered", by="me", answers=answers)) == {
        "outcome": {"outcome": "selected", "optionId": "proceed_once"},
        "answers": {"0": "Blue", "1": "S, L"},
    }
    assert result_of(ask, AskDecided(ask=ask.ask, behaviour="deny", by="me")) == {
        "outcome": {"outcome": "selected", "optionId": "cancel"}
    }


def test_modes_commands_options_and_titles_are_told_when_they_change() -> None:
    talk = Talk()
    assert talk.update("current_mode_update", currentModeId="plan") == [SessionUpdated(mode="plan")]
    assert talk.update("current_mode_update", currentModeId="plan") == []
    assert talk.update("session_info_update", title="A title") == [SessionUpdated(title="A title")]
    assert talk.update("session_info_update", title=None, updatedAt="2026-01-01T00:00:00Z") == []
    groups = [{"group": "g", "name": "G", "options": [{"value": "a", "name": "A"}, {"value": "b", "name": "B"}]}]
    options = [{"id": "which", "category": "model", "type": "select", "currentValue": "b", "options": groups}]
    # It can be set now, which the session had not said.
    described, changed = talk.update("config_option_update", configOptions=options)
    models = [Choice(id="a", name="A"), Choice(id="b", name="B")]
    assert isinstance(described, SessionInitialized)
    assert (described.capabilities.model_switching, described.models) == (True, models)
    assert changed == SessionUpdated(model="b", models=models, config_options=options)
    assert talk.update("config_option_update", configOptions=[*options, {"id": "more"}]) == [
        SessionUpdated(config_options=[*options, {"id": "more"}])
    ]


def test_a_subagent_is_a_task_and_its_session_another() -> None:
    talk = Talk()
    assert talk.update("subagent_update", sessionId="child", title="Explore", state={"state": "running"}) == [
        TaskUpdated(task="child", kind="subagent", status="running", description="Explore")
    ]
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "child speaks"}}
    assert talk.feed({"method": "session/update", "params": {"sessionId": "child", "update": update}}) == []
    assert talk.update("session_message", messageId="m") == []


@pytest.mark.parametrize("kind", ["a_kind_of_next_year", None])
def test_an_unknown_kind_is_kept_as_unknown(kind: Any) -> None:
    (unknown,) = Talk().update(kind)
    assert unknown == NativeMessage(known=False, kind=f"session/update/{kind or '?'}", reason="unknown_update")


def test_a_plan_that_a_call_proposes_is_a_plan_and_its_options_decide() -> None:
    talk = Talk()
    call = {"toolCallId": "p", "kind": "switch_mode", "title": "Ready?", "rawInput": {"plan": "1. Do it"}}
    options = [{"optionId": "default", "name": "Yes", "kind": "allow_once"}]
    params = {"sessionId": "s", "toolCall": call, "options": options}
    *_, asked = data_of(talk.feed({"id": "x", "method": "session/request_permission", "params": params}))
    assert isinstance(asked, PlanProposed)
    assert asked.plan == "1. Do it"


def test_a_call_in_a_question_that_is_apart_is_no_tool_call_but_about_the_open_one() -> None:
    talk = Talk(Profile(apart=True))
    talk.update("tool_call", toolCallId="t", title="rm", kind="execute", status="in_progress")
    params = {
        "sessionId": "s",
        "toolCall": {"toolCallId": "confirmation-s", "title": "Sure?"},
        "options": [{"optionId": "n", "name": "No", "kind": "reject_once"}],
    }
    (asked,) = data_of(talk.feed({"id": "x", "method": "session/request_permission", "params": params}))
    assert isinstance(asked, PermissionRequested)
    assert (asked.tool, asked.title) == (talk.translator.state.tools["t"].item, "rm")
    talk.translator.sent({"id": "x", "result": {"outcome": {"outcome": "selected", "optionId": "n"}}})
    (ended,) = talk.update("tool_call_update", toolCallId="t", status="failed")
    assert isinstance(ended, ToolCompleted)
    assert ended.status == "rejected"


def test_a_question_that_is_apart_and_about_several_calls_names_none() -> None:
    talk = Talk(Profile(apart=True))
    for name in ("t", "u"):
        talk.update("tool_call", toolCallId=name, title="rm", kind="execute", status="in_progress")
    params = {"sessionId": "s", "toolCall": {"toolCallId": "confirmation-s", "title": "rm?"}, "options": []}
    asks = [data_of(talk.feed({"id": n, "method": "session/request_permission", "params": params})) for n in ("x", "y")]
    assert [[one.TYPE for one in data] for data in asks] == [["permission.requested"]] * 2
    assert asks[0] != asks[1], "it asks again under the same id, which is another ask"
    ended = talk.end()
    assert [one.TYPE for one in ended if one.TYPE.startswith("tool")] == ["tool.completed"] * 2
    assert sum(isinstance(one, AskWithdrawn) for one in ended) == 2


def test_a_form_is_its_questions() -> None:
    schema = {
        "type": "object",
        "properties": {
            "colour": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}]},
            "many": {"type": "array", "title": "Which", "items": {"type": "string", "enum": ["x", "y"]}},
            "sure": {"type": "boolean", "description": "Sure?"},
            "name": {"type": "string", "title": "Name", "description": "yours"},
        },
    }
    params = {"sessionId": "s", "mode": "form", "message": "Some questions", "requestedSchema": schema}
    (asked,) = data_of(Talk().feed({"id": 9, "method": "elicitation/create", "params": params}))
    assert isinstance(asked, QuestionAsked)
    assert asked.message == "Some questions"
    assert [(q.id, q.text, [o.label for o in q.options], q.multiple, q.free_text) for q in asked.questions] == [
        ("colour", "colour", ["Red", "Blue"], False, False),
        ("many", "Which", ["x", "y"], True, False),
        ("sure", "Sure?", ["yes", "no"], False, False),
        ("name", "Name: yours", [], False, True),
    ]


def test_an_address_to_visit_is_withdrawn_when_it_was_visited() -> None:
    talk = Talk()
    params = {"sessionId": "s", "mode": "url", "message": "Sign in", "url": "https://a.example/", "elicitationId": "e"}
    (asked,) = data_of(talk.feed({"id": 9, "method": "elicitation/create", "params": params}))
    assert isinstance(asked, QuestionAsked)
    assert asked.message == "Sign in\nhttps://a.example/"
    done = data_of(talk.feed({"method": "elicitation/complete", "params": {"elicitationId": "e"}}))
    assert done == [AskWithdrawn(ask=asked.ask, why="answered_elsewhere")]


def test_a_tool_call_that_is_told_again_after_its_end_says_nothing() -> None:
    talk = Talk()
    talk.update("tool_call", toolCallId="t", title="x", status="in_progress")
    (ended,) = talk.update("tool_call_update", toolCallId="t", status="completed", rawOutput="out")
    assert isinstance(ended, ToolCompleted)
    assert ended.content == [TextBlock(text="out")]
    assert talk.update("tool_call_update", toolCallId="t", status="completed") == []


def test_a_subagents_call_has_the_lane_of_the_call_that_runs_it() -> None:
    talk = Talk(Profile(parent_call="_meta.agent.parent"))
    talk.update("tool_call", toolCallId="parent", title="x", status="in_progress")
    update = {
        "sessionUpdate": "tool_call",
        "toolCallId": "child",
        "status": "in_progress",
        "_meta": {"agent": {"parent": "parent"}},
    }
    out = talk.feed({"method": "session/update", "params": {"sessionId": "s", "update": update}})
    (fact,) = [one for one in out if isinstance(one, Fact)]
    assert fact.lane == talk.translator.state.tools["parent"].item


def test_what_a_call_has_printed_is_shown_behind_its_description() -> None:
    talk = Talk()
    described = [{"type": "content", "content": {"type": "text", "text": "List the files"}}]
    talk.update("tool_call", toolCallId="t", title="ls", status="in_progress", content=described)
    (ended,) = talk.update("tool_call_update", toolCallId="t", status="completed", rawOutput="a.txt")
    assert isinstance(ended, ToolCompleted)
    assert ended.content == [TextBlock(text="List the files"), TextBlock(text="a.txt")]


def test_what_a_program_says_of_itself_as_a_message_is_passed_over_where_its_profile_says_so() -> None:
    talk = Talk(Profile(silent_chunk=r"\ASystem Prompt:"))
    assert talk.update("agent_message_chunk", content={"type": "text", "text": "System Prompt: you are"}) == []
    assert [one.TYPE for one in talk.end()] == ["turn.completed"]

"""What no recording holds: messages by the generated schema of 0.171.0, and the rules between them."""

from typing import Any

import pytest
from tests.unit.codex.recorded import feed, note, opened

from trunkline_agentkit import Fact, Out, Piece
from trunkline_wire.asks import PermissionRequested
from trunkline_wire.blocks import ImageBlock, TextBlock, ThinkingBlock
from trunkline_wire.session import SessionStatus, SessionUpdated
from trunkline_wire.turn import (
    MessageAssistant,
    MessageSystem,
    MessageUser,
    ToolCompleted,
    ToolStarted,
    TurnCompleted,
    TurnStarted,
)
from trunkline_wire.work import AuthUpdated, HookFired, NativeMessage, PlanUpdated, TaskUpdated, UsageUpdated


def begun(turn: str = "t1") -> dict[str, Any]:
    return note("turn/started", turn={"id": turn})


def ended(turn: str = "t1", status: str = "completed", **fields: Any) -> dict[str, Any]:
    return note("turn/completed", turn={"id": turn, "status": status, **fields})


def item(when: str, thread: str = "main", turn: str = "t1", **fields: Any) -> dict[str, Any]:
    return note(f"item/{when}", threadId=thread, turnId=turn, item=fields)


def data(out: list[Out], kind: type[Any]) -> list[Any]:
    return [one.data for one in out if isinstance(one, Fact) and isinstance(one.data, kind)]


def test_a_plan_of_steps() -> None:
    steps = [{"step": "one", "status": "completed"}, {"step": "two", "status": "inProgress"}, {"step": "three"}]
    (plan,) = data(feed(begun(), note("turn/plan/updated", turnId="t1", plan=steps)), PlanUpdated)
    assert [(entry.content, entry.status) for entry in plan.entries] == [
        ("one", "completed"),
        ("two", "in_progress"),
        ("three", "pending"),
    ]


def test_hooks() -> None:
    run = {"id": "h", "eventName": "preToolUse", "sourcePath": "/h.sh", "entries": [{"kind": "warning", "text": "no"}]}
    started = note("hook/started", run=run | {"status": "running", "entries": []})
    out = feed(started, note("hook/completed", run=run | {"status": "blocked"}))
    assert [(hook.hook_event, hook.status, hook.output) for hook in data(out, HookFired)] == [
        ("preToolUse", "started", None),
        ("preToolUse", "failed", "no"),
    ]


def test_a_rerouted_model() -> None:
    out = feed(note("model/rerouted", turnId="t1", fromModel="m", toModel="n", reason="highRisk"))
    assert [update.model for update in data(out, SessionUpdated)] == ["n"]
    assert data(out, MessageSystem)[0].text == "Codex uses n instead of m (highRisk)"


def test_limits_are_told_where_there_are_any() -> None:
    none = note("account/rateLimits/updated", rateLimits={"primary": None, "secondary": None})
    some = note("account/rateLimits/updated", rateLimits={"primary": {"usedPercent": 40}})
    assert feed(none) == []
    assert data(feed(some), UsageUpdated)[0].rate_limits == {"primary": {"usedPercent": 40}}


def test_signing_in() -> None:
    out = feed(
        note("account/updated", authMode="chatgpt"),
        note("mcpServer/oauthLogin/completed", name="lab", success=False, error="denied"),
    )
    assert [(auth.methods, auth.error) for auth in data(out, AuthUpdated)] == [(["chatgpt"], None), ([], "denied")]
    renewed = feed(
        note("modelProvider/authRecoveryStarted", message="renewing", turnId="t1"),
        note("modelProvider/authRecoveryCompleted", message="done", turnId="t1"),
    )
    assert [status.status for status in data(renewed, SessionStatus)] == ["authenticating", None]


def test_a_reviewer_of_codex_decides() -> None:
    review = {"status": "denied", "rationale": "risky"}
    said = note("item/autoApprovalReview/completed", turnId="t1", targetItemId="c", review=review)
    (notice,) = data(
        feed(note("item/autoApprovalReview/started", review={"status": "inProgress"}), said), MessageSystem
    )
    assert (notice.text, notice.level) == ("Codex's own reviewer: refused (risky)", "warning")


def test_access_to_the_network_is_asked_for() -> None:
    rules = [{"host": "example.org", "action": "allow"}, {"host": "example.org", "action": "deny"}]
    asked = {
        "id": 4,
        "method": "item/commandExecution/requestApproval",
        "params": {
            "threadId": "main",
            "turnId": "t1",
            "itemId": "c",
            "approvalId": "a",
            "networkApprovalContext": {"host": "example.org", "protocol": "https"},
            "proposedNetworkPolicyAmendments": rules,
        },
    }
    (ask,) = data(feed(begun(), asked), PermissionRequested)
    assert ask.title == "Network access to example.org"
    assert [(option.id, option.kind) for option in ask.options][2:4] == [
        ("network:0", "allow_always"),
        ("network:1", "reject_always"),
    ]


def test_a_call_that_asks_twice_has_two_asks() -> None:
    translator = opened()
    command = {"type": "commandExecution", "id": "c", "command": "ls", "status": "inProgress"}
    params = {"threadId": "main", "turnId": "t1", "itemId": "c"}
    ask = {"method": "item/commandExecution/requestApproval", "params": params}
    first = feed(begun(), item("started", **command), ask | {"id": 0}, translator=translator)
    translator.sent({"id": 0, "result": {"decision": "accept"}})
    feed(note("serverRequest/resolved", requestId=0), translator=translator)
    second = feed(ask | {"id": 1}, translator=translator)
    asks = {one.ask for one in data(first + second, PermissionRequested)}
    assert len(asks) == 2


def test_two_sub_agents_are_told_apart_by_their_prompts() -> None:
    def call(name: str) -> dict[str, Any]:
        return {"type": "collabAgentToolCall", "id": name, "tool": "spawnAgent", "prompt": f"prompt of {name}"}

    def prompt(thread: str, name: str) -> dict[str, Any]:
        content = [{"type": "text", "text": f"prompt of {name}"}]
        return item("completed", thread=thread, turn="s", type="userMessage", id="u", content=content)

    translator = opened()
    calls = feed(begun(), item("started", **call("one")), item("started", **call("two")), translator=translator)
    items = {
        fact.data.title: fact.item for fact in calls if isinstance(fact, Fact) and isinstance(fact.data, ToolStarted)
    }
    out = feed(prompt("b", "two"), prompt("a", "one"), translator=translator)
    assert [fact.lane for fact in out if isinstance(fact, Fact)] == [items["prompt of two"], items["prompt of one"]]


def test_the_end_of_a_call_says_for_certain_which_sub_agent_is_its_own() -> None:
    """Two with the same prompt can't be told apart by it: what follows the calls' ends is in the right lanes all the same."""

    def call(name: str, *threads: str) -> dict[str, Any]:
        ids = {"id": name, "receiverThreadIds": list(threads)}
        return {"type": "collabAgentToolCall", "tool": "spawnAgent", "prompt": "the same"} | ids

    def said(thread: str) -> dict[str, Any]:
        return item("completed", thread=thread, turn="s", type="agentMessage", id=f"m{thread}", text="done")

    translator = opened()
    calls = feed(begun(), item("started", **call("one")), item("started", **call("two")), translator=translator)
    one, two = [fact.item for fact in calls if isinstance(fact, Fact) and isinstance(fact.data, ToolStarted)]
    prompt = {"type": "userMessage", "id": "u", "content": [{"type": "text", "text": "the same"}]}
    early = [item("completed", thread=thread, turn="s", **prompt) for thread in ("b", "a")]
    ends = [item("completed", **call("one", "a")), item("completed", **call("two", "b"))]
    feed(*early, *ends, translator=translator)
    out = feed(said("b"), said("a"), translator=translator)
    assert [fact.lane for fact in out if isinstance(fact, Fact)] == [two, one]


def test_a_thread_that_is_none_of_the_sessions_is_not_told() -> None:
    stranger = item("completed", thread="other", type="agentMessage", id="m", text="hello")
    assert feed(begun(), stranger)[1:] == []


def test_activity_of_a_sub_agent_without_a_call() -> None:
    activity = {"type": "subAgentActivity", "id": "x", "kind": "started", "agentThreadId": "s", "agentPath": "/root/a"}
    out = feed(begun(), item("completed", **activity))
    (task,) = data(out, TaskUpdated)
    assert (task.task, task.status, task.description, task.name) == ("s", "running", "/root/a", "a")


def test_items_that_were_never_seen_in_a_run() -> None:
    image: dict[str, Any] = {
        "type": "imageGeneration",
        "id": "i",
        "status": "completed",
        "result": "QUJD",
        "revisedPrompt": "a cat",
    }
    output: dict[str, Any] = {"type": "functionCallOutput", "id": "f", "name": "look", "output": "seen"}
    hook: dict[str, Any] = {"type": "hookPrompt", "id": "h", "fragments": [{"hookRunId": "r", "text": "mind this"}]}
    rest: dict[str, Any] = {"type": "sleep", "id": "s", "durationMs": 5}
    out = feed(begun(), *[item("completed", **one) for one in (image, output, hook, rest)])
    assert [started.name for started in data(out, ToolStarted)] == ["image_generation", "look", "sleep"]
    assert [done.content for done in data(out, ToolCompleted)] == [
        [ImageBlock(media_type="image/png", data="QUJD")],
        [TextBlock(text="seen")],
        [],
    ]
    assert data(out, MessageUser)[0].content == [TextBlock(text="mind this")]


def test_reasoning_of_several_parts_keeps_its_blocks() -> None:
    place = {"turnId": "t1", "itemId": "r"}
    out = feed(
        begun(),
        item("started", type="reasoning", id="r"),
        note("item/reasoning/summaryTextDelta", summaryIndex=0, delta="a", **place),
        note("item/reasoning/summaryTextDelta", summaryIndex=1, delta="b", **place),
        note("item/reasoning/textDelta", contentIndex=0, delta="c", **place),
        item("completed", type="reasoning", id="r", summary=["a", "b"], content=["c"]),
    )
    pieces = [(one.block, one.text) for one in out if isinstance(one, Piece) and one.text]
    assert pieces == [(0, "a"), (1, "b"), (2, "c")]
    assert data(out, MessageAssistant)[0].content == [ThinkingBlock(text=said) for said in "abc"]


def test_a_background_command_is_told_when_it_ends() -> None:
    command = {"type": "commandExecution", "id": "c", "command": "sleep 9", "processId": "77"}
    out = feed(
        begun(),
        item("started", **command, status="inProgress"),
        ended(),
        item("completed", **command, status="failed", exitCode=3, aggregatedOutput="bad"),
    )
    assert [(task.task, task.status, task.summary) for task in data(out, TaskUpdated)] == [
        ("77", "running", None),
        ("77", "failed", "bad"),
    ]
    assert len(data(out, TurnStarted)) == 1, "what comes behind a turn's end begins no new one"


@pytest.mark.parametrize(
    ("info", "outcome", "code"),
    [
        ("cyberPolicy", "refused", "agent_failed"),
        ("sessionBudgetExceeded", "max_budget", "agent_failed"),
        ("unauthorized", "error", "agent_auth"),
        ("contextWindowExceeded", "error", "agent_failed"),
        ({"httpConnectionFailed": {"httpStatusCode": 401}}, "error", "agent_auth"),
        (None, "error", "agent_failed"),
    ],
)
def test_why_a_turn_failed(info: Any, outcome: str, code: str) -> None:
    failed = ended(status="failed", error={"message": "It failed.", "codexErrorInfo": info})
    (done,) = data(feed(begun(), failed), TurnCompleted)
    assert (done.outcome, done.error.code) == (outcome, code)
    assert done.error.message.startswith("It failed")


def test_an_unknown_item_is_drift() -> None:
    (kept,) = data(feed(begun(), item("completed", type="dream", id="d")), NativeMessage)
    assert (kept.known, kept.kind) == (False, "item/completed/dream")


@pytest.mark.parametrize("listed", ["completed", "inProgress"])
def test_an_end_that_comes_before_what_was_missed_waits_for_it(listed: str) -> None:
    translator = opened()
    begin = [begun(), item("started", type="agentMessage", id="m", text="")]
    feed(*begin, note("item/agentMessage/delta", turnId="t1", itemId="m", delta="so f"), translator=translator)
    translator.lose()
    assert feed(ended(), translator=translator) == []
    translator.sent({"id": 2, "method": "thread/turns/list", "params": {"threadId": "main"}})
    message = {"type": "agentMessage", "id": "m", "text": "so far so good", "completedAtMs": 1}
    turn = {"id": "t1", "status": listed, "items": [message]}
    out = feed({"id": 2, "result": {"data": [turn]}}, translator=translator)
    assert [(one.content, one.aborted) for one in data(out, MessageAssistant)] == [
        ([TextBlock(text="so far so good")], False)
    ]
    assert [(one.outcome, one.result) for one in data(out, TurnCompleted)] == [("success", "so far so good")]

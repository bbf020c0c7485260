"""Recorded traffic against expectations derived by hand, properties of all of it, and what no recording shows."""

from collections import Counter
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from tests.unit.a2a.recorded import RECORDINGS, compare, new_translator, replay_file
from tests.unit.claude.recorded import read

from trunkline_adapters.a2a.link import card_url
from trunkline_agentkit import Fact, Out
from trunkline_testkit.spoilt import shorter, wronged
from trunkline_wire import Data, TrunklineError
from trunkline_wire.asks import AskWithdrawn, PermissionRequested
from trunkline_wire.blocks import join_text
from trunkline_wire.session import SessionInitialized
from trunkline_wire.turn import MessageAssistant, ToolCompleted, TurnCompleted
from trunkline_wire.work import NativeMessage

CASES = sorted(path.parent for path in RECORDINGS.glob("*/expected.jsonl"))
ALL = sorted((RECORDINGS / "all").glob("*.jsonl.gz"))

Obj = dict[str, Any]


def _name(path: Path) -> str:
    return path.name.split(".jsonl")[0]


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_a_recording_gives_what_was_derived_from_it(case: Path) -> None:
    compare(case)


@pytest.mark.parametrize("path", ALL, ids=_name)
def test_nothing_raises_nothing_is_unknown_and_turns_and_tools_pair(path: Path) -> None:
    steps, translator = replay_file(path)
    running = False
    tools: Counter[tuple[str, str | None]] = Counter()
    for step in steps:
        for fact in step.facts:
            assert not (isinstance(fact.data, NativeMessage) and not fact.data.known), f"line {step.line}: {step.kind}"
            match fact.data.TYPE:
                case "turn.started" | "turn.completed" as kind:
                    assert running == (kind == "turn.completed")
                    running = not running
                case "tool.started" | "tool.completed" as kind:
                    tools[kind, fact.item] += 1
                    assert tools[kind, fact.item] == 1
                case _:
                    pass
    assert not running
    assert not translator.busy
    assert {item for kind, item in tools if kind == "tool.started"} == {
        item for kind, item in tools if kind == "tool.completed"
    }


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_every_message_survives_the_loss_and_the_change_of_any_field(case: Path) -> None:
    spoken = list(read(case / "native.jsonl"))
    translator = new_translator()
    for _, speaker, message in spoken:
        if speaker == "host":
            translator.sent(message)
            continue
        shown = {**message, "result": {**message.get("result", {}), "history": []}}
        for spoilt in [*shorter(shown), *wronged(shown, 9)]:
            deepcopy(translator).feed(spoilt)
        translator.feed(message)


# What no recording shows


def heard(*results: Obj, prompt: str = "cmd_1") -> list[Out]:
    translator = new_translator()
    translator.prompt(prompt)
    return [out for result in results for out in translator.feed({"jsonrpc": "2.0", "id": "1", "result": result})]


def all_of(out: list[Out], kind: type[Data]) -> list[Any]:
    return [one.data for one in out if isinstance(one, Fact) and isinstance(one.data, kind)]


def status(state: str, *parts: Obj, final: bool = False, **more: Any) -> Obj:
    message = {"message": {"role": "agent", "messageId": "m1", "parts": list(parts)}} if parts else {}
    return {"kind": "status-update", "taskId": "t", "status": {"state": state, **message}, "final": final, **more}


def part(said: str) -> Obj:
    return {"kind": "text", "text": said}


def test_an_agent_without_the_extension_speaks_in_whole_messages_and_artifacts() -> None:
    out = heard(
        {"kind": "task", "id": "t", "contextId": "c", "status": {"state": "submitted"}},
        status("working", part("I am at it.")),
        {"kind": "artifact-update", "taskId": "t", "artifact": {"artifactId": "a", "parts": [part("The result.")]}},
        status("completed", part("Done."), final=True),
    )
    assert [join_text(one.content) for one in all_of(out, MessageAssistant)] == ["I am at it.", "The result.", "Done."]
    assert [one.outcome for one in all_of(out, TurnCompleted)] == ["success"]


def test_an_agent_may_answer_with_a_message_and_no_task() -> None:
    out = heard({"kind": "message", "role": "agent", "messageId": "m", "parts": [part("Hello.")]})
    assert [join_text(one.content) for one in all_of(out, MessageAssistant)] == ["Hello."]
    assert [one.outcome for one in all_of(out, TurnCompleted)] == ["success"]


@pytest.mark.parametrize(
    ("state", "outcome", "code"),
    [
        ("failed", "error", "agent_failed"),
        ("auth-required", "error", "agent_auth"),
        ("rejected", "refused", None),
        ("of-next-year", "error", "agent_failed"),
    ],
)
def test_a_final_state_is_the_turns_outcome(state: str, outcome: str, code: str | None) -> None:
    coder = {"metadata": {"coderAgent": {"kind": "state-change"}}}
    ended = all_of(heard(status(state, part("so it is"), final=True, **coder)), TurnCompleted)[0]
    assert (ended.outcome, ended.error and ended.error.code) == (outcome, code)


def test_a_refused_request_ends_the_turn() -> None:
    translator = new_translator()
    translator.prompt("cmd_1")
    out = translator.feed({"jsonrpc": "2.0", "id": "1", "error": {"code": -32001, "message": "Task not found: x"}})
    (ended,) = all_of(out, TurnCompleted)
    assert (ended.outcome, ended.error.code) == ("error", "history_lost")
    assert translator.task is None


def call(state: str, **more: Any) -> Obj:
    data = {"request": {"callId": "c1", "name": "write_file", "args": {"file_path": "/a"}}, "status": state, **more}
    kind = "tool-call-confirmation" if state == "awaiting_approval" else "tool-call-update"
    return status("working", {"kind": "data", "data": data}, metadata={"coderAgent": {"kind": kind}})


def test_a_decision_of_somebody_else_withdraws_the_ask() -> None:
    shown = {"fileName": "a", "fileDiff": "+x"}
    out = heard(
        call("awaiting_approval", confirmationDetails={"type": "edit", "title": "Confirm Write", "fileDiff": "+x"}),
        call("executing"),
        call("success", response={"resultDisplay": shown}),
    )
    (asked,), (withdrawn,) = all_of(out, PermissionRequested), all_of(out, AskWithdrawn)
    assert (withdrawn.ask, withdrawn.why) == (asked.ask, "answered_elsewhere")
    assert [one.status for one in all_of(out, ToolCompleted)] == ["completed"]


def test_what_is_open_at_the_end_is_closed() -> None:
    translator = new_translator()
    translator.prompt("cmd_1")
    translator.feed({"result": {"kind": "task", "id": "t", "status": {"state": "submitted"}}})
    out = translator.feed({"result": call("awaiting_approval")})
    assert translator.asking
    translator.interrupting()
    out += translator.feed({"result": status("canceled", final=True)})
    assert [one.why for one in all_of(out, AskWithdrawn)] == ["interrupted"]
    assert [one.status for one in all_of(out, ToolCompleted)] == ["cancelled"]
    assert [one.outcome for one in all_of(out, TurnCompleted)] == ["interrupted"]


def test_a_task_that_is_taken_up_tells_nothing_of_its_past() -> None:
    translator = new_translator()
    history = [{"role": "agent", "parts": [part("long ago")]}]
    out = translator.feed(
        {
            "result": {
                "kind": "task",
                "id": "t",
                "contextId": "c",
                "status": {"state": "input-required"},
                "history": history,
            }
        }
    )
    assert [one.native_session for one in all_of(out, SessionInitialized)] == ["t"]
    assert len(out) == 1


@pytest.mark.parametrize(
    ("address", "card"),
    [
        ("http://127.0.0.1:41999", "http://127.0.0.1:41999/.well-known/agent-card.json"),
        ("http://localhost:1/agent/card.json", "http://localhost:1/agent/card.json"),
        ("http://[::1]:8080/", "http://[::1]:8080/.well-known/agent-card.json"),
    ],
)
def test_an_address_leads_to_its_card(address: str, card: str) -> None:
    assert card_url(address) == card


@pytest.mark.parametrize(
    "address", ["http://10.0.0.1:80", "https://agents.example", "ftp://127.0.0.1", "gemini", "http://me:pw@127.0.0.1"]
)
def test_an_address_elsewhere_is_refused(address: str) -> None:
    with pytest.raises(TrunklineError) as refused:
        card_url(address)
    assert refused.value.code == "bad_params"

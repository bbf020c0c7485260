"""Codex's rollouts as events: a real file against what was derived from it by hand, and the forms of older versions."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit import histories
from tests.unit.histories import RECORDINGS, SESSION, Told, compare, file_of, read

from trunkline_adapters.codex.adapter import CodexAdapter
from trunkline_wire.ids import item_id

ADAPTER = CodexAdapter({})
CASE = RECORDINGS / "codex" / "a-conversation"
THREAD = "01a22399-cab4-7412-900f-631272b5170c"


def tell(*lines: dict[str, Any] | bytes) -> Told:
    return histories.tell(ADAPTER, *lines)


def line(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-01-02T03:04:05.678Z", "type": kind, "payload": payload}


def test_a_rollout_gives_what_was_derived_from_it() -> None:
    compare(ADAPTER, CASE)
    assert read(ADAPTER, CASE).violations() == []


def test_a_summary_says_what_a_list_needs() -> None:
    summary = read(ADAPTER, CASE).summary
    assert (summary.cwd, summary.model, summary.version) == ("/home/dev/project", "scripted", "0.171.0")
    # 5 prompts; a thought, 3 answers and 2 announcements of the model
    assert (summary.title, summary.turns, summary.messages) == ("SCENARIO=thinking SAY=Alpha.", 5, 11)


def test_prompts_and_results_as_older_versions_wrote_them() -> None:
    shell = {"name": "shell", "arguments": '{"command": ["ls", "-l"]}', "call_id": "c1"}
    result = {"call_id": "c1", "output": '{"output": "a\\n", "metadata": {"exit_code": 2}}'}
    told = tell(
        line("event_msg", type="user_message", message="go", images=None),
        line("response_item", type="message", role="user", content=[{"type": "input_text", "text": "go"}]),
        line("response_item", type="function_call", **shell),
        line("response_item", type="function_call_output", **result),
        line("event_msg", type="agent_message", message="done"),
        line("response_item", type="message", role="assistant", content=[{"type": "output_text", "text": "done"}]),
    )
    kinds = ["turn.started", "message.user", "tool.started", "tool.completed", "message.assistant", "turn.completed"]
    assert told.types() == kinds
    assert told.data("tool.started")[0]["title"] == "ls -l"
    (tool,) = told.data("tool.completed")
    assert (tool["status"], tool["exit_code"], tool["content"]) == ("failed", 2, [{"type": "text", "text": "a\n"}])
    assert told.violations() == []


def test_malformed_lines_are_named_and_a_lost_call_is_joined() -> None:
    output = line("response_item", type="function_call_output", call_id="c9", output="found")
    told = tell(line("event_msg", type="user_message", message="go"), b'{"type": "resp', output)
    assert told.summary.malformed == ["2"]
    assert {entry.item for _, entry in told.entries if entry.data.TYPE.startswith("tool.")} == {
        item_id(SESSION, "native", "c9")
    }
    assert told.violations() == []


@pytest.mark.parametrize("wrong", [None, 7, "text", [], {}, [None], True])
def test_no_field_of_a_wrong_type_stops_a_reading(wrong: object) -> None:
    for raw in file_of(CASE).path.read_text().splitlines():
        found = json.loads(raw)
        for key in found["payload"]:
            assert tell({**found, "payload": {**found["payload"], key: wrong}}).summary.untranslated == []


def test_threads_are_found_without_those_of_subagents(tmp_path: Path) -> None:
    day = tmp_path / "sessions" / "2026" / "11" / "28"
    day.mkdir(parents=True)
    mine = day / f"rollout-2026-11-28T19-20-11-{THREAD}.jsonl"
    mine.write_text(json.dumps(line("session_meta", id=THREAD, source="cli")))
    other = day / f"rollout-2026-11-28T19-20-12-{THREAD.replace('0', '1')}.jsonl"
    other.write_text(json.dumps(line("session_meta", source={"subagent": {"thread_spawn": {}}})))
    (day / "rollout-note.jsonl").write_text("")
    found = CodexAdapter({"CODEX_HOME": str(tmp_path)}).histories()
    assert [(file.native, file.path) for file in found] == [(THREAD, mine)]

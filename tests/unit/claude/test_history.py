"""Claude Code's own session files as events: real files against what was derived from them by hand."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit import histories
from tests.unit.histories import SESSION, Told, compare, file_of

from trunkline_adapters.claude.adapter import ClaudeAdapter
from trunkline_wire.ids import item_id

RECORDINGS = histories.RECORDINGS / "claude"
ADAPTER = ClaudeAdapter({})
CASES = sorted(path for path in RECORDINGS.iterdir() if path.is_dir())
DERIVED = [case for case in CASES if (case / "expected.jsonl").is_file()]


def read(case: Path) -> Told:
    return histories.read(ADAPTER, case)


def tell(*lines: dict[str, Any] | bytes) -> Told:
    return histories.tell(ADAPTER, *lines)


@pytest.mark.parametrize("case", DERIVED, ids=lambda case: case.name)
def test_a_file_gives_what_was_derived_from_it(case: Path) -> None:
    compare(ADAPTER, case)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_file_is_a_whole_session(case: Path) -> None:
    """Turns and tools begin and end in pairs, no item is two things, and nothing is unknown."""
    told = read(case)
    assert "native.message" not in told.types()
    assert told.violations() == []
    assert len({entry.id for _, entry in told.entries}) == len(told.entries)


def test_reading_twice_gives_the_same_ids() -> None:
    case = RECORDINGS / "subagent"
    assert read(case).entries == read(case).entries


def test_a_summary_says_what_a_list_needs() -> None:
    summary = read(RECORDINGS / "asks-and-interrupts").summary
    assert summary.native == "423d197d-6066-4b78-983e-558241a255ad"
    assert (summary.cwd, summary.model, summary.version) == ("/home/dev/project", "claude-opus-5-5", "2.1.332")
    assert summary.title == "SCENARIO=bash CMD=touch forbidden"
    # 4 prompts, 2 notes of an interruption, 6 messages of the model
    assert (summary.turns, summary.messages) == (4, 12)
    assert (summary.began, summary.ended) == ("2026-11-28T19:01:38.947000Z", "2026-11-28T19:01:43.820000Z")
    assert (summary.malformed, summary.untranslated) == ([], [])


def user(uuid: str, content: Any, **fields: Any) -> dict[str, Any]:
    message = {"role": "user", "content": content}
    return {"type": "user", "uuid": uuid, "timestamp": "2026-01-02T03:04:05.678Z", "message": message} | fields


def model(uuid: str, *content: dict[str, Any], **fields: Any) -> dict[str, Any]:
    message = {"id": f"msg_{uuid}", "role": "assistant", "model": "m", "content": list(content)}
    return {"type": "assistant", "uuid": uuid, "timestamp": "2026-01-02T03:04:06Z", "message": message} | fields


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def call(id: str, **input: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "Task" if input else "Read", "input": input}


def result(id: str, said: str) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": id, "content": said}]


def test_malformed_and_truncated_lines_are_named_and_left_out() -> None:
    cut = json.dumps(model("b", text("whole"))).encode()[:-20]
    told = tell(user("a", "go"), b"{not json", b"[1]", model("c", text("said")), cut)
    assert told.summary.malformed == ["2", "3", "5"]
    assert told.types() == ["message.user", "turn.started", "message.assistant", "turn.completed"]
    assert told.data("turn.completed")[0]["outcome"] == "success"


def test_a_result_whose_call_was_lost_is_joined_to_a_call_all_the_same() -> None:
    told = tell(user("a", "go"), b"{lost", user("b", result("t1", "found")), model("c", text("done")))
    kinds = ["message.user", "turn.started", "tool.started", "tool.completed", "message.assistant", "turn.completed"]
    assert told.types() == kinds
    items = {entry.item for _, entry in told.entries if entry.data.TYPE.startswith("tool.")}
    assert items == {item_id(SESSION, "native", "t1")}
    assert told.data("tool.started")[0]["name"] == "unknown"


def test_a_file_that_ends_in_the_middle_of_a_call_ends_call_and_turn() -> None:
    told = tell(user("a", "go"), model("b", call("t1")))
    assert told.types()[-2:] == ["tool.completed", "turn.completed"]
    assert (told.data("tool.completed")[0]["status"], told.data("turn.completed")[0]["outcome"]) == (
        "cancelled",
        "aborted",
    )


def test_a_prompt_that_nothing_answered_is_an_aborted_turn() -> None:
    assert tell(user("a", "go")).data("turn.completed")[0]["outcome"] == "aborted"


def test_lines_that_stand_there_twice_are_told_once() -> None:
    told = tell(user("a", "go"), model("b", text("said")), user("a", "go"), model("b", text("said")))
    assert told.types() == ["message.user", "turn.started", "message.assistant", "turn.completed"]


def test_what_was_typed_while_a_turn_ran_belongs_to_it() -> None:
    queued = {
        "type": "attachment",
        "uuid": "q",
        "timestamp": "2026-01-02T03:04:07Z",
        "attachment": {"type": "queued_command", "prompt": "and be brief", "commandMode": "prompt"},
    }
    told = tell(user("a", "go"), model("b", call("t1")), user("c", result("t1", "x")), queued, model("d", text("ok")))
    first, second = told.data("message.user")
    assert (first["delivery"], second["delivery"]) == ("sent", "steered")
    assert second["content"] == [{"type": "text", "text": "and be brief"}]
    assert told.types().count("turn.started") == 1


def test_a_subagents_lines_in_the_sessions_own_file_are_in_its_lane() -> None:
    """As CLIs up to 2.0 wrote them: without the call, but for the prompt."""
    told = tell(
        user("a", "go"),
        model("b", call("t1", prompt="look")),
        user("c", "look", isSidechain=True, parentUuid=None),
        model("d", text("seen"), isSidechain=True, parentUuid="c"),
        user("e", result("t1", "seen")),
        model("f", text("done")),
    )
    lane = item_id(SESSION, "native", "t1")
    lanes = [entry.lane for _, entry in told.entries if entry.data.TYPE.startswith("message.")]
    assert lanes == [None, None, lane, lane, None]
    assert told.types().count("turn.started") == 1


def test_titles_come_from_the_file_and_notes_of_the_cli_are_none() -> None:
    named = {"type": "custom-title", "customTitle": "Marmots", "sessionId": "native"}
    meta = user("a", "Caveat: …", isMeta=True)
    command = user("b", "<command-name>/model</command-name>")
    told = tell(meta, command, user("c", "First words"), named)
    assert told.summary.title == "Marmots"
    assert told.reading.first_prompt == "First words"
    assert [data["synthetic"] for data in told.data("message.user")] == [True, False]


def test_unknown_lines_are_kept_and_marked() -> None:
    told = tell({"type": "novelty", "uuid": "n"}, {"type": "system", "subtype": "novelty", "uuid": "o"})
    kinds = [(data["kind"], data["known"]) for data in told.data("native.message")]
    assert kinds == [("history/novelty", False), ("history/system/novelty", False)]


@pytest.mark.parametrize("wrong", [None, 7, "text", [], {}, [None], True])
def test_no_field_of_a_wrong_type_stops_a_reading(wrong: object) -> None:
    kinds: dict[str, dict[str, Any]] = {}
    for case in CASES:
        for raw in file_of(case).path.read_text().splitlines():
            line = json.loads(raw)
            kinds[f"{line['type']} {line.get('subtype')} {'toolUseResult' in line}"] = line
    assert len(kinds) > 9
    for line in kinds.values():
        for key in line:
            assert tell({**line, key: wrong}).summary.untranslated == []


def test_files_are_found_below_the_configuration_directory(tmp_path: Path) -> None:
    directory = tmp_path / ".claude" / "projects" / "-home-dev"
    (directory / "one" / "subagents").mkdir(parents=True)
    for name in ("one.jsonl", "two.jsonl", "agent-1.jsonl", "one/subagents/agent-2.jsonl", "note.txt"):
        (directory / name).write_text("")
    found = ClaudeAdapter({"HOME": str(tmp_path)}).histories()
    assert [(file.native, file.path.name) for file in found] == [("one", "one.jsonl"), ("two", "two.jsonl")]
    moved = ClaudeAdapter({"HOME": "/nowhere", "CLAUDE_CONFIG_DIR": str(tmp_path / ".claude")})
    assert moved.histories() == found

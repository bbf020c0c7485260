"""Gemini CLI's own chat files as events: real files against what was derived from them by hand."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.unit import histories
from tests.unit.histories import SESSION, Told, compare

from trunkline_adapters.acp import gemini_leftovers
from trunkline_adapters.acp.adapter import AcpAdapter
from trunkline_agentkit.history import HistoryFile
from trunkline_wire.ids import item_id

RECORDINGS = histories.RECORDINGS / "gemini"
CASES = sorted(path for path in RECORDINGS.iterdir() if path.is_dir())
ADAPTER = AcpAdapter({})
HEADLESS = "bceddc09-b2d0-487d-b031-323658cdae6a"


def found(root: Path) -> list[HistoryFile]:
    return AcpAdapter({"HOME": str(root)}).histories("gemini")


def at_home(tmp_path: Path, case: str = "headless") -> Path:
    """A home with the recorded files, and the directory of the chats in it."""
    project = tmp_path / ".gemini" / "tmp" / "project"
    shutil.copytree(RECORDINGS / case, project)
    return project / "chats"


def read(file: HistoryFile) -> Told:
    return Told(ADAPTER, ADAPTER.history_lines(file), file.native)


def tell(*lines: dict[str, Any] | bytes) -> Told:
    return histories.tell(ADAPTER, *lines)


def user(id: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"id": id, "timestamp": "2026-01-02T03:04:05.678Z", "type": "user", "content": content} | fields


def model(id: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"id": id, "timestamp": "2026-01-02T03:04:06.000Z", "type": "gemini", "content": content} | fields


HEAD = {"sessionId": "native", "projectHash": "x", "startTime": "2026-01-02T03:04:05.000Z", "kind": "main"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_files_give_what_was_derived_from_them(case: Path) -> None:
    compare(ADAPTER, case)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_file_is_a_whole_session(case: Path, tmp_path: Path) -> None:
    at_home(tmp_path, case.name)
    (file,) = found(tmp_path)
    told = read(file)
    assert "native.message" not in told.types()
    assert told.violations() == []
    assert len({entry.id for _, entry in told.entries}) == len(told.entries)
    assert told.entries == read(file).entries


def test_a_session_of_several_files_is_one_with_its_directory_and_the_agents_name(tmp_path: Path) -> None:
    at_home(tmp_path)
    (file,) = found(tmp_path)
    assert (file.native, file.agent, file.path.name) == (HEADLESS, "gemini", "session-2026-11-28T22-10-bceddc09.jsonl")
    summary = read(file).summary
    assert (summary.cwd, summary.model, summary.title) == (
        "/home/dev/project",
        "gemini-3.1-pro-preview",
        "SAY=Alpha beta gamma.",
    )
    # 8 prompts, 9 messages of the model, 2 of a subagent and 2 to it
    assert (summary.turns, summary.messages) == (8, 21)


def test_what_comes_to_a_second_file_is_read_behind_the_first(tmp_path: Path) -> None:
    chats = at_home(tmp_path)
    first, second = sorted(chats.glob("*.jsonl"))
    lines = first.read_text().splitlines(keepends=True)
    first.write_text("".join(lines[:60]))
    second.write_text(second.read_text() + "".join(lines[60:]))
    (file,) = found(tmp_path)
    told = read(file)
    assert (told.summary.turns, told.summary.messages) == (8, 21)
    assert told.entries[-2][0] == f"{second.name}:13"


def test_an_object_of_an_older_version_is_read_like_lines(tmp_path: Path) -> None:
    chats = tmp_path / ".gemini" / "tmp" / "abcdef" / "chats"
    chats.mkdir(parents=True)
    messages = [user("u", "Hello"), model("m", "Hi.")]
    (chats / "session-2026-01-02T03-04-0a0b0c0d.json").write_text(
        json.dumps(HEAD | {"sessionId": "0a0b0c0d-1", "messages": messages, "summary": "A greeting"})
    )
    (file,) = found(tmp_path)
    told = read(file)
    assert told.types() == ["turn.started", "message.user", "message.assistant", "turn.completed"]
    assert (told.summary.native, told.summary.title, told.summary.cwd) == ("0a0b0c0d-1", "A greeting", None)
    assert [place for place, _ in told.entries] == ["2", "2", "3", "end"]


@pytest.mark.parametrize("name", ["session-2026-01-02T03-04-0a0b0c0d.json", "session-2026-01-02T03-04-0a0b0c0d.jsonl"])
def test_a_broken_file_is_found_and_said_to_be_malformed(tmp_path: Path, name: str) -> None:
    chats = tmp_path / ".gemini" / "tmp" / "project" / "chats"
    chats.mkdir(parents=True)
    (chats / name).write_text('{"sessionId": "0a0b')
    (file,) = found(tmp_path)
    assert file.native == "session-2026-01-02T03-04-0a0b0c0d"
    told = read(file)
    assert (told.entries, told.summary.malformed, told.summary.turns) == ([], ["1"], 0)


def test_a_line_that_was_cut_off_is_reported_and_the_rest_is_told(tmp_path: Path) -> None:
    chats = at_home(tmp_path, "asks")
    (path,) = chats.glob("*.jsonl")
    text = path.read_text().splitlines(keepends=True)
    path.write_text("".join(text[:24]) + text[25][:30])
    (file,) = found(tmp_path)
    told = read(file)
    assert told.summary.malformed == ["25"]
    assert (told.summary.turns, told.data("turn.completed")[-1]["outcome"]) == (3, "success")
    assert told.violations() == []


def test_other_files_beside_a_session_are_none(tmp_path: Path) -> None:
    chats = at_home(tmp_path, "asks")
    (path,) = chats.glob("*.jsonl")
    shutil.copy(path, f"{path}.unreadable-1")
    shutil.copy(path, f"{path}.tmp-1")
    (chats / "session-2026-11-28T21-54-77777777.jsonl").write_text(json.dumps(HEAD | {"kind": "subagent"}))
    assert len(found(tmp_path)) == 1


def test_calls_are_joined_to_results_however_often_they_stand_there() -> None:
    call = {"id": "c", "name": "read_file", "args": {"absolute_path": "/x/y"}}
    answer = {"functionResponse": {"id": "c", "name": "read_file", "response": {"output": "text"}}}
    done = call | {"status": "success", "result": [answer]}
    told = tell(
        HEAD,
        user("u", [{"text": "Read."}]),
        model("m", "Yes.", toolCalls=[call | {"status": "executing"}]),
        model("m", "Yes.", toolCalls=[done]),
        user("r", [answer]),
        {"$set": {"messages": [user("u", "Read."), model("m", [{"text": "Yes."}, {"functionCall": call}])]}},
        model("m", "Yes.", toolCalls=[done]),
    )
    assert told.types() == [
        "turn.started",
        "message.user",
        "message.assistant",
        "tool.started",
        "tool.completed",
        "turn.completed",
    ]
    (begun,), (ended,) = told.data("tool.started"), told.data("tool.completed")
    assert (begun["kind"], begun["locations"][0]["path"]) == ("read", "/x/y")
    assert (ended["status"], ended["content"]) == ("completed", [{"type": "text", "text": "text"}])
    assert {entry.item for _, entry in told.entries if entry.data.TYPE.startswith("tool.")} == {
        item_id(SESSION, "native", "c")
    }


def test_a_call_without_a_result_ends_with_its_turn() -> None:
    call = {"id": "c", "name": "glob", "args": {}, "status": "executing"}
    told = tell(HEAD, user("u", "Look."), model("m", "", toolCalls=[call]), user("v", "And now?"), model("n", "Well."))
    assert told.data("tool.completed")[0]["status"] == "cancelled"
    assert [end["outcome"] for end in told.data("turn.completed")] == ["aborted", "success"]
    assert told.violations() == []


def test_an_error_that_ends_a_turn_is_its_outcome() -> None:
    told = tell(
        HEAD,
        user("u", "One"),
        {"id": "e", "type": "error", "timestamp": "2026-01-02T03:04:06Z", "content": "[API Error: quota]"},
        user("v", "Two"),
        {"id": "f", "type": "warning", "timestamp": "2026-01-02T03:04:07Z", "content": "slow"},
        model("m", "Fine.", tokens={"input": 10, "cached": 4, "output": 2, "thoughts": 3}),
    )
    first, second = told.data("turn.completed")
    assert (first["outcome"], first["error"]["message"]) == ("error", "[API Error: quota]")
    assert second["outcome"] == "success"
    usage = {key: second["usage"][key] for key in ("input", "cache_read", "output", "reasoning")}
    assert usage == {"input": 6, "cache_read": 4, "output": 5, "reasoning": 3}
    assert [note["level"] for note in told.data("message.system")] == ["error", "warning"]


def test_what_the_program_says_to_the_model_is_no_prompt() -> None:
    told = tell(
        HEAD, user("a", "<session_context>x"), user("b", "/help"), {"$rewindTo": "a"}, {"$set": {"summary": "S"}}
    )
    assert told.types() == ["message.user", "message.system"]
    assert told.data("message.user")[0]["synthetic"]
    assert (told.summary.turns, told.summary.title) == (0, "S")


def test_what_nobody_knows_is_kept_as_it_is() -> None:
    told = tell(
        HEAD, {"colour": "red"}, {"id": "x", "type": "dance"}, b"[]", user("u", [7, {"inlineData": 3}, {"text": 5}])
    )
    assert told.types() == ["native.message", "native.message", "turn.started", "message.user", "turn.completed"]
    assert {block["type"] for block in told.data("message.user")[0]["content"]} == {"code"}
    assert told.summary.malformed == ["4"]
    assert told.summary.untranslated == []


CONTEXT = user("m0", [{"text": "<session_context>\nToday is Friday."}])


def test_a_file_without_a_word_is_removed_where_the_session_has_another(tmp_path: Path) -> None:
    chats = tmp_path / ".gemini" / "tmp" / "project" / "chats"
    chats.mkdir(parents=True)

    def write(minute: str, native: str, *lines: dict[str, Any]) -> str:
        name = f"session-2026-01-02T03-{minute}-{native[:8]}.jsonl"
        (chats / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
        return name

    head = HEAD | {"sessionId": "12345678-a"}
    said = write("01", "12345678-a", head, {"$set": {"messages": [CONTEXT]}}, user("m1", [{"text": "hello"}]))
    write("02", "12345678-a", head)
    write("03", "12345678-a", head, {"$set": {"messages": [CONTEXT]}}, {"$set": {"lastUpdated": "x"}})
    answered = write("04", "12345678-a", head, {"$set": {"messages": [CONTEXT, model("m2", "hi")]}})
    broken = write("05", "12345678-a", head)
    with (chats / broken).open("a") as file:
        file.write("{")
    other = write("06", "12345678-b", HEAD | {"sessionId": "12345678-b"})
    alone = write("07", "87654321-c", HEAD | {"sessionId": "87654321-c"})
    for native in ("12345678-a", "87654321-c", "none"):
        gemini_leftovers.remove({"HOME": str(tmp_path)}, native)
    assert {path.name for path in chats.iterdir()} == {said, answered, broken, other, alone}

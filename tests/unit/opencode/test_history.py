"""What OpenCode keeps of its sessions as events: real answers of its server against what was derived from them by hand."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit import histories
from tests.unit.histories import Told

from trunkline_adapters.opencode.adapter import OpenCodeAdapter
from trunkline_agentkit.history import HistoryFile, Line

RECORDINGS = histories.RECORDINGS / "opencode"
CASES = sorted(path for path in RECORDINGS.iterdir() if path.is_dir())
ADAPTER = OpenCodeAdapter({})
TIME = 1_767_323_045_678
"""2026-01-02T03:04:05.678Z"""


def lines_of(file: HistoryFile) -> list[Line]:
    lines = file.path.read_bytes().splitlines()
    return [Line(1, line, json.loads(line).get("info", {}).get("id", "")) for line in lines]


def tell(*lines: dict[str, Any] | bytes) -> Told:
    return histories.tell(ADAPTER, *lines)


def user(id: str, *parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"info": {"id": id, "role": "user", "time": {"created": TIME}} | fields, "parts": list(parts)}


def model(id: str, *parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    info = {"id": id, "role": "assistant", "time": {"created": TIME, "completed": TIME + 1000}} | fields
    return {"info": info, "parts": list(parts)}


def text(said: str, **fields: Any) -> dict[str, Any]:
    return {"id": f"prt_{said}", "type": "text", "text": said} | fields


def call(id: str, status: str, **state: Any) -> dict[str, Any]:
    body = {"status": status, "input": {"command": "ls"}, "time": {"start": TIME}} | state
    return {"id": id, "type": "tool", "tool": "bash", "callID": f"call_{id}", "state": body}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_answers_give_what_was_derived_from_them(case: Path) -> None:
    file = histories.file_of(case)
    told = Told(ADAPTER, lines_of(file), file.native)
    histories.compare_told(told, case)
    assert told.violations() == []
    assert "native.message" not in told.types()
    assert len({entry.id for _, entry in told.entries}) == len(told.entries)


def test_a_session_says_what_a_list_needs() -> None:
    file = histories.file_of(RECORDINGS / "a-conversation")
    summary = Told(ADAPTER, lines_of(file), file.native).summary
    assert (summary.cwd, summary.title, summary.model) == ("/home/dev/project", "Scripted answer", "scripted/scripted")
    assert (summary.version, summary.turns) == ("1.18.33", 8)


def test_a_turn_that_never_ended_and_its_call_end_with_the_next_prompt() -> None:
    told = tell(
        user("u", text("Look.")),
        model("m", call("c", "running"), time={"created": TIME}),
        user("v", text("And now?")),
        model("n", text("Well.")),
    )
    assert told.data("tool.completed")[0]["status"] == "cancelled"
    assert [end["outcome"] for end in told.data("turn.completed")] == ["aborted", "success"]
    assert told.violations() == []


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        ({"name": "MessageAbortedError", "data": {"message": "Aborted"}}, "interrupted"),
        ({"name": "ContentFilterError", "data": {"message": "No"}}, "refused"),
        ({"name": "APIError", "data": {"message": "quota"}}, "error"),
    ],
)
def test_an_error_of_the_last_message_is_the_turns_outcome(error: dict[str, Any], outcome: str) -> None:
    told = tell(user("u", text("One")), model("m", text("Partly"), error=error))
    assert told.data("turn.completed")[0]["outcome"] == outcome


def test_an_error_that_the_model_got_over_is_none() -> None:
    error = {"name": "APIError", "data": {"message": "quota"}}
    told = tell(user("u", text("One")), model("m", error=error), model("n", text("Done")))
    assert told.data("turn.completed")[0]["outcome"] == "success"


def test_a_compaction_in_mid_turn_goes_on_with_the_turn() -> None:
    told = tell(
        user("u", text("One")),
        model("m", text("Partly")),
        user("c", {"id": "p", "type": "compaction", "auto": True}),
        model("s", text("The summary"), summary=True),
        user("g", text("Continue if you have next steps", synthetic=True)),
        model("n", text("Done")),
    )
    assert told.types().count("turn.started") == 1
    assert told.data("session.compacted")[0]["trigger"] == "auto"
    assert [said["synthetic"] for said in told.data("message.user")] == [False, True]


def test_lines_that_are_none_are_reported_or_kept() -> None:
    told = tell(
        {"session": {"id": "x"}}, {"info": {"role": "dancer"}}, b"{", {"call": "{", "info": {}}, user("u", text("One"))
    )
    assert told.summary.malformed == ["3"]
    assert told.summary.untranslated == ["4"]
    assert told.types() == ["native.message", "native.message", "turn.started", "message.user", "turn.completed"]

"""A program's own log: lines as Claude, Codex and Gemini write them, shortened; which file is whose."""

import json
from pathlib import Path
from typing import Any

import pytest

from trunkline_adapters.pty.log import LOOK_EVERY_S, LogReader, said_by
from trunkline_adapters.pty.profiles import PROFILES, Log


def log_of(name: str) -> Log:
    log = PROFILES.shipped[name].log
    assert log is not None
    return log


CLAUDE = "projects/-a-project/1.jsonl"


def asked(said: str) -> dict[str, Any]:
    return {"type": "user", "message": {"role": "user", "content": said}}


def told(said: str) -> dict[str, Any]:
    return {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": said}]}}


def write(path: Path, *lines: dict[str, Any], end: str = "\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines).removesuffix("\n") + end)


class Reading:
    """A reader of Claude's log, whose clock goes on with each look."""

    def __init__(self, home: Path) -> None:
        self.reader = LogReader(log_of("claude"), {"HOME": str(home / "nobody"), "CLAUDE_CONFIG_DIR": str(home)})
        self._at = 0.0

    def news(self) -> list[str]:
        self._at += LOOK_EVERY_S
        return self.reader.news(self._at)


@pytest.mark.parametrize(
    ("program", "line", "user", "agent"),
    [
        ("claude", asked("hi"), "hi", None),
        ("claude", told("Hello."), None, "Hello."),
        ("claude", {"type": "assistant", "message": {"content": [{"type": "tool_use", "name": "Bash"}]}}, None, ""),
        ("claude", {"type": "system", "subtype": "turn_duration"}, None, None),
        (
            "codex",
            {"type": "response_item", "payload": {"type": "message", "role": "user", "content": [{"text": "hi"}]}},
            "hi",
            None,
        ),
        (
            "codex",
            {
                "type": "response_item",
                "payload": {"type": "message", "role": "assistant", "content": [{"text": "Hello."}]},
            },
            None,
            "Hello.",
        ),
        ("codex", {"type": "event_msg", "payload": {"type": "task_complete"}}, None, None),
        ("codex", {"type": "event_msg", "payload": "?"}, None, None),
        ("gemini", {"id": "1", "type": "user", "content": [{"text": "hi"}]}, "hi", None),
        ("gemini", {"id": "2", "type": "gemini", "content": "Hello."}, None, "Hello."),
        ("gemini", {"$set": {"lastUpdated": "now"}}, None, None),
    ],
)
def test_whose_a_line_is(program: str, line: dict[str, Any], user: str | None, agent: str | None) -> None:
    log = log_of(program)
    assert (said_by(log.user, line), said_by(log.agent, line)) == (user, agent)


def test_what_follows_the_prompt_is_told_once(tmp_path: Path) -> None:
    file = tmp_path / CLAUDE
    write(file, asked("hi"), told("of a turn before"))
    reading = Reading(tmp_path)
    reading.reader.begin("hi")
    assert reading.news() == []
    write(file, asked("hi"))
    assert reading.news() == []
    write(file, told("One."), told("half"), end="")
    assert reading.news() == ["One."]
    write(file, {}, told("Three."))
    assert reading.news() == ["Three."]
    assert reading.news() == []
    # Another file, as after `/clear`.
    reading.reader.begin("and\nnow?")
    write(tmp_path / "projects/-a-project/2.jsonl", asked("and now?"), told("Four."))
    assert reading.news() == ["Four."]


def test_a_line_that_is_being_written_waits(tmp_path: Path) -> None:
    file = tmp_path / CLAUDE
    reading = Reading(tmp_path)
    reading.reader.begin("hi")
    write(file, asked("hi"), told("One."), end="")
    assert reading.news() == []
    with file.open("a") as more:
        more.write("\n")
    assert reading.news() == ["One."]


def test_a_prompt_in_two_files_is_nobodys(tmp_path: Path) -> None:
    reading = Reading(tmp_path)
    reading.reader.begin("hi")
    write(tmp_path / CLAUDE, asked("hi"), told("mine?"))
    write(tmp_path / "projects/-a-project/2.jsonl", asked("hi"), told("or mine?"))
    assert reading.news() == []


def test_it_looks_four_times_a_second(tmp_path: Path) -> None:
    reader = LogReader(log_of("claude"), {"HOME": str(tmp_path)})
    reader.begin("hi")
    assert reader.news(1.0) == []
    write(tmp_path / ".claude" / CLAUDE, asked("hi"), told("One."))
    assert reader.news(1.1) == []
    assert reader.news(1.0 + LOOK_EVERY_S) == ["One."]


def test_a_message_that_is_told_again_is_the_same(tmp_path: Path) -> None:
    reader = LogReader(log_of("gemini"), {"HOME": str(tmp_path)})
    reader.begin("hi")
    said = {"id": "2", "type": "gemini", "content": "Hello."}
    write(
        tmp_path / ".gemini/tmp/x/chats/session-1.jsonl",
        {"id": "1", "type": "user", "content": "hi"},
        said,
        said | {"toolCalls": []},
        {"id": "3", "type": "gemini", "content": "Hello."},
    )
    assert reader.news(1.0) == ["Hello.", "Hello."]


@pytest.mark.parametrize(
    "content", [b"", b"\n\n", b"\xff\xfe{\n", b'{"type": "user"\n', b"[1]\n" * 3, bytes(range(256)) * 20]
)
def test_garbage_is_nothing(tmp_path: Path, content: bytes) -> None:
    reading = Reading(tmp_path)
    reading.reader.begin("hi")
    (tmp_path / CLAUDE).parent.mkdir(parents=True)
    (tmp_path / CLAUDE).write_bytes(content)
    assert reading.news() == []

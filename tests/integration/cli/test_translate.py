"""Recordings through an adapter's translator: the events on the output, what was not understood beside it."""

import json
from pathlib import Path

import pytest

from trunkline_cli.root import run


def recording(path: Path, *messages: object) -> str:
    lines = [{"from": "meta", "t": 0, "msg": {}}]
    lines += [{"from": "agent", "t": number, "msg": message} for number, message in enumerate(messages, 1)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


GOOD = {"type": "message", "message": "m1", "text": "hello"}


def test_events_of_a_recording_are_printed_in_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = recording(tmp_path / "n.jsonl", GOOD, {**GOOD, "message": "m2", "text": "again"})
    assert run(["translate", "--adapter", "demo", path]) == 0
    first = capsys.readouterr().out
    events = [json.loads(line) for line in first.splitlines()]
    texts = [e["data"]["content"][0]["text"] for e in events if e["type"] == "message.assistant"]
    assert texts == ["hello", "again"]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert run(["translate", "--adapter", "demo", path]) == 0
    assert capsys.readouterr().out == first


def test_an_unknown_type_is_noted_and_with_strict_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = recording(tmp_path / "n.jsonl", GOOD, {"type": "novelty"})
    assert run(["translate", "--adapter", "demo", path]) == 0
    told = capsys.readouterr()
    assert f"{path}:3: untranslated: novelty (unknown_type)" in told.err
    assert json.loads(told.out.splitlines()[-1])["type"] == "native.message"
    assert run(["translate", "--adapter", "demo", "--strict", path]) == 1


def test_a_line_that_breaks_the_translator_or_is_no_object_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recording(tmp_path / "n.jsonl", GOOD, "a banner", {"type": "message"})
    assert run(["translate", "--adapter", "demo", path]) == 1
    told = capsys.readouterr().err
    assert f"{path}:3: unreadable" in told
    assert f"{path}:4: untranslated: message (translate_error" in told


def test_what_is_no_recording_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "n.jsonl"
    path.write_text("hello\n")
    assert run(["translate", "--adapter", "demo", str(path)]) == 1
    assert capsys.readouterr().err.startswith("error: bad_params:")
    assert run(["translate", "--adapter", "nobody", str(path)]) == 1
    assert capsys.readouterr().err.startswith("error: unknown_adapter:")

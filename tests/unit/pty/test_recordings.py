"""Recorded terminals against expectations derived by hand, and what holds for all of them."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.pty.recorded import CASES

from trunkline_adapters.pty.adapter import PtyAdapter
from trunkline_agentkit.replay import translate
from trunkline_wire import Event, encode
from trunkline_wire.blocks import join_text, text_of
from trunkline_wire.turn import MessageAssistant, TerminalScreen


def _name(case: Path) -> str:
    return case.name


def _events(case: Path) -> list[Event]:
    events, problems = translate(PtyAdapter({}), case / "native.cast")
    assert problems == []
    return events


def test_there_are_recordings_of_three_programs() -> None:
    assert [case.name for case in CASES] == ["aider", "claude", "gemini"]


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_a_recording_gives_what_was_derived_from_it(case: Path) -> None:
    expected = [json.loads(line) for line in (case / "expected.jsonl").read_text().splitlines()]
    found = [event for event in _events(case) if not isinstance(event.data, TerminalScreen)]
    assert [event.type for event in found] == [one["type"] for one in expected]
    for event, want in zip(found, expected, strict=True):
        data: dict[str, Any] = json.loads(encode(event.data))
        assert {name: data.get(name) for name in want.get("data", {})} == want.get("data", {})
        if isinstance(event.data, MessageAssistant):
            said = join_text(event.data.content)
            assert said == want.get("text", said)
            assert said.startswith(want.get("begins", ""))


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_all_that_was_recorded_is_in_the_recordings_of_the_log(case: Path) -> None:
    """Output and input, in order, each once; times go on in each part from its beginning."""

    def told(lines: list[str]) -> list[tuple[str, str]]:
        return [(entry[1], entry[2]) for entry in map(json.loads, lines) if isinstance(entry, list)]

    screens = [event.data for event in _events(case) if isinstance(event.data, TerminalScreen)]
    parts = [text_of(screen.recording).splitlines() for screen in screens]
    assert all(json.loads(part[0])["version"] == 2 for part in parts)
    assert [one for part in parts for one in told(part)] == told((case / "native.cast").read_text().splitlines())

"""The model client against sequences written by hand."""

import json
from pathlib import Path

import pytest

from trunkline_testkit.model_client import ModelClient

CASES = sorted((Path(__file__).parents[2] / "recordings" / "resume").glob("*.json"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_sequence_of_frames_ends_in_what_the_case_says(path: Path) -> None:
    case = json.loads(path.read_text())
    client = ModelClient(gapless=case["gapless"])
    for frame in case["frames"]:
        client.feed(frame)
    state = json.loads(json.dumps(client.state()))
    assert {name: state[name] for name in case["expected"]} == case["expected"]


def test_there_are_cases() -> None:
    assert len(CASES) > 10

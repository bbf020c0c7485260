"""Recorded traffic against expectations derived by hand, and properties that hold for all of it."""

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest
from tests.unit.claude.recorded import RECORDINGS, compare, new_translator, pieces_and_blocks, replay_file

from trunkline_adapters.claude.native import KNOWN, REPEATING
from trunkline_agentkit import Fact
from trunkline_testkit.spoilt import shorter, wronged
from trunkline_wire.work import NativeMessage

CASES = sorted(path.parent for path in RECORDINGS.glob("*/expected.jsonl"))
ALL = sorted((RECORDINGS / "all").glob("*.jsonl.gz"))
TYPES = RECORDINGS / "all" / "message-types.json.gz"


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_a_recording_gives_what_was_derived_from_it(case: Path) -> None:
    compare(case)


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name.split(".jsonl")[0])
def test_nothing_raises_nothing_disappears_nothing_is_unknown(path: Path) -> None:
    for step in replay_file(path):
        if not step.out:
            assert step.kind in KNOWN | REPEATING, f"line {step.line}"
        for fact in step.facts:
            assert not (isinstance(fact.data, NativeMessage) and not fact.data.known), f"line {step.line}: {step.kind}"


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name.split(".jsonl")[0])
def test_pieces_joined_are_the_finished_block(path: Path) -> None:
    joined, finished = pieces_and_blocks(replay_file(path))
    told = {key: text for key, text in joined.items() if key in finished}
    assert told == {key: finished[key] for key in told}
    assert not joined or told, "a recording with pieces has finished blocks"


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name.split(".jsonl")[0])
def test_turns_tools_and_asks_open_and_close_in_pairs(path: Path) -> None:
    """Within a recording: turns alternate, a tool ends once and after its start, an ask ends at most once."""
    running: dict[str | None, bool] = {}
    tools: Counter[tuple[str, str | None]] = Counter()
    if path.name.startswith("30-"):
        pytest.skip("two processes in one recording")
    for step in replay_file(path):
        for fact in step.facts:
            match fact.data.TYPE:
                case "turn.started":
                    assert not running.get(None)
                    running[None] = True
                case "turn.completed":
                    assert running.get(None)
                    running[None] = False
                case "tool.started" | "tool.completed":
                    tools[fact.data.TYPE, fact.item] += 1
                    assert tools[fact.data.TYPE, fact.item] == 1
                    assert tools["tool.started", fact.item] == 1
                case _:
                    pass


def test_every_type_that_was_ever_seen_is_known_even_without_its_history() -> None:
    types = json.loads(gzip.decompress(TYPES.read_bytes()))
    assert len(types) == 41
    for name, seen in types.items():
        for out in new_translator().feed(seen["example"]):
            assert not (isinstance(out, Fact) and isinstance(out.data, NativeMessage)), name


def test_every_type_survives_the_loss_of_any_field() -> None:
    """Takes each field of each example away, one at a time, at every depth."""
    types = json.loads(gzip.decompress(TYPES.read_bytes()))
    tried = 0
    for seen in types.values():
        for message in shorter(seen["example"], keep="type"):
            new_translator().feed(message)
            tried += 1
    assert tried > 600


def test_every_type_survives_fields_of_a_wrong_type() -> None:
    types = json.loads(gzip.decompress(TYPES.read_bytes()))
    for seen in types.values():
        for message in wronged(seen["example"], 1, keep="type"):
            new_translator().feed(message)

"""Recorded traffic against expectations derived by hand, and properties that hold for all of it."""

from collections import Counter
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from tests.unit.claude.recorded import read
from tests.unit.opencode.recorded import RECORDINGS, Step, compare, new_translator, replay_file

from trunkline_adapters.opencode.native import TRANSLATED, event_of, is_known, stream_of
from trunkline_adapters.opencode.profiles import PROFILES
from trunkline_adapters.opencode.translate import OpenCodeTranslator
from trunkline_agentkit import Fact, Piece
from trunkline_testkit.spoilt import shorter, wronged
from trunkline_wire.work import NativeMessage

CASES = sorted(path.parent for path in RECORDINGS.glob("*/expected.jsonl"))
ALL = sorted((RECORDINGS / "all").glob("*.jsonl.gz"))
TURNS = [path for path in ALL if "turns" in path.name]
EXAMPLES = [step for path in ALL for step in replay_file(path)]

Obj = dict[str, Any]


def _name(path: Path) -> str:
    return path.name.split(".jsonl")[0]


def test_there_are_cases_of_both_programs() -> None:
    assert len(CASES) >= 30
    assert sum("kilo" in case.name for case in CASES) >= 4


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_a_recording_gives_what_was_derived_from_it(case: Path) -> None:
    compare(case)


@pytest.mark.parametrize("path", ALL, ids=_name)
def test_nothing_raises_nothing_disappears_nothing_is_unknown(path: Path) -> None:
    steps = replay_file(path)
    assert steps
    for step in steps:
        where = f"line {step.line}: {step.kind}"
        event = str(event_of(step.message).get("type"))
        if not step.out and stream_of(step.message) == "/event" and "data" in step.message:
            assert event in TRANSLATED or is_known(event, PROFILES.shipped["opencode"]), where
        for fact in step.facts:
            assert not (isinstance(fact.data, NativeMessage) and not fact.data.known), where


@pytest.mark.parametrize("path", TURNS, ids=_name)
def test_pieces_joined_are_the_finished_block(path: Path) -> None:
    said: dict[tuple[str, int], str] = {}
    finished: dict[tuple[str, int], str] = {}
    for step in replay_file(path):
        for one in step.out:
            if isinstance(one, Piece) and one.text:
                said[one.item, one.block] = said.get((one.item, one.block), "") + one.text
            elif isinstance(one, Fact) and one.data.TYPE == "message.assistant" and one.item is not None:
                data = msgspec.to_builtins(one.data)
                for index, block in enumerate(data["content"], data["block"]):
                    finished[one.item, index] = block["text"]
    assert len(said) > 10
    assert said == {key: finished[key] for key in said}


@pytest.mark.parametrize("path", ALL, ids=_name)
def test_turns_tools_and_texts_come_once_and_in_pairs(path: Path) -> None:
    running = False
    seen: Counter[tuple[Any, ...]] = Counter()
    open_tools: set[str | None] = set()
    for step in replay_file(path):
        for fact in step.facts:
            match fact.data.TYPE:
                case "turn.started":
                    assert not running
                    running = True
                case "turn.completed":
                    assert running
                    running = False
                    assert not open_tools
                case "message.assistant":
                    seen["text", fact.item, msgspec.to_builtins(fact.data)["block"]] += 1
                case "tool.started" | "tool.completed":
                    seen[fact.data.TYPE, fact.item] += 1
                    assert seen["tool.started", fact.item] == 1
                    if fact.lane is None:
                        (open_tools.add if fact.data.TYPE == "tool.started" else open_tools.discard)(fact.item)
                case _:
                    pass
    assert not seen or max(seen.values()) == 1


@pytest.mark.parametrize("path", TURNS, ids=_name)
def test_what_a_server_repeats_is_said_once(path: Path) -> None:
    """What is read back repeats events as they were stored: the same one again says nothing more."""
    translator = new_translator()
    repeated = {"message.updated", "message.part.updated", "permission.asked", "question.asked", "session.updated"}
    for _, speaker, message in read(path):
        if speaker == "host":
            translator.sent(message)
        elif speaker == "agent":
            translator.feed(message)
            kind = event_of(message).get("type")
            compaction = "compaction" in str(event_of(message).get("properties"))
            if kind in repeated and not compaction:
                assert [one for one in translator.feed(message) if isinstance(one, Fact)] == [], kind


def test_every_kind_survives_the_loss_of_any_field() -> None:
    """Takes each field of each example away, one at a time, at every depth, in a session that has begun."""
    tried = 0
    for step in _examples():
        for message in shorter(step.message):
            new_translator().feed(message)
            _opened(step).feed(message)
            tried += 1
    assert tried > 600


def test_every_kind_survives_fields_of_a_wrong_type() -> None:
    for step in _examples():
        for message in wronged(step.message, 4):
            new_translator().feed(message)
            _opened(step).feed(message)


def _examples() -> list[Step]:
    """One message of each kind that was ever recorded."""
    found: dict[str, Step] = {}
    for step in EXAMPLES:
        found.setdefault(step.kind, step)
    return list(found.values())


def _opened(step: Step) -> OpenCodeTranslator:
    """A translator whose session is the one that the message is about, with a request of ours behind an answer."""
    translator = new_translator()
    properties = event_of(step.message).get("properties")
    session = cast("Obj", properties).get("sessionID") if isinstance(properties, dict) else None
    translator.sent({"http": "POST /session", "n": 1})
    translator.feed({"http": "POST /session", "n": 1, "status": 200, "body": {"id": session or "ses_x"}})
    if (request := step.message.get("http")) is not None:
        translator.sent({"http": request})
    return translator

"""Recorded traffic against expectations derived by hand, and properties that hold for all of it."""

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.unit.codex.recorded import RECORDINGS, Step, compare, is_exec, new_translator, replay_file

from trunkline_adapters.codex.native import KNOWN, TRANSLATED
from trunkline_agentkit import Fact, Piece
from trunkline_testkit.spoilt import shorter, wronged
from trunkline_wire.work import NativeMessage

CASES = sorted(path.parent for path in RECORDINGS.glob("*/expected.jsonl"))
ALL = sorted((RECORDINGS / "all").glob("*.jsonl.gz"))
EXAMPLES = [step for path in ALL if not is_exec(path) for step in replay_file(path)]


def _name(path: Path) -> str:
    return path.name.split(".jsonl")[0]


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_a_recording_gives_what_was_derived_from_it(case: Path) -> None:
    compare(case)


def test_the_cases_hold_every_item_type_that_was_recorded() -> None:
    def item_types(paths: list[Path]) -> set[str]:
        steps = [step for path in paths for step in replay_file(path)]
        return {step.kind.split("/")[2] for step in steps if step.kind.startswith(("item/started/", "item/completed/"))}

    assert item_types([case / "native.jsonl" for case in CASES]) == item_types(ALL)


@pytest.mark.parametrize("path", ALL, ids=_name)
def test_nothing_raises_nothing_disappears_nothing_is_unknown(path: Path) -> None:
    for step in replay_file(path):
        where = f"line {step.line}: {step.kind}"
        if not step.out:
            method = step.message.get("method")
            assert method in KNOWN | TRANSLATED or method is None, where
        for fact in step.facts:
            assert not (isinstance(fact.data, NativeMessage) and not fact.data.known), where


@pytest.mark.parametrize("path", ALL, ids=_name)
def test_pieces_joined_are_the_finished_block(path: Path) -> None:
    joined: dict[tuple[str, int], str] = {}
    finished: dict[tuple[str, int], str] = {}
    for step in replay_file(path):
        for one in step.out:
            if isinstance(one, Piece) and one.text and one.kind in {"text", "thinking", "plan"}:
                joined[one.item, one.block] = joined.get((one.item, one.block), "") + one.text
            elif isinstance(one, Fact) and one.data.TYPE == "message.assistant" and one.item is not None:
                data = msgspec.to_builtins(one.data)
                for index, block in enumerate(data["content"], data["block"]):
                    finished[one.item, index] = block["text"]
                    if data.get("aborted"):
                        # The same answer may begin again under the same id.
                        assert joined.pop((one.item, index), "") == block["text"]
                        del finished[one.item, index]
    if path.name.startswith("13-"):
        pytest.skip("its connection is dropped while a text is being written")
    # A summary is trimmed at its end once it is whole; 27 ends in the middle of a text.
    told = {key: said for key, said in joined.items() if key in finished}
    assert {key: said.rstrip() for key, said in told.items()} == {key: finished[key].rstrip() for key in told}
    assert told or not joined or path.name.startswith("27-")


@pytest.mark.parametrize("path", ALL, ids=_name)
def test_turns_and_tools_open_and_close_in_pairs(path: Path) -> None:
    """Within a recording: turns alternate, a tool ends once and after its start, nothing of a turn stays open behind it."""
    running = False
    tools: Counter[tuple[str, str | None]] = Counter()
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
                case "tool.started" | "tool.completed":
                    tools[fact.data.TYPE, fact.item] += 1
                    assert tools[fact.data.TYPE, fact.item] == 1
                    assert tools["tool.started", fact.item] == 1
                    if fact.lane is None:
                        (open_tools.add if fact.data.TYPE == "tool.started" else open_tools.discard)(fact.item)
                case _:
                    pass


def _examples() -> list[Step]:
    """One message of each kind that was ever recorded."""
    found: dict[str, Step] = {}
    for step in EXAMPLES:
        found.setdefault(step.kind, step)
    return list(found.values())


def test_every_kind_survives_the_loss_of_any_field() -> None:
    """Takes each field of each example away, one at a time, at every depth, in a session that has begun."""
    tried = 0
    for step in _examples():
        for message in shorter(step.message, keep="method"):
            new_translator().feed(message)
            _opened(step).feed(message)
            tried += 1
    assert tried > 600


def test_every_kind_survives_fields_of_a_wrong_type() -> None:
    for step in _examples():
        for message in wronged(step.message, 2, keep="method"):
            new_translator().feed(message)
            _opened(step).feed(message)


def _opened(step: Step) -> Any:
    """A translator whose session has the thread that the message is of."""
    translator = new_translator()
    params = step.message.get("params")
    thread = params.get("threadId") if isinstance(params, dict) else None
    translator.sent({"id": "open", "method": "thread/start", "params": {}})
    translator.feed({"id": "open", "result": {"thread": {"id": thread or "t"}}})
    return translator

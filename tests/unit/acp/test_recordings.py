"""Recorded traffic against expectations derived by hand, and properties that hold for all of it."""

import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.unit.acp.recorded import RECORDINGS, Step, compare, new_translator, replay_file
from tests.unit.claude.recorded import read

from trunkline_adapters.acp.translate import AcpTranslator
from trunkline_agentkit import Fact, Piece
from trunkline_agentkit.jsonrpc import id_key
from trunkline_testkit.spoilt import shorter, wronged
from trunkline_wire.blocks import TextBlock, ThinkingBlock
from trunkline_wire.turn import MessageAssistant
from trunkline_wire.work import NativeMessage

CASES = sorted(path.parent for path in RECORDINGS.glob("*/expected.jsonl"))
ALL = sorted((RECORDINGS / "all").glob("*.jsonl.gz"))

Obj = dict[str, Any]


def _name(path: Path) -> str:
    return path.name.split(".jsonl")[0]


def test_there_are_cases_of_six_agents() -> None:
    assert len(CASES) >= 14
    assert len({case.name.split("-")[0] for case in CASES}) >= 6


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_a_recording_gives_what_was_derived_from_it(case: Path) -> None:
    compare(case)


@pytest.mark.parametrize("path", ALL, ids=_name)
def test_nothing_raises_nothing_disappears_nothing_is_unknown(path: Path) -> None:
    steps, _ = replay_file(path)
    assert steps
    for step in steps:
        unknown = [one for one in step.facts if isinstance(one.data, NativeMessage) and not one.data.known]
        # The recorder's own note of a line that was no JSON.
        assert not unknown or "_nonjson" in step.message, f"line {step.line}: {step.kind}"


@pytest.mark.parametrize("path", ALL, ids=_name)
def test_nothing_that_carries_content_is_passed_over(path: Path) -> None:
    """What the model says, its tools and its asks leave a trace, but for history that an agent tells again."""
    steps, _ = replay_file(path)
    silent = Counter(step.kind for step in steps if not step.out)
    quiet = {
        "_auth/status_update",
        "session/update/usage_update",
        "session/update/session_info_update",
        "session/update/config_option_update",
        "session/update/available_commands_update",
        "qwen/notify/session/mode-update",
        "craft/drainMidTurnQueue",
    }
    for kind in silent:
        assert kind.startswith(("answer/", "fs/", "terminal/")) or kind in quiet, kind
    assert "answer/session/prompt" not in silent


@pytest.mark.parametrize("path", ALL, ids=_name)
def test_pieces_joined_are_the_finished_message(path: Path) -> None:
    steps, _ = replay_file(path)
    joined, finished = _texts(steps)
    told = {key: text for key, text in joined.items() if text}
    assert told == {key: finished[key] for key in told}


def _texts(steps: list[Step]) -> tuple[dict[tuple[str, int], str], dict[tuple[str, int], str]]:
    joined: dict[tuple[str, int], str] = {}
    finished: dict[tuple[str, int], str] = {}
    for step in steps:
        for one in step.out:
            if isinstance(one, Piece):
                joined[one.item, one.block] = joined.get((one.item, one.block), "") + one.text
            elif isinstance(one, Fact) and isinstance(one.data, MessageAssistant):
                for index, block in enumerate(one.data.content, one.data.block or 0):
                    assert isinstance(block, TextBlock | ThinkingBlock)
                    assert isinstance(block.text, str)
                    finished[one.item or "", index] = block.text
    return joined, finished


@pytest.mark.parametrize("path", ALL, ids=_name)
def test_turns_tools_and_asks_open_and_close_in_pairs(path: Path) -> None:
    """Turns alternate, a tool starts once and ends once after it, an ask ends at most once; nothing stays open."""
    steps, translator = replay_file(path)
    running = False
    tools: Counter[tuple[str, str | None]] = Counter()
    for step in steps:
        for fact in step.facts:
            match fact.data.TYPE:
                case "turn.started" | "turn.completed" as kind:
                    assert running == (kind == "turn.completed")
                    running = not running
                case "tool.started" | "tool.completed" as kind:
                    tools[kind, fact.item] += 1
                    assert tools[kind, fact.item] == 1
                    assert tools["tool.started", fact.item] == 1
                case "permission.requested":
                    assert running
                case _:
                    pass
    prompts = [step.message["id"] for step in steps if step.kind == "sent"]
    answers = [step.message["id"] for step in steps if step.kind == "answer/session/prompt"]
    assert running == (prompts != answers), "a turn is open if its prompt was never answered"
    assert translator.state.tools == {}
    assert translator.state.asks == {}
    started = {item for kind, item in tools if kind == "tool.started"}
    assert started == {item for kind, item in tools if kind == "tool.completed"}


@pytest.mark.parametrize("path", ALL, ids=_name)
def test_every_prompt_that_was_answered_had_one_turn(path: Path) -> None:
    steps, _ = replay_file(path)
    answered = [step for step in steps if step.kind == "answer/session/prompt"]
    ends = [fact for step in steps for fact in step.facts if fact.data.TYPE == "turn.completed"]
    assert len(ends) == len(answered)
    assert len({id_key(step.message["id"]) for step in answered}) == len(answered)


def _examples() -> list[tuple[Path, int]]:
    """One line of each kind of message of each agent: (recording, line)."""
    seen: dict[tuple[str, str], tuple[Path, int]] = {}
    for case in CASES:
        steps, _ = replay_file(case / "native.jsonl")
        for step in steps:
            seen.setdefault((case.name.split("-")[0], step.kind), (case / "native.jsonl", step.line))
    return list(seen.values())


def test_every_kind_of_message_survives_the_loss_and_the_change_of_any_field() -> None:
    """The message is spoilt in the midst of its recording, and the rest of it must go on."""
    tried = 0
    for path, line in _examples():
        spoken = list(read(path))
        before, ((_, _, message), *after) = spoken[: line - 1], spoken[line - 1 :]
        translator = new_translator()
        for _, speaker, one in before:
            _hear(translator, speaker, one)
        kept = pickle.dumps(translator)  # read back in a third of the time of a deep copy
        for spoilt in [*shorter(message), *wronged(message, 2)]:
            if len(str(spoilt)) > 6000:
                continue  # long lists of models and commands: their shorter fellows stand for them
            copy: AcpTranslator = pickle.loads(kept)
            copy.feed(spoilt)
            for _, speaker, one in after:
                _hear(copy, speaker, one)
            tried += 1
    assert tried > 3000


def _hear(translator: AcpTranslator, speaker: str, message: Obj) -> None:
    if speaker == "host":
        translator.sent(message)
    else:
        translator.feed(message)

"""Recorded traffic against expectations derived by hand, and properties that hold for all of it."""

from collections import Counter
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from tests.unit.claude.recorded import read
from tests.unit.headless.recorded import RECORDINGS, agent_of, compare, new_translator, replay_file

from trunkline_agentkit import Fact, Piece
from trunkline_testkit.spoilt import shorter, wronged
from trunkline_wire.blocks import TextBlock, ThinkingBlock
from trunkline_wire.turn import MessageAssistant
from trunkline_wire.work import NativeMessage

CASES = sorted(path.parent for path in RECORDINGS.glob("*/expected.jsonl"))
ALL = sorted((RECORDINGS / "all").glob("*.jsonl.gz"))

Obj = dict[str, Any]


def _name(path: Path) -> str:
    return path.name.split(".jsonl")[0]


def test_there_are_cases_of_four_agents() -> None:
    assert len(CASES) >= 12
    assert {agent_of(case / "native.jsonl") for case in CASES} == {"cline", "continue", "gemini", "qwen"}


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_a_recording_gives_what_was_derived_from_it(case: Path) -> None:
    compare(case)


@pytest.mark.parametrize("path", ALL, ids=_name)
def test_nothing_raises_nothing_is_unknown_and_nothing_that_carries_content_is_passed_over(path: Path) -> None:
    steps, _ = replay_file(path)
    silent = {step.kind for step in steps if not step.out}
    for step in steps:
        for fact in step.facts:
            assert not (isinstance(fact.data, NativeMessage) and not fact.data.known), f"line {step.line}: {step.kind}"
    assert silent <= {
        "agent_event/content_update",
        "agent_event/done",
        "agent_event/iteration_end",
        "agent_event/iteration_start",
        "hook_event/agent_end",
        "hook_event/agent_error",
        "hook_event/agent_start",
        "hook_event/tool_call",
        "hook_event/tool_result",
        "message",
        "stream_event/content_block_delta",
        "stream_event/content_block_start",
        "stream_event/content_block_stop",
        "stream_event/goal_state",
        "stream_event/message_stop",
        "user",
    }
    for step in steps:
        if step.kind == "message" and not step.out:
            assert step.message["role"] == "user"
        if step.kind == "stream_event/content_block_delta" and not step.out:
            assert step.message["event"]["delta"]["type"] == "input_json_delta"


@pytest.mark.parametrize("path", ALL, ids=_name)
def test_pieces_joined_are_the_finished_message(path: Path) -> None:
    steps, translator = replay_file(path)
    joined: dict[tuple[str, int], str] = {}
    finished: dict[tuple[str, int], str] = {}
    for step in steps:
        for one in step.out:
            if isinstance(one, Piece) and one.kind != "tool_output":
                joined[one.item, one.block] = joined.get((one.item, one.block), "") + one.text
            elif isinstance(one, Fact) and isinstance(one.data, MessageAssistant):
                for index, block in enumerate(one.data.content, one.data.block or 0):
                    if isinstance(block, TextBlock | ThinkingBlock):
                        assert isinstance(block.text, str)
                        finished[one.item or "", index] = block.text
    told = {key: text for key, text in joined.items() if text}
    if translator.open:
        return  # its program was ended in the middle of a text
    assert told == {key: finished[key] for key in told}


@pytest.mark.parametrize("path", ALL, ids=_name)
def test_turns_and_tools_open_and_close_in_pairs(path: Path) -> None:
    """Turns alternate, a tool starts once and ends once after it; nothing of a turn stays open behind it."""
    steps, _ = replay_file(path)
    running = False
    tools: Counter[tuple[str, str | None]] = Counter()
    open_tools: set[str | None] = set()
    for step in steps:
        for fact in step.facts:
            match fact.data.TYPE:
                case "turn.started" | "turn.completed" as kind:
                    assert running == (kind == "turn.completed")
                    running = not running
                    assert not open_tools
                case "tool.started" | "tool.completed" as kind:
                    tools[kind, fact.item] += 1
                    assert tools[kind, fact.item] == 1
                    assert tools["tool.started", fact.item] == 1
                    (open_tools.add if kind == "tool.started" else open_tools.discard)(fact.item)
                case _:
                    pass


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_every_message_survives_the_loss_and_the_change_of_any_field(case: Path) -> None:
    """The message is spoilt in the midst of its recording, and the rest of it must go on."""
    spoken = [message for _, speaker, message in read(case / "native.jsonl") if speaker == "agent"]
    translator = new_translator(agent_of(case / "native.jsonl"))
    translator.begin("cmd_1")
    seen: set[str] = set()
    for index, message in enumerate(spoken):
        if str(sorted(message)) not in seen:
            seen.add(str(sorted(message)))
            for spoilt in [*shorter(message), *wronged(message, 1)]:
                copy = deepcopy(translator)
                copy.feed(spoilt)
                for later in spoken[index + 1 :]:
                    copy.feed(later)
                copy.over("error", None)
        translator.feed(message)

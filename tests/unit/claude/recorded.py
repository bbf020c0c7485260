"""Replays recorded traffic of Claude Code through the translator, and compares what comes out with what was derived by hand."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from trunkline_adapters.claude.adapter import CAPABILITIES
from trunkline_adapters.claude.native import kind_of
from trunkline_adapters.claude.translate import ClaudeTranslator
from trunkline_agentkit import Context, Fact, Out, Piece, Progress
from trunkline_wire.ids import ask_id, item_id

RECORDINGS = Path(__file__).parents[2] / "recordings" / "claude"
CONTEXT = Context(session="ses_" + "5" * 32, incarnation="first", cwd="/home/dev/project")


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One message of the agent, on line `line` of its recording, and what the translator made of it."""

    line: int
    message: dict[str, Any]
    out: list[Out]

    @property
    def kind(self) -> str:
        return kind_of(self.message)

    @property
    def facts(self) -> list[Fact]:
        return [one for one in self.out if isinstance(one, Fact)]


def read(path: Path) -> Iterator[tuple[int, str, Any]]:
    """(line, speaker, message) of a recording, compressed or not."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    for number, line in enumerate(data.decode().splitlines(), 1):
        entry = json.loads(line)
        message = entry.get("msg")
        if isinstance(message, dict) and "frame_lines" in message:
            message = message["msg"]
        yield number, entry["from"], message


def replay_file(path: Path) -> list[Step]:
    """Every agent message of a recording, translated. `agent[2]` is another process than `agent[1]`."""
    translators: dict[str, ClaudeTranslator] = {}
    steps: list[Step] = []
    for line, speaker, message in read(path):
        who, _, which = speaker.partition("[")
        if who not in ("agent", "host") or not isinstance(message, dict):
            continue
        translator = translators.setdefault(which, ClaudeTranslator(CONTEXT, CAPABILITIES))
        if who == "host":
            translator.sent(message)
        else:
            steps.append(Step(line=line, message=message, out=translator.feed(message)))
    return steps


def events(steps: list[Step]) -> list[dict[str, Any]]:
    """What reaches log and delta stream, but for pieces of text: the form of `expected.jsonl`."""
    found: list[dict[str, Any]] = []
    for step in steps:
        if not step.out:
            found.append({"line": step.line, "type": "native.message", "data": {"known": True}})
        found.extend(
            {
                "line": step.line,
                "type": one.data.TYPE,
                "data": whole(one.data),
                "item": one.item,
                "lane": one.lane,
            }
            for one in step.out
            if isinstance(one, Fact | Progress)
        )
    return found


def whole(value: Any) -> Any:
    """A payload as JSON values, with the fields that equal their defaults, which the wire leaves out."""
    if isinstance(value, msgspec.Struct):
        tag = value.__struct_config__.tag
        fields = {name: whole(getattr(value, name)) for name in value.__struct_fields__}
        return fields if tag is None else {"type": tag} | fields
    if isinstance(value, list | tuple):
        return [whole(one) for one in value]
    return {key: whole(one) for key, one in value.items()} if isinstance(value, dict) else value


def matches(expected: Any, found: Any, where: str) -> None:
    """Every expected field is there with that value. `$item`, `$ask` are native ids, `$absent` names fields that must not be there."""
    if isinstance(expected, dict) and "$item" in expected:
        expected = item_id(CONTEXT.session, CONTEXT.incarnation, expected["$item"])
    elif isinstance(expected, dict) and "$ask" in expected:
        expected = ask_id(CONTEXT.session, CONTEXT.incarnation, expected["$ask"])
    if isinstance(expected, dict):
        assert isinstance(found, dict), where
        for name in expected.get("$absent", []):
            assert not found.get(name), f"{where}.{name}"
        for key, value in expected.items():
            if key == "$absent":
                continue
            matches(value, found.get(key), f"{where}.{key}")
    elif isinstance(expected, list):
        assert isinstance(found, list), where
        assert len(found) == len(expected), where
        for index, value in enumerate(expected):
            matches(value, found[index], f"{where}[{index}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, abs=1e-12), where
    else:
        assert found == expected, where


def compare(case: Path) -> None:
    """Fails unless a case's recording gives exactly the expected events, in order, with the expected fields."""
    expected = [json.loads(line) for line in (case / "expected.jsonl").read_text().splitlines()]
    steps = replay_file(case / "native.jsonl")
    found = events(steps)
    assert [(one["line"], one["type"]) for one in found] == [(one["line"], one["type"]) for one in expected]
    for want, have in zip(expected, found, strict=True):
        where = f"{case.name} line {want['line']} {want['type']}"
        matches(want.get("data", {}), have["data"], where)
        for field in ("item", "lane"):
            if field in want:
                matches({"$item": want[field]}, have[field], f"{where} {field}")
        assert ("lane" in want) == (have.get("lane") is not None), f"{where} lane"


def pieces_and_blocks(steps: list[Step]) -> tuple[dict[tuple[str, int], str], dict[tuple[str, int], str]]:
    """(text joined from pieces, text of the finished block) by item and block, for text and thinking."""
    joined: dict[tuple[str, int], str] = {}
    finished: dict[tuple[str, int], str] = {}
    for step in steps:
        for one in step.out:
            if isinstance(one, Piece) and one.text and one.kind in ("text", "thinking"):
                joined[one.item, one.block] = joined.get((one.item, one.block), "") + one.text
            elif isinstance(one, Fact) and one.data.TYPE == "message.assistant":
                data = msgspec.to_builtins(one.data)
                for block in data["content"]:
                    if block["type"] in ("text", "thinking") and one.item is not None:
                        finished[one.item, data["block"]] = block["text"]
    return joined, finished


def new_translator() -> ClaudeTranslator:
    return ClaudeTranslator(CONTEXT, CAPABILITIES)

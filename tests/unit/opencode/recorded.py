"""Replays recorded traffic of OpenCode and Kilo through the translator, and compares what comes out with what was derived by hand."""

import json
from pathlib import Path
from typing import Any

import msgspec
from tests.unit.claude.recorded import CONTEXT, matches, read, whole

from trunkline_adapters.opencode.adapter import CAPABILITIES
from trunkline_adapters.opencode.translate import OpenCodeTranslator
from trunkline_agentkit import Fact, Out

RECORDINGS = Path(__file__).parents[2] / "recordings" / "opencode"


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One message of the server, on line `line` of its recording, its kind, and what the translator made of it."""

    line: int
    message: dict[str, Any]
    kind: str
    out: list[Out]

    @property
    def facts(self) -> list[Fact]:
        return [one for one in self.out if isinstance(one, Fact)]


def new_translator() -> OpenCodeTranslator:
    return OpenCodeTranslator(CONTEXT, CAPABILITIES)


def replay_file(path: Path) -> list[Step]:
    """Every message of the server in a recording, translated."""
    translator = new_translator()
    steps: list[Step] = []
    for line, speaker, message in read(path):
        if speaker == "host":
            translator.sent(message)
        elif speaker == "agent":
            steps.append(Step(line=line, message=message, kind=translator.kind(message), out=translator.feed(message)))
    return steps


def compare(case: Path) -> None:
    """Fails unless a case's recording gives exactly the expected facts, in order, with the expected fields."""
    expected = [json.loads(line) for line in (case / "expected.jsonl").read_text().splitlines()]
    found = [(step.line, fact) for step in replay_file(case / "native.jsonl") for fact in step.facts]
    assert [(line, fact.data.TYPE) for line, fact in found] == [(one["line"], one["type"]) for one in expected]
    for want, (line, fact) in zip(expected, found, strict=True):
        where = f"{case.name} line {line} {fact.data.TYPE}"
        matches(want.get("data", {}), whole(fact.data), where)
        matches({"$item": want["item"]} if "item" in want else None, fact.item, f"{where} item")
        matches({"$item": want["lane"]} if "lane" in want else None, fact.lane, f"{where} lane")

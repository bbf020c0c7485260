"""Replays recorded traffic of A2A agents through the translator, and compares what comes out with what was derived by hand."""

import json
from pathlib import Path
from typing import Any

import msgspec
from tests.unit.claude.recorded import CONTEXT, matches, read, whole

from trunkline_adapters.a2a.adapter import CAPABILITIES
from trunkline_adapters.a2a.native import kind_of
from trunkline_adapters.a2a.translate import A2aTranslator
from trunkline_agentkit import Fact, Out

RECORDINGS = Path(__file__).parents[2] / "recordings" / "a2a"


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One message of the agent, on line `line` of its recording, its kind, and what the translator made of it."""

    line: int
    kind: str
    out: list[Out]

    @property
    def facts(self) -> list[Fact]:
        return [one for one in self.out if isinstance(one, Fact)]


def new_translator() -> A2aTranslator:
    return A2aTranslator(CONTEXT, CAPABILITIES)


def replay_file(path: Path) -> tuple[list[Step], A2aTranslator]:
    translator = new_translator()
    steps: list[Step] = []
    for line, speaker, message in read(path):
        if speaker == "host":
            translator.sent(message)
        else:
            steps.append(Step(line=line, kind=kind_of(message), out=translator.feed(message)))
    return steps, translator


def compare(case: Path) -> None:
    """Fails unless a case's recording gives exactly the expected facts, in order, with the expected fields."""
    expected: list[dict[str, Any]] = [json.loads(line) for line in (case / "expected.jsonl").read_text().splitlines()]
    steps, _ = replay_file(case / "native.jsonl")
    found = [(step.line, fact) for step in steps for fact in step.facts]
    assert [(line, fact.data.TYPE) for line, fact in found] == [(one["line"], one["type"]) for one in expected]
    for want, (line, fact) in zip(expected, found, strict=True):
        where = f"{case.name} line {line} {fact.data.TYPE}"
        matches(want.get("data", {}), whole(fact.data), where)
        if "item" in want:
            matches({"$item": want["item"]}, fact.item, f"{where} item")

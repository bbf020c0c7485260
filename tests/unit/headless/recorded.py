"""Replays recorded traffic of headless agents through the translator, and compares what comes out with what was derived by hand."""

import json
from pathlib import Path
from typing import Any

import msgspec
from tests.unit.claude.recorded import CONTEXT, matches, read, whole

from trunkline_adapters.headless.native import kind_of
from trunkline_adapters.headless.profiles import PROFILES
from trunkline_adapters.headless.translate import HeadlessTranslator
from trunkline_agentkit import Fact, Out

RECORDINGS = Path(__file__).parents[2] / "recordings" / "headless"


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the agent, on line `line` of its recording, its kind, and what the translator made of it."""

    line: int
    kind: str
    message: Any
    out: list[Out]

    @property
    def facts(self) -> list[Fact]:
        return [one for one in self.out if isinstance(one, Fact)]


def agent_of(path: Path) -> str:
    """Which profile a recording is of: its name begins with it."""
    return (path.parent.name if path.name == "native.jsonl" else path.name).split("-")[0]


def new_translator(agent: str) -> HeadlessTranslator:
    return HeadlessTranslator(CONTEXT, PROFILES.get(agent, {}))


def replay_file(path: Path) -> tuple[list[Step], HeadlessTranslator]:
    """Every line of an agent in a recording, translated. Each command of the host is a run of its own."""
    translator = new_translator(agent_of(path))
    steps: list[Step] = []
    runs = 0
    for line, speaker, message in read(path):
        if speaker == "host":
            runs += 1
            translator.begin(f"cmd_{runs}")
        elif speaker == "agent" and isinstance(message, dict) and "exit_code" not in message:
            steps.append(Step(line=line, kind=kind_of(message), message=message, out=translator.feed(message)))
    return steps, translator


def compare(case: Path) -> None:
    """Fails unless a case's recording gives exactly the expected facts, in order, with the expected fields."""
    expected = [json.loads(line) for line in (case / "expected.jsonl").read_text().splitlines()]
    steps, _ = replay_file(case / "native.jsonl")
    found = [(step.line, fact) for step in steps for fact in step.facts]
    assert [(line, fact.data.TYPE) for line, fact in found] == [(one["line"], one["type"]) for one in expected]
    for want, (line, fact) in zip(expected, found, strict=True):
        where = f"{case.name} line {line} {fact.data.TYPE}"
        matches(want.get("data", {}), whole(fact.data), where)
        if "item" in want:
            matches({"$item": want["item"]}, fact.item, f"{where} item")
        if "lane" in want:
            matches({"$item": want["lane"]}, fact.lane, f"{where} lane")
        assert ("lane" in want) == (fact.lane is not None), f"{where} lane"

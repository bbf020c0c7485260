"""Replays recorded traffic of ACP agents through the translator, and compares what comes out with what was derived by hand."""

import json
from pathlib import Path
from typing import Any

import msgspec
from tests.unit.claude.recorded import CONTEXT, matches, read, whole

from trunkline_adapters.acp.translate import AcpTranslator
from trunkline_agentkit import Fact, Out, Progress

RECORDINGS = Path(__file__).parents[2] / "recordings" / "acp"


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One message of the agent, or one of ours from which something follows, on line `line` of its recording, its kind, and what the translator made of it."""

    line: int
    kind: str
    message: dict[str, Any]
    out: list[Out]

    @property
    def facts(self) -> list[Fact]:
        return [one for one in self.out if isinstance(one, Fact)]


def replay_file(path: Path) -> tuple[list[Step], AcpTranslator]:
    """Every agent message of a recording, translated by the profile of the agent's own name. The recorder's notes are left out."""
    translator = AcpTranslator(CONTEXT)
    steps: list[Step] = []
    for line, speaker, message in read(path):
        if not isinstance(message, dict) or {"_argv", "_eof", "_exit"} & set(message):
            continue
        if speaker == "host":
            if out := translator.sent(message):
                steps.append(Step(line=line, kind="sent", message=message, out=out))
        elif speaker == "agent":
            kind = translator.kind_of(message)
            steps.append(Step(line=line, kind=kind, message=message, out=translator.feed(message)))
    return steps, translator


def events(steps: list[Step]) -> list[dict[str, Any]]:
    """What reaches log and delta stream, but for pieces of text: the form of `expected.jsonl`."""
    found: list[dict[str, Any]] = []
    for step in steps:
        if not step.out:
            found.append({"line": step.line, "type": "native.message", "data": {"known": True}, "item": None})
        found.extend(
            {"line": step.line, "type": one.data.TYPE, "data": whole(one.data), "item": one.item}
            for one in step.out
            if isinstance(one, Fact | Progress)
        )
    return found


def compare(case: Path) -> None:
    """Fails unless a case's recording gives exactly the expected events, in order, with the expected fields."""
    expected = [json.loads(line) for line in (case / "expected.jsonl").read_text().splitlines()]
    steps, _ = replay_file(case / "native.jsonl")
    found = events(steps)
    assert [(one["line"], one["type"]) for one in found] == [(one["line"], one["type"]) for one in expected]
    for want, have in zip(expected, found, strict=True):
        where = f"{case.name} line {want['line']} {want['type']}"
        matches(want.get("data", {}), have["data"], where)
        if "item" in want:
            matches({"$item": want["item"]}, have["item"], f"{where} item")


def new_translator() -> AcpTranslator:
    return AcpTranslator(CONTEXT)

"""Replays recorded traffic of Codex through its translators, and compares what comes out with what was derived by hand."""

import json
from pathlib import Path
from typing import Any

import msgspec
from tests.unit.claude.recorded import CONTEXT, matches, read, whole

from trunkline_adapters.codex.adapter import CAPABILITIES
from trunkline_adapters.codex.exec_messages import kind_of as exec_kind_of
from trunkline_adapters.codex.exec_session import ExecTranslator
from trunkline_adapters.codex.translate import CodexTranslator
from trunkline_agentkit import Fact, Out

RECORDINGS = Path(__file__).parents[2] / "recordings" / "codex"


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One message of the agent, on line `line` of its recording, its kind, and what the translator made of it."""

    line: int
    message: dict[str, Any]
    kind: str
    out: list[Out]

    @property
    def facts(self) -> list[Fact]:
        return [one for one in self.out if isinstance(one, Fact)]


def new_translator() -> CodexTranslator:
    return CodexTranslator(CONTEXT, CAPABILITIES)


def is_exec(path: Path) -> bool:
    """Whether a recording is of `codex exec --json`: their names begin with 20 to 25."""
    name = path.parent.name if path.name == "native.jsonl" else path.name
    return name[:2] in {"20", "21", "22", "23", "24", "25"}


def replay_file(path: Path) -> list[Step]:
    """Every message of the agent in a recording, translated; what is no JSON message (an upgrade to WebSocket) is left out."""
    return _replay_exec(path) if is_exec(path) else _replay_server(path)


def _replay_server(path: Path) -> list[Step]:
    translator = new_translator()
    steps: list[Step] = []
    for line, speaker, message in read(path):
        if not isinstance(message, dict) or "_http" in message or "_raw" in message:
            continue
        if speaker == "host":
            translator.sent(message)
        elif speaker == "agent":
            kind = translator.kind(message)
            steps.append(Step(line=line, message=message, kind=kind, out=translator.feed(message)))
    return steps


def _replay_exec(path: Path) -> list[Step]:
    translator = ExecTranslator(CONTEXT, resumed=path.name.startswith("21"))
    steps: list[Step] = []
    for line, speaker, message in read(path):
        if speaker == "host":
            schema = "--output-schema" in message["argv"]
            translator.begin("cmd_1", [{"type": "text", "text": message["argv"][-1]}], schema=schema)
        elif speaker == "agent":
            steps.append(Step(line=line, message=message, kind=exec_kind_of(message), out=translator.feed(message)))
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


def feed(*messages: dict[str, Any], translator: CodexTranslator | None = None) -> list[Out]:
    """What a translator makes of these messages, in a session whose thread is `main`."""
    used = translator or opened()
    return [out for message in messages for out in used.feed(message)]


def opened() -> CodexTranslator:
    translator = new_translator()
    translator.sent({"id": 1, "method": "thread/start", "params": {}})
    translator.feed({"id": 1, "result": {"thread": {"id": "main"}, "model": "m"}})
    return translator


def note(method: str, **params: Any) -> dict[str, Any]:
    return {"method": method, "params": {"threadId": "main"} | params}

"""What every part of the contract suite needs: the adapter under test, a running session of it, and reasons to skip."""

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

import msgspec
import pytest

from trunkline_agentkit.contract.talk import Talk
from trunkline_agentkit.environment import INCARNATION_MARK
from trunkline_agentkit.local import local_start
from trunkline_agentkit.protocol import BackendAdapter, Start
from trunkline_agentkit.registry import load
from trunkline_agentkit.sweep import end_family, marked
from trunkline_wire.session import SessionOptions

Behaviour = Literal["say", "long", "ask", "question", "crash"]
"""`say`: answers with a text. `long`: streams for many seconds. `ask`: asks for permission to run a tool. `question`: asks
its user. `crash`: ends the program in mid-turn."""

More = Literal["slow", "huge", "tool", "recall", "plan", "err400", "err401", "err429", "err500", "drop"]
"""`slow`: a text in pieces with seconds between them. `huge`: a text of `huge_size` characters. `tool`: runs a tool, asking
or not. `recall`: says what it was told before. `plan`: proposes a plan. `err400` and so on: the model's API answers with that status. `drop`: it breaks
its answer off."""

Ability = Literal["streaming", "resume", "fork", "interrupt", "change", "second", "stays", "messages"]
"""`change`: a decision may change a tool's input. `second`: takes a prompt while a turn runs. `stays`: its program runs on
between two turns. `messages`: its output is made of messages, which have a type."""


class ContractBase:
    adapter_name: ClassVar[str]
    prompts: ClassVar[Mapping[Any, str]]
    """For each Behaviour a prompt that brings it about, or a reason in `exempt`; for each of More, if it can be brought about."""
    exempt: ClassVar[Mapping[Any, str]] = {}
    """A reason for each Behaviour, More or Ability that the agent lacks."""
    recordings: ClassVar[Sequence[Path]] = ()
    """Recordings to translate, in the form that the recorder writes."""
    unknown: ClassVar[Mapping[str, Any]] = {"type": "a-type-of-next-year", "value": 1}
    """A message of a type that nobody knows yet."""
    said: ClassVar[str | None] = None
    """Stands in the answer to `say`, in that to `recall` after it, and in no other."""
    plan: ClassVar[str | None] = None
    """Stands in the plan of `plan`."""
    modes: ClassVar[Mapping[Any, str]] = {}
    """The mode that a session needs for a Behaviour or More, where it is not the one of `options`."""
    recovers: ClassVar[Sequence[More]] = ()
    """Troubles with its model that the agent gets over by itself, so that its turn succeeds."""
    patience: ClassVar[float] = 60.0
    """Seconds that one step of a test may take."""
    trouble_patience: ClassVar[float] = 20.0
    """Seconds after which a turn is interrupted whose agent still tries to reach its model."""
    huge_size: ClassVar[int] = 1_000_000
    evidence: ClassVar[str | None] = None
    """A file that the tool of `ask` makes in the working directory."""
    changed_input: ClassVar[Mapping[str, Any]] = {}
    """An input for that tool with which it makes `changed_evidence` instead."""
    changed_evidence: ClassVar[str] = "changed"
    tool_output: ClassVar[str | None] = None
    """Stands in the output of the tool of `tool`."""

    def make_adapter(self) -> BackendAdapter:
        """The adapter, by its entry point."""
        return load(self.adapter_name)

    def source(self, tmp_path: Path) -> dict[str, str]:
        """The environment that the agent's is taken from; HOME is private."""
        return {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(tmp_path), "LANG": "C.UTF-8"}

    def options(self) -> SessionOptions:
        return SessionOptions()

    def start(
        self, adapter: BackendAdapter, tmp_path: Path, behaviour: Behaviour | More = "say", **fields: Any
    ) -> Start:
        """A Start for a session that is to show a behaviour, whose traffic is recorded in `tmp_path/native.jsonl`."""
        options = fields.pop("options", self.options())
        return local_start(
            adapter,
            tmp_path,
            options=msgspec.structs.replace(options, mode=self.modes.get(behaviour, options.mode)),
            source=self.source(tmp_path),
            recording=fields.pop("recording", tmp_path / "native.jsonl"),
            temporary=fields.pop("temporary", tmp_path),
            **fields,
        )

    def unless_exempt(self, *needed: Behaviour | More | Ability) -> None:
        """Skips the test where the agent is exempt from something, or no prompt brings it about."""
        for name in needed:
            if name in self.exempt:
                pytest.skip(f"exempt: {self.exempt[name]}")
            if name not in self.prompts and name not in get_args(Ability):
                pytest.skip(f"no prompt for {name!r}")

    @contextlib.asynccontextmanager
    async def session(self, tmp_path: Path, start: Start | None = None, **fields: Any) -> "AsyncGenerator[Talk]":
        """A running agent that is ended with the block, whatever happens; nothing of it may be left then."""
        adapter = self.make_adapter()
        start = start or self.start(adapter, tmp_path, **fields)
        marks = {INCARNATION_MARK: start.incarnation}
        talk: Talk | None = None
        try:
            session = await (adapter.create if start.native_session is None else adapter.resume)(start)
            talk = Talk(start, session, self.patience)
            yield talk
        finally:
            if talk is not None:
                await talk.session.close(grace=1.0)
                await talk.stop()
            await adapter.close()
            await end_family(marks)
        assert await asyncio.to_thread(marked, marks) == [], "processes of the agent outlive it"

    def in_directory(self, tmp_path: Path, name: str | None) -> bool:
        """Whether a file that proves that a tool ran is there; without a name there is nothing to prove."""
        return name is not None and (tmp_path / name).exists()

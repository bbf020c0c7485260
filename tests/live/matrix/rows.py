"""One row of the matrix an agent: the contract suite against the real program, offline, on a scripted model.

A row says how the agent is to be started and what it can't do; all else is the suite's. `agents.py` of the testkit pins the
versions, `offline.py` has the settings.
"""

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from trunkline_agentkit import BackendAdapter, Start
from trunkline_agentkit.contract import AdapterContract, Behaviour, More
from trunkline_agentkit.registry import load
from trunkline_testkit import processes
from trunkline_testkit.agents import AGENTS
from trunkline_testkit.model_api import ScriptedApi
from trunkline_testkit.offline import offline_env
from trunkline_wire.session import SessionOptions

PROMPTS: Mapping[Any, str] = {
    "say": "SAY=Hello from the scripted model, which says this in several pieces.",
    "long": "SCENARIO=slow N=400",
    "slow": "SCENARIO=slow N=4 DELAY_MS=2500",
    "huge": "SCENARIO=huge BYTES=1000000",
    "recall": "SCENARIO=recall",
    "tool": "SCENARIO=bash CMD=echo it-ran",
    "ask": "SCENARIO=bash CMD=touch asked",
    "question": "SCENARIO=question",
    "err400": "SCENARIO=err400",
    "err401": "SCENARIO=err401",
    "err429": "SCENARIO=err429",
    "err500": "SCENARIO=err500",
    "drop": "SCENARIO=drop",
}
GRACE = 5.0
"""Seconds that an agent's processes may take to be gone once it was ended."""
PLANNING: Mapping[Any, str] = {**PROMPTS, "plan": "SCENARIO=plan"}
CRASH = "no prompt is known that makes the program crash"
NO_CHANGE = "the protocol has no word for a changed input: `session/request_permission` is answered with an option or `cancelled`"
NO_PLAN = "it proposes no plan through the protocol"
NO_QUESTION = "it offers its model no tool to ask the user"


class Row(AdapterContract):
    """`agent` names the program in `trunkline_testkit.agents`; `profile` is the adapter's name for it, if it has several."""

    agent: ClassVar[str]
    row: ClassVar[str | None] = None
    """The row's own name, where an agent has several rows."""
    profile: ClassVar[str | None] = None
    native_options: ClassVar[dict[str, Any]] = {}
    mode: ClassVar[str | None] = None
    smoke: ClassVar[bool] = False
    """Whether `just smoke` runs its main columns."""
    known: ClassVar[Mapping[str, str]] = {}
    """Why a column fails, where it is the agent's own fault: it is said in the page, and fails all the same."""
    litter: ClassVar[Sequence[str]] = ()
    """Patterns of what it puts into the system's place for temporary files, though it was told of the session's own: removed."""
    prompts = PROMPTS
    patience = 150.0  # some are slow to begin, and the machine may have other work
    exempt: ClassVar[Mapping[Any, str]] = {"crash": CRASH}
    evidence = "asked"
    said = "Hello from the scripted model"
    tool_output: ClassVar[str | None] = "it-ran"
    huge_size = 990_000
    plan: ClassVar[str | None] = "do A"

    def __init_subclass__(cls) -> None:
        cls.prompts = {name: prompt for name, prompt in cls.prompts.items() if name not in cls.exempt}

    @pytest.fixture(autouse=True)
    def _bench(
        self, scripted_api: ScriptedApi, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[None]:
        """A home, and behind the test nothing of the agent's: no process that was started with it, or works in its directories."""
        self.api = scripted_api
        self.home = tmp_path_factory.mktemp("home")
        self.temporary = Path(tempfile.mkdtemp(prefix="tl-"))  # short, for the sockets that agents put into it
        self.environment = offline_env(self.agent, self.home, scripted_api.url)
        before = self._strewn()
        yield
        scripted_api.release()
        left = processes.within(self.home, self.temporary, tmp_path)
        try:
            processes.wait_gone_sync(left, GRACE)
        finally:
            processes.kill_all(left)
            shutil.rmtree(self.temporary)
            for path in self._strewn() - before:
                shutil.rmtree(path, ignore_errors=True)

    def _strewn(self) -> set[Path]:
        place = Path(tempfile.gettempdir())
        return {path for pattern in self.litter for path in place.glob(pattern)}

    @classmethod
    def title(cls) -> str:
        return cls.row or cls.agent

    @classmethod
    def version(cls) -> str:
        return AGENTS[cls.agent].version

    def make_adapter(self) -> BackendAdapter:
        adapter: Any = type(load(self.adapter_name))
        return adapter(self.environment)

    def source(self, tmp_path: Path) -> dict[str, str]:  # noqa: ARG002  # the agent's home is beside its project
        return self.environment

    def options(self) -> SessionOptions:
        return SessionOptions(mode=self.mode, native=self.native_options)

    def start(
        self, adapter: BackendAdapter, tmp_path: Path, behaviour: Behaviour | More = "say", **fields: Any
    ) -> Start:
        return super().start(adapter, tmp_path, behaviour, agent=self.profile, temporary=self.temporary, **fields)


class AcpRow(Row):
    """What the protocol itself lacks is exempt for each of its agents."""

    adapter_name = "acp"
    unknown: ClassVar[Mapping[str, Any]] = {"jsonrpc": "2.0", "method": "session/of_next_year", "params": {}}
    exempt: ClassVar[Mapping[Any, str]] = {"crash": CRASH, "change": NO_CHANGE, "plan": NO_PLAN}


class SilentAcpRow(AcpRow):
    """Agents that never ask a question through the protocol: the requests to the model show no tool for it."""

    exempt: ClassVar[Mapping[Any, str]] = {**AcpRow.exempt, "question": NO_QUESTION}

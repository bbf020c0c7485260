"""Agents that are a server of the Agent2Agent protocol: `just matrix gemini-a2a`.

The server runs by itself and belongs to no session: here it is started for each test, and killed where the suite kills an agent.
"""

import contextlib
import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest
from tests.live.matrix.rows import CRASH, PROMPTS, Row

from trunkline_adapters.a2a.adapter import A2aAdapter
from trunkline_agentkit import BackendAdapter, Start
from trunkline_agentkit.contract import Behaviour, More
from trunkline_testkit import eventually_sync
from trunkline_testkit.agents import require
from trunkline_testkit.ports import free_port
from trunkline_wire import TrunklineError
from trunkline_wire.turn import TurnStarted

pytestmark = [pytest.mark.live, pytest.mark.matrix, pytest.mark.timeout(400)]

LOOPBACK = Path(__file__).with_name("loopback.cjs")
START_S = 60.0


class TestGeminiA2a(Row):
    adapter_name = "a2a"
    agent = "gemini-a2a"
    prompts: ClassVar[Mapping[Any, str]] = PROMPTS
    unknown: ClassVar[Mapping[str, Any]] = {"jsonrpc": "2.0", "id": "1", "result": {"kind": "of-next-year"}}
    exempt: ClassVar[Mapping[Any, str]] = {
        "question": "the protocol has no word for a question but the end of a turn",
        "crash": CRASH,
        "change": "a decision is an outcome alone",
        "plan": "the protocol has no word for a plan",
        "second": "a task takes one message at a time: the next one waits in Trunkline for the end of the turn",
        "stays": "the server is no process of the session's",
    }

    @pytest.fixture(autouse=True)
    def _served(self, _bench: None, tmp_path: Path) -> Iterator[None]:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        # The server works in its own directory, wherever a session is.
        environment = self.environment | {
            "CODER_AGENT_PORT": str(port),
            "CODER_AGENT_WORKSPACE_PATH": str(self.workspace(tmp_path)),
            "NODE_OPTIONS": f"--require={LOOPBACK}",
            "TMPDIR": str(self.temporary),
        }
        with (tmp_path / "server.log").open("wb") as log:
            self.server = subprocess.Popen(
                ["node", str(require(self.agent).resolve())],
                env=environment,
                cwd=self.workspace(tmp_path),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            eventually_sync(self._has_card, START_S, ignore=(OSError, ValueError))
            yield
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.server.pid, signal.SIGKILL)
            self.server.wait()

    def _has_card(self) -> bool:
        assert self.server.poll() is None, "the server has ended"
        with urllib.request.urlopen(f"{self.url}/.well-known/agent-card.json", timeout=5) as answer:
            return bool(json.load(answer)["name"])

    def workspace(self, tmp_path: Path) -> Path:
        return tmp_path

    def make_adapter(self) -> BackendAdapter:
        return A2aAdapter(self.environment)

    def start(
        self, adapter: BackendAdapter, tmp_path: Path, behaviour: Behaviour | More = "say", **fields: Any
    ) -> Start:
        return msgspec.structs.replace(super().start(adapter, tmp_path, behaviour, **fields), agent=self.url)

    async def test_it_is_installed(self) -> None:
        """It is no program of the adapter's: it is found by its address alone."""
        with pytest.raises(TrunklineError) as refused:
            await self.make_adapter().probe()
        assert refused.value.code == "agent_not_found"

    async def test_a_killed_agent_ends_its_messages(self, tmp_path: Path) -> None:
        """The server is killed, which is no process of the session's."""
        async with self.session(tmp_path) as talk:
            await talk.prompt(self.prompts["long"])
            await talk.until(TurnStarted)
            os.killpg(self.server.pid, signal.SIGKILL)
            await talk.until_over()
            assert (await talk.session.close()).code not in {0, None}

    async def test_a_session_whose_agent_was_killed_goes_on(self, tmp_path: Path) -> None:
        del tmp_path
        pytest.skip("exempt: a server that dies takes its tasks with it")

    async def test_a_message_of_next_year_does_no_harm(self, tmp_path: Path) -> None:
        del tmp_path
        pytest.skip("exempt: nothing can be slipped into what the server says; unknown messages are translated as such")

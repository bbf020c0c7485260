"""The real Claude Code 2.1.101, which connects to its host: connections that are cut."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest
from tests.contract.cutting import Relay
from tests.live.test_claude_adapter import Bench, allow

from trunkline_agentkit import Piece
from trunkline_testkit import eventually
from trunkline_testkit.agents import require
from trunkline_testkit.model_api import ScriptedApi
from trunkline_wire.asks import PermissionRequested
from trunkline_wire.session import SessionInitialized
from trunkline_wire.turn import MessageAssistant, ToolCompleted, TurnCompleted, TurnStarted

pytestmark = [pytest.mark.live, pytest.mark.matrix, pytest.mark.timeout(300)]


@pytest.fixture
def bench(tmp_path: Path, scripted_api: ScriptedApi) -> Bench:
    project = tmp_path / "project"
    project.mkdir()
    return Bench(tmp_path / "home", project, scripted_api, require("claude-2.1.101"))


@pytest.fixture
async def relay(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Relay]:
    relay = Relay()
    await relay.between(monkeypatch)
    yield relay
    await relay.stop()


async def test_a_turn_that_is_cut_again_and_again_is_told_once_and_whole(bench: Bench, relay: Relay) -> None:
    async with bench.session() as agent:
        await agent.say("SCENARIO=slow N=40 DELAY_MS=200")
        for count in (4, 12, 20):
            await eventually(lambda count=count: _pieces(agent.natives) >= count, 60)
            relay.cut()
        done = await agent.wait(TurnCompleted, timeout=120)
        assert done.outcome == "success"
        streamed = "".join(out.text for native in agent.natives for out in native.out if isinstance(out, Piece))
        (said,) = [block.text for one in agent.all(MessageAssistant) for block in one.content]
        assert streamed == said == done.result
        ids = Counter(json.loads(native.raw).get("uuid") for native in agent.natives if native.raw)
        del ids[None]
        assert set(ids.values()) == {1}
        assert relay.connections > 4
        (initialized,) = agent.all(SessionInitialized)
        assert initialized.version == "2.1.101"


async def test_decision_and_prompt_reach_it_once_over_the_next_connection(bench: Bench, relay: Relay) -> None:
    async with bench.session() as agent:
        await agent.say("SCENARIO=bash CMD=touch original")
        asked = await agent.wait(PermissionRequested)
        assert await agent.session.pending() == {asked.ask}
        relay.away = True
        relay.cut()
        await agent.session.decide(asked.ask, allow(asked.ask, updated_input={"command": "echo x >> changed"}))
        relay.away = False
        await agent.wait(TurnCompleted, timeout=60)
        assert (bench.project / "changed").read_text() == "x\n"
        assert [tool.status for tool in agent.all(ToolCompleted)] == ["completed"]
        relay.away = True
        relay.cut()
        await agent.say("SAY=Second.", "cmd_2")
        relay.away = False
        assert (await agent.wait(TurnCompleted, 2, timeout=60)).result == "Second."
        assert [fact.cause for fact in agent.facts(TurnStarted)] == ["cmd_1", "cmd_2"]


async def test_a_proxy_does_not_come_between(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    dead = dict.fromkeys(("http_proxy", "HTTP_PROXY"), "http://127.0.0.1:9")
    for name, value in dead.items():
        monkeypatch.setitem(bench.source, name, value)
    async with bench.session() as agent, asyncio.timeout(60):
        assert (await agent.turn("SAY=Hello.")).result == "Hello."


def _pieces(natives: Sequence[object]) -> int:
    return sum(isinstance(out, Piece) and bool(out.text) for native in natives for out in getattr(native, "out", ()))

"""The Claude adapter with a CLI that connects to it: the whole suite, and connections that are cut."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.contract import test_claude
from tests.contract.claude_running import Running
from tests.contract.cutting import Relay

from trunkline_adapters.claude.adapter import ClaudeAdapter
from trunkline_adapters.claude.link import SdkUrlLink
from trunkline_agentkit import BackendAdapter, Native, local_start
from trunkline_testkit import eventually
from trunkline_wire.asks import AskDecided, PermissionRequested
from trunkline_wire.session import SessionOptions
from trunkline_wire.turn import MessageSystem, ToolSummary, TurnCompleted


def stand_in(folder: Path, version: str = "2.1.101") -> str:
    program = folder / f"claude-{version}"
    program.symlink_to(test_claude.STAND_IN)
    return str(program)


class TestClaudeSdkUrl(test_claude.TestClaude):
    recordings = ()

    @pytest.fixture(autouse=True)
    def _program(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        self.program = stand_in(tmp_path_factory.mktemp("program"))

    def make_adapter(self) -> BackendAdapter:
        return ClaudeAdapter({"PATH": os.environ["PATH"], "TRUNKLINE_PROGRAM_CLAUDE": self.program})


@pytest.fixture
async def relay(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Relay]:
    relay = Relay()
    await relay.between(monkeypatch)
    yield relay
    await relay.stop()


@asynccontextmanager
async def running(tmp_path: Path, version: str = "2.1.101", **options: Any) -> AsyncGenerator[Running]:
    source = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "TRUNKLINE_PROGRAM_CLAUDE": stand_in(tmp_path, version),
    }
    adapter = ClaudeAdapter(source)
    agent = Running(
        await adapter.create(local_start(adapter, tmp_path, source=source, options=SessionOptions(**options)))
    )
    reading = asyncio.create_task(agent.read())
    try:
        yield agent
    finally:
        await agent.session.close(grace=1)
        await reading


def summaries(natives: list[Native]) -> list[str]:
    said = [json.loads(native.raw) for native in natives if native.kind == "tool_use_summary"]
    return [one["summary"].split()[0] for one in said]


async def test_connections_that_are_cut_lose_and_double_nothing(relay: Relay, tmp_path: Path) -> None:
    async with running(tmp_path) as agent:
        await agent.say("flood 100")
        for count in (10, 40, 70):
            await agent.wait(ToolSummary, count)
            relay.cut()
        await agent.wait(TurnCompleted)
        assert summaries(agent.natives) == [str(number) for number in range(100)]
        assert relay.connections > 4


async def test_a_prompt_and_a_decision_wait_for_the_next_connection(relay: Relay, tmp_path: Path) -> None:
    async with running(tmp_path) as agent:
        relay.away = True
        relay.cut()
        await agent.say("ask rm x")
        relay.away = False
        asked = await agent.wait(PermissionRequested)
        relay.away = True
        relay.cut()
        await agent.session.decide(asked.ask, AskDecided(ask=asked.ask, behaviour="deny", by="me", message="No"))
        relay.away = False
        done = await agent.wait(TurnCompleted)
        assert json.loads(done.result)["response"]["message"] == "No"
        assert await agent.result("again", 2) == "again"
        assert len(agent.all(TurnCompleted)) == 2


async def test_what_nobody_reads_makes_the_agent_wait_and_comes_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline_agentkit.unread.UNREAD_LIMIT", 1_000_000)
    source = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TRUNKLINE_PROGRAM_CLAUDE": stand_in(tmp_path)}
    adapter = ClaudeAdapter(source)
    session = await adapter.create(local_start(adapter, tmp_path, source=source))
    agent = Running(session)
    await agent.say("flood 60")
    await eventually(lambda: session.unread > 1_000_000)
    assert session.unread < 1_300_000
    reading = asyncio.create_task(agent.read())
    await agent.wait(TurnCompleted)
    assert summaries(agent.natives) == [str(number) for number in range(60)]
    await session.close(grace=1)
    await reading


async def test_the_server_is_for_its_own_agent_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    links: list[SdkUrlLink] = []
    attach = SdkUrlLink.attach

    def note(link: SdkUrlLink, process: Any) -> None:
        links.append(link)
        attach(link, process)

    monkeypatch.setattr(SdkUrlLink, "attach", note)
    async with running(tmp_path) as agent, aiohttp.ClientSession() as client:
        environment = json.loads(await agent.result("environment"))
        token = environment["CLAUDE_CODE_SESSION_ACCESS_TOKEN"]
        assert token not in await asyncio.to_thread(Path(f"/proc/{agent.session.pid}/cmdline").read_text)
        assert "127.0.0.1" in environment["NO_PROXY"].split(",")
        seen = len(agent.natives)
        events = links[0].url.replace("ws:", "http:").replace("/ws/", "/session/") + "/events"
        for headers in ({}, {"Authorization": "Bearer guessed"}):
            async with client.post(events, json={"events": [{"type": "result"}]}, headers=headers) as answer:
                assert answer.status == 401
            with pytest.raises(aiohttp.WSServerHandshakeError, match="401"):
                await client.ws_connect(links[0].url, headers=headers)
        assert len(agent.natives) == seen


@pytest.mark.parametrize(("version", "notices"), [("2.1.101", 0), ("2.1.332", 1)])
async def test_a_version_that_takes_no_host_runs_over_stdio_and_says_so(
    tmp_path: Path, version: str, notices: int
) -> None:
    async with running(tmp_path, version, native={"transport": "sdk-url"}) as agent:
        assert await agent.result("hello") == "hello"
        said = [notice.text for notice in agent.all(MessageSystem)]
        assert len(said) == notices
        assert all(version in text and "stdio" in text for text in said)


async def test_an_older_version_speaks_over_stdio_where_it_is_told_to(tmp_path: Path) -> None:
    async with running(tmp_path, native={"transport": "stdio"}) as agent:
        assert "CLAUDE_CODE_SESSION_ACCESS_TOKEN" not in json.loads(await agent.result("environment"))

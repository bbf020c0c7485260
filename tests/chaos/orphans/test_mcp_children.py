"""Scenario 3: `kill -9` of the worker in mid-turn while the real CLI has two MCP servers as children."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.chaos.orphans.conftest import belonging

from trunkline_testkit import eventually
from trunkline_testkit.agents import agent_env, claude_path
from trunkline_testkit.model_api import ScriptedApi
from trunkline_testkit.processes import kill_all, marked
from trunkline_testkit.product import Product, running
from trunkline_wire.ids import new_session_id

pytestmark = [pytest.mark.chaos, pytest.mark.live, pytest.mark.slow]

SERVER = str(Path(__file__).with_name("mcp_server.py"))


@pytest_asyncio.fixture
async def product(chaos_home: Path) -> AsyncIterator[Product]:
    claude = claude_path()
    assert claude is not None, "the real CLI is not installed: run `just agents`"
    async with ScriptedApi() as api:
        environment = {**agent_env(chaos_home, api.url), "TRUNKLINE_PROGRAM_CLAUDE": str(claude)}
        async with running(chaos_home, environment) as product:
            yield product


async def test_a_killed_worker_leaves_no_mcp_server_and_the_session_goes_on(product: Product, tmp_path: Path) -> None:
    session = new_session_id()
    servers = {
        "plain": {"command": sys.executable, "args": [SERVER, session]},
        "forking": {"command": sys.executable, "args": [SERVER, session, "daemon"]},
    }

    def children() -> list[str]:
        return [info.command for info in belonging(session) if SERVER in info.command or "time.sleep" in info.command]

    try:
        async with await product.client() as client:
            options = {"mcp_servers": servers, "native": {"strict_mcp_config": True}}
            await client.call("session.create", session=session, adapter="claude", cwd=str(tmp_path), options=options)
            await client.subscribe(session, start="start")
            await client.call("session.prompt", session=session, text="SAY=one")
            await client.wait("turn.completed", within=60)
            native = (await client.wait("session.initialized"))["data"]["native_session"]
            await client.call("session.prompt", session=session, text="SCENARIO=hold")
            await client.wait("turn.started", count=2)
            await eventually(lambda: len(children()) == 3, 20)
            # The daemon has lost its mark, its group and its parent.
            assert len(marked("TRUNKLINE_SESSION", session)) < len(belonging(session))

            old = product.kill("adapters")
            await eventually(lambda: belonging(session) == [], 10)
            aborted = await client.wait("turn.completed", count=2, within=20)
            assert aborted["data"]["outcome"] == "aborted"
            await product.restarted("adapters", old)

            await client.call("session.prompt", session=session, text="SAY=two")
            await client.wait("turn.completed", count=3, within=60)
            again = (await client.wait("session.initialized", count=2))["data"]["native_session"]
            assert again == native
            await eventually(lambda: len(children()) == 3, 20)

            await client.call("session.command", session=session, verb="close")
            await client.wait("session.closed")
            assert belonging(session) == []
    finally:
        kill_all(belonging(session))

"""The adapter of the Agent SDK: the real SDK in this process, with the stand-in for its CLI over real pipes."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.contract import test_claude
from tests.contract.running import Running

from trunkline_adapters.claude_sdk import sdk
from trunkline_adapters.claude_sdk.adapter import ClaudeSdkAdapter
from trunkline_adapters.claude_sdk.session import ClaudeSdkSession, Decisions
from trunkline_agentkit import BackendAdapter, local_start
from trunkline_testkit.agents import require
from trunkline_wire import TrunklineError
from trunkline_wire.asks import AskDecided, PermissionRequested
from trunkline_wire.session import SessionOptions
from trunkline_wire.turn import TurnCompleted

needs_sdk = pytest.mark.matrix


def source_of(home: Path) -> dict[str, str]:
    bundled = require("claude-sdk").resolve()
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "TRUNKLINE_CLAUDE_SDK_PATH": str(bundled.parents[2]),
        "TRUNKLINE_CLAUDE_SDK_CLI": str(test_claude.STAND_IN),
    }


@needs_sdk
class TestClaudeSdk(test_claude.TestClaude):
    adapter_name = "claude-sdk"
    recordings = ()

    def make_adapter(self) -> BackendAdapter:
        return ClaudeSdkAdapter(source_of(Path("/")))


@asynccontextmanager
async def running(
    tmp_path: Path, behaviour: str = "", hooks: Mapping[str, Any] | None = None, **options: Any
) -> AsyncGenerator[Running[ClaudeSdkSession]]:
    adapter = ClaudeSdkAdapter(source_of(tmp_path), hooks)
    chosen = SessionOptions(environment={"STAND_IN": behaviour}, **options)
    start = local_start(adapter, tmp_path, source=source_of(tmp_path), options=chosen)
    agent = Running(await adapter.create(start))
    reading = asyncio.create_task(agent.read())
    try:
        yield agent
    finally:
        await agent.session.close(grace=1)
        await reading


@needs_sdk
async def test_a_decision_goes_through_the_callback_once(tmp_path: Path) -> None:
    async with running(tmp_path) as agent:
        await agent.say("ask rm x")
        asked = await agent.wait(PermissionRequested)
        assert await agent.session.pending() == {asked.ask}
        decision = AskDecided(ask=asked.ask, behaviour="allow", by="me", updated_input={"command": "ls"})
        await agent.session.decide(asked.ask, decision)
        answer = json.loads((await agent.wait(TurnCompleted)).result)
        assert answer["response"] == {"behavior": "allow", "updatedInput": {"command": "ls"}}
        with pytest.raises(TrunklineError) as error:
            await agent.session.decide(asked.ask, decision)
        assert error.value.code == "unknown_ask"


async def test_a_call_gets_one_answer() -> None:
    decisions = Decisions(None)
    decisions.decide("toolu_1", {"behavior": "deny", "message": "No"})
    with pytest.raises(TrunklineError) as error:
        decisions.decide("toolu_1", {"behavior": "allow"})
    assert error.value.code == "unknown_ask"


@needs_sdk
@pytest.mark.parametrize("subtype", ["hook_callback", "mcp_message", "request_user_dialog", "from_the_future"])
async def test_no_request_of_the_agent_stays_unanswered(tmp_path: Path, subtype: str) -> None:
    async with running(tmp_path) as agent:
        assert json.loads(await agent.result(f"request {subtype}"))["request_id"] == "x-1"


@needs_sdk
@pytest.mark.parametrize(
    ("behaviour", "code", "said"),
    [("exit", "agent_failed", "this directory is cursed"), ("signed_out", "agent_auth", "/login")],
)
async def test_an_agent_that_ends_at_once(tmp_path: Path, behaviour: str, code: str, said: str) -> None:
    async with asyncio.timeout(20):
        with pytest.raises(TrunklineError, match=said) as error:
            async with running(tmp_path, behaviour):
                pass
    assert error.value.code == code


@needs_sdk
async def test_secrets_are_neither_arguments_nor_inherited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    servers = {"db": {"command": "db", "env": {"PASSWORD": "hunter2"}}}
    async with running(tmp_path, mcp_servers=servers, system_prompt="hunter3") as agent:
        arguments = await asyncio.to_thread(Path(f"/proc/{agent.session.pid}/cmdline").read_text)
        assert "hunter" not in arguments
        environment = json.loads(await agent.result("environment"))
        assert "GITHUB_TOKEN" not in environment
        assert environment["CLAUDE_CODE_ENTRYPOINT"] == "sdk-py"


async def test_a_missing_sdk_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sdk, "_PACKAGE", "no_such_sdk")
    with pytest.raises(TrunklineError, match=r"pip install 'trunkline\[claude-sdk\]'") as error:
        await ClaudeSdkAdapter({}).probe()
    assert error.value.code == "agent_not_found"

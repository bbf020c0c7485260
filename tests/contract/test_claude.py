"""The Claude adapter over its real transport, against a stand-in for the CLI that speaks the native protocol."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.contract.claude_running import Running
from tests.unit.claude.recorded import RECORDINGS

from trunkline_adapters.claude import control
from trunkline_adapters.claude import session as session_module
from trunkline_adapters.claude.adapter import ClaudeAdapter
from trunkline_agentkit import BackendAdapter, Fact, local_start
from trunkline_agentkit.contract import AdapterContract, Behaviour, More
from trunkline_testkit import eventually
from trunkline_wire import TrunklineError
from trunkline_wire.asks import AskDecided, PermissionRequested
from trunkline_wire.session import SessionInitialized, SessionOptions, SessionUpdated
from trunkline_wire.turn import ToolSummary, TurnCompleted, TurnStarted
from trunkline_wire.work import NativeMessage

STAND_IN = Path(__file__).parent / "claude_stand_in.py"


class TestClaude(AdapterContract):
    adapter_name = "claude"
    prompts: ClassVar[Mapping[Behaviour | More, str]] = {
        "say": "hello there",
        "long": "long",
        "ask": "ask ls",
        "question": "question",
        "crash": "die 3",
        "slow": "slow",
        "huge": "huge 1000000",
        "tool": "ask ls",
        "err400": "err400",
        "err401": "err401",
        "err429": "err429",
        "err500": "err500",
    }
    changed_input: ClassVar[Mapping[str, str]] = {"command": "ls -l"}
    recordings = sorted(RECORDINGS.glob("*/native.jsonl"))

    def make_adapter(self) -> BackendAdapter:
        return ClaudeAdapter({"PATH": os.environ["PATH"], "TRUNKLINE_PROGRAM_CLAUDE": str(STAND_IN)})


@pytest.fixture
def adapter_source(tmp_path: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TRUNKLINE_PROGRAM_CLAUDE": str(STAND_IN)}


@asynccontextmanager
async def running(
    source: dict[str, str], tmp_path: Path, behaviour: str = "", **options: Any
) -> AsyncGenerator[Running]:
    adapter = ClaudeAdapter(source)
    chosen = SessionOptions(environment={"STAND_IN": behaviour}, **options)
    start = local_start(adapter, tmp_path, source=source, options=chosen)
    opened = Running(await adapter.create(start))
    reading = asyncio.create_task(opened.read())
    try:
        yield opened
    finally:
        await opened.session.close(grace=1)
        await reading


async def test_a_turn_from_prompt_to_result(adapter_source: dict[str, str], tmp_path: Path) -> None:
    async with running(adapter_source, tmp_path) as agent:
        assert await agent.result("hello") == "hello"
        starts = [
            out
            for native in agent.natives
            for out in native.out
            if isinstance(out, Fact) and isinstance(out.data, TurnStarted)
        ]
        assert [start.cause for start in starts] == ["cmd_1"]
        initialized = await agent.wait(SessionInitialized)
        assert [choice.id for choice in initialized.models] == ["m"]
        assert all(json.loads(native.raw) for native in agent.natives)
        assert await agent.result("again", 2) == "again"


async def test_a_decision_reaches_the_agent_once(adapter_source: dict[str, str], tmp_path: Path) -> None:
    async with running(adapter_source, tmp_path) as agent:
        await agent.say("ask rm x")
        asked = await agent.wait(PermissionRequested)
        decision = AskDecided(ask=asked.ask, behaviour="allow", by="me", updated_input={"command": "ls"})
        await agent.session.decide(asked.ask, decision)
        assert json.loads((await agent.wait(TurnCompleted)).result)["response"] == {
            "behavior": "allow",
            "updatedInput": {"command": "ls"},
        }
        with pytest.raises(TrunklineError) as error:
            await agent.session.decide(asked.ask, decision)
        assert error.value.code == "unknown_ask"


async def test_pending_asks_are_asked_for(adapter_source: dict[str, str], tmp_path: Path) -> None:
    async with running(adapter_source, tmp_path) as agent:
        await agent.say("ask rm x")
        asked = await agent.wait(PermissionRequested)
        assert await agent.session.pending() == {asked.ask}


async def test_an_older_cli_cannot_say_what_is_pending(adapter_source: dict[str, str], tmp_path: Path) -> None:
    async with running(adapter_source, tmp_path, "old") as agent:
        assert await agent.session.pending() is None


@pytest.mark.parametrize("subtype", ["hook_callback", "mcp_message", "request_user_dialog", "from_the_future"])
async def test_no_request_of_the_agent_stays_unanswered(
    adapter_source: dict[str, str], tmp_path: Path, subtype: str
) -> None:
    async with running(adapter_source, tmp_path) as agent:
        assert json.loads(await agent.result(f"request {subtype}"))["request_id"] == "x-1"


async def test_settings_take_effect_and_are_told(adapter_source: dict[str, str], tmp_path: Path) -> None:
    async with running(adapter_source, tmp_path, thinking="low") as agent:
        await agent.session.set_model("m2")
        await agent.session.set_thinking("max")
        await agent.session.rename("a title")
        await agent.wait(SessionUpdated, 3)
        updates = agent.all(SessionUpdated)
        assert [(update.model, update.thinking) for update in updates] == [(None, "low"), ("m2", None), (None, "max")]


async def test_refusals_have_codes(adapter_source: dict[str, str], tmp_path: Path) -> None:
    async with running(adapter_source, tmp_path) as agent:
        for call, code in (
            (agent.session.set_mode("sideways"), "bad_params"),
            (agent.session.native("teleport", {}), "unsupported"),
            (agent.session.rewind("cmd_1"), "unsupported"),
        ):
            with pytest.raises(TrunklineError) as error:
                await call
            assert error.value.code == code


async def test_a_silent_agent_is_not_waited_for_without_end(
    adapter_source: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(adapter_source, tmp_path, "mute") as agent:
        monkeypatch.setattr(control, "DEADLINE", 0.05)
        with pytest.raises(TrunklineError, match=r"'set_model' within 0\.05 s") as error:
            await agent.session.set_model("m")
        assert error.value.code == "timeout"
        # What comes late is no one's any more, and the session goes on.
        assert await agent.result("still here") == "still here"


async def test_a_banner_does_not_stop_the_stream(adapter_source: dict[str, str], tmp_path: Path) -> None:
    async with running(adapter_source, tmp_path) as agent:
        assert await agent.result("banner") == "printed"
        (kept,) = agent.all(NativeMessage)
        assert (kept.known, kept.reason) == (False, "not_json")


async def test_what_nobody_reads_makes_the_agent_wait(
    adapter_source: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline_agentkit.unread.UNREAD_LIMIT", 1_000_000)
    adapter = ClaudeAdapter(adapter_source)
    session = await adapter.create(local_start(adapter, tmp_path, source=adapter_source))
    agent = Running(session)
    await agent.say("flood 200")
    await eventually(lambda: session.unread > 1_000_000)
    assert session.unread < 1_300_000
    reading = asyncio.create_task(agent.read())
    await agent.wait(TurnCompleted)
    assert [summary.summary.split()[0] for summary in agent.all(ToolSummary)] == [str(n) for n in range(200)]
    await session.close(grace=1)
    await reading


async def test_closing_keeps_what_was_not_read_yet(adapter_source: dict[str, str], tmp_path: Path) -> None:
    adapter = ClaudeAdapter(adapter_source)
    session = await adapter.create(local_start(adapter, tmp_path, source=adapter_source))
    agent = Running(session)
    await agent.say("last words")
    end = await session.close(grace=10)
    assert (end.code, end.signal) == (0, None)
    await agent.read()
    assert (await agent.wait(TurnCompleted)).result == "last words"
    assert await session.close() == end


async def test_a_dead_agent_takes_nothing_and_says_so(adapter_source: dict[str, str], tmp_path: Path) -> None:
    async with running(adapter_source, tmp_path) as agent:
        await agent.say("die 7")
        await eventually(lambda: not agent.session.running)
        for call in (
            agent.session.set_model("m"),
            agent.say("hello"),
            agent.session.interrupt(),
            agent.session.pending(),
        ):
            with pytest.raises(TrunklineError) as error:
                await call
            assert error.value.code == "agent_failed"
        end = await agent.session.close()
        assert (end.code, end.stderr_tail) == (7, "the stand-in dies\n")


async def test_a_request_under_way_fails_when_the_agent_dies(adapter_source: dict[str, str], tmp_path: Path) -> None:
    async with running(adapter_source, tmp_path, "mute") as agent:
        waiting = asyncio.create_task(agent.session.set_model("m"))
        await agent.say("die 7")
        with pytest.raises(TrunklineError) as error:
            await waiting
        assert error.value.code == "agent_failed"


@pytest.mark.parametrize(
    ("behaviour", "code", "said"),
    [("exit", "agent_failed", "this directory is cursed"), ("signed_out", "agent_auth", "/login")],
)
async def test_an_agent_that_ends_at_once(
    adapter_source: dict[str, str], tmp_path: Path, behaviour: str, code: str, said: str
) -> None:
    with pytest.raises(TrunklineError, match=said) as error:
        async with running(adapter_source, tmp_path, behaviour):
            pass
    assert error.value.code == code


async def test_an_agent_that_hangs_at_its_start_is_ended(
    adapter_source: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "START_DEADLINE", 0.3)
    with pytest.raises(TrunklineError) as error:
        async with running(adapter_source, tmp_path, "hang"):
            pass
    assert error.value.code == "timeout"


async def test_the_environment_is_explicit(adapter_source: dict[str, str], tmp_path: Path) -> None:
    source = adapter_source | {"GITHUB_TOKEN": "secret", "ANTHROPIC_API_KEY": "key"}
    async with running(source, tmp_path) as agent:
        environment = json.loads(await agent.result("environment"))
    assert environment["ANTHROPIC_API_KEY"] == "key"
    assert environment["CLAUDE_CODE_TMPDIR"] == environment["TMPDIR"]
    assert "GITHUB_TOKEN" not in environment


async def test_files_with_secrets_are_gone_with_the_agent(adapter_source: dict[str, str], tmp_path: Path) -> None:
    servers = {"db": {"command": "db", "env": {"PASSWORD": "hunter2"}}}
    async with running(adapter_source, tmp_path, mcp_servers=servers) as agent:
        environment = json.loads(await agent.result("environment"))
        file = Path(environment["TMPDIR"]) / "mcp.json"
        assert "hunter2" in file.read_text()
    assert not file.exists()

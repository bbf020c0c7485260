"""The Codex adapter over its real transport, against a fake app-server that speaks the native protocol."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.contract.running import Running
from tests.unit.codex.recorded import RECORDINGS

from trunkline_adapters.codex import session as session_module
from trunkline_adapters.codex.adapter import CodexAdapter
from trunkline_agentkit import BackendAdapter, local_start
from trunkline_agentkit.contract import AdapterContract, Behaviour, More
from trunkline_wire import TrunklineError
from trunkline_wire.asks import AskDecided, AskWithdrawn, PermissionRequested, PlanProposed, QuestionAsked
from trunkline_wire.session import SessionCompacted, SessionInitialized, SessionOptions, SessionUpdated
from trunkline_wire.turn import ToolCompleted, TurnCompleted, TurnStarted

STAND_IN = Path(__file__).parent / "codex_stand_in.py"


class TestCodex(AdapterContract):
    adapter_name = "codex"
    prompts: ClassVar[Mapping[Behaviour | More, str]] = {
        "say": "hello there",
        "long": "long",
        "ask": "ask ls",
        "question": "question",
        "crash": "die 3",
        "slow": "slow",
        "huge": "huge 1000000",
        "err400": "err400",
        "err401": "err401",
        "err429": "err429",
        "err500": "err500",
    }
    exempt: ClassVar[Mapping[Any, str]] = {
        "change": "Codex runs what the model wrote, or nothing",
    }
    recordings = sorted(RECORDINGS.glob("*/native.jsonl"))
    unknown: ClassVar[Mapping[str, Any]] = {"method": "thread/of/next/year", "params": {"threadId": "t"}}

    def make_adapter(self) -> BackendAdapter:
        return CodexAdapter({"PATH": os.environ["PATH"], "TRUNKLINE_PROGRAM_CODEX": str(STAND_IN)})


@pytest.fixture
def adapter_source(tmp_path: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TRUNKLINE_PROGRAM_CODEX": str(STAND_IN)}


@asynccontextmanager
async def running(
    source: dict[str, str], tmp_path: Path, behaviour: str = "", native: str | None = None, **fields: Any
) -> AsyncGenerator[Running[Any]]:
    adapter = CodexAdapter(source)
    fork, options = fields.pop("fork", False), fields.pop("native_options", {})
    chosen = SessionOptions(environment={"STAND_IN": behaviour}, native=options, **fields)
    start = local_start(
        adapter, tmp_path, source=source, options=chosen, native_session=native, fork=fork, temporary=tmp_path
    )
    opened = Running(await (adapter.create if native is None else adapter.resume)(start))
    reading = asyncio.create_task(opened.read())
    try:
        yield opened
    finally:
        await opened.session.close(grace=1)
        await reading


async def test_every_decision_on_a_command_is_put_in_its_own_words(
    adapter_source: dict[str, str], tmp_path: Path
) -> None:
    decisions: list[tuple[dict[str, Any], Any]] = [
        ({"behaviour": "allow"}, "accept"),
        ({"behaviour": "allow", "option": "accept_session"}, "acceptForSession"),
        (
            {"behaviour": "allow", "rule_updates": ["git", "status"]},
            {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["git", "status"]}},
        ),
        ({"behaviour": "deny"}, "decline"),
    ]
    async with running(adapter_source, tmp_path) as agent:
        for count, (decision, native) in enumerate(decisions, 1):
            await agent.say("ask git status", f"cmd_{count}")
            asked = await agent.wait(PermissionRequested, count)
            await agent.session.decide(asked.ask, AskDecided(ask=asked.ask, by="me", **decision))
            assert json.loads((await agent.wait(TurnCompleted, count)).result) == {"decision": native}
        await agent.say("ask git push", "cmd_9")
        asked = await agent.wait(PermissionRequested, 5)
        bad = AskDecided(ask=asked.ask, by="me", behaviour="allow", option="network:3")
        with pytest.raises(TrunklineError) as error:
            await agent.session.decide(asked.ask, bad)
        assert error.value.code == "bad_answer"
        assert await agent.session.pending() == {asked.ask}
        cancel = AskDecided(ask=asked.ask, by="me", behaviour="deny", interrupt=True)
        await agent.session.decide(asked.ask, cancel)
        assert (await agent.wait(TurnCompleted, 5)).outcome == "interrupted"
        assert await agent.session.pending() == set()


async def test_an_answer_is_keyed_by_its_question(adapter_source: dict[str, str], tmp_path: Path) -> None:
    async with running(adapter_source, tmp_path) as agent:
        await agent.say("question")
        asked = await agent.wait(QuestionAsked)
        answer = AskDecided(ask=asked.ask, behaviour="answered", by="me", answers={"colour": "Blue"})
        await agent.session.decide(asked.ask, answer)
        assert json.loads((await agent.wait(TurnCompleted)).result) == {"answers": {"colour": {"answers": ["Blue"]}}}


async def test_who_answers_gives_the_result_of_a_tool_of_ours(adapter_source: dict[str, str], tmp_path: Path) -> None:
    decisions: list[tuple[dict[str, Any], tuple[str, bool]]] = [
        ({"behaviour": "answered", "answers": {"result": "42 degrees"}}, ("42 degrees", True)),
        ({"behaviour": "answered", "answers": {"result": {"c": 6}}}, ('{"c":6}', True)),
        ({"behaviour": "deny", "message": "no"}, ("no", False)),
    ]
    async with running(adapter_source, tmp_path) as agent:
        for count, (decision, result) in enumerate(decisions, 1):
            await agent.say("call Zagreb", f"cmd_{count}")
            asked = await agent.wait(QuestionAsked, count)
            assert asked.message == 'Codex calls weather with {"city":"Zagreb"}'
            await agent.session.decide(asked.ask, AskDecided(ask=asked.ask, by="me", **decision))
            said = json.loads((await agent.wait(TurnCompleted, count)).result)
            assert (said["contentItems"][0]["text"], said["success"]) == result
        assert [done.status for done in agent.all(ToolCompleted)] == ["completed", "completed", "failed"]


async def test_a_request_that_nobody_serves_is_refused(adapter_source: dict[str, str], tmp_path: Path) -> None:
    async with running(adapter_source, tmp_path) as agent:
        for count, method in enumerate(("attestation/generate", "execCommandApproval", "item/of/next/year"), 1):
            said = json.loads(await agent.result(f"request {method}", count))
            assert said["error"]["code"] == -32601


async def test_a_message_is_steered_into_the_running_turn(adapter_source: dict[str, str], tmp_path: Path) -> None:
    async with running(adapter_source, tmp_path) as agent:
        await agent.say("slow")
        await agent.wait(TurnStarted)
        await agent.say("be brief", "cmd_2", delivery="steered")
        await agent.wait(TurnCompleted)
        assert len(agent.all(TurnStarted)) == 1
        # A turn that has ended meanwhile takes nothing: the message begins the next one.
        await agent.say("hello", "cmd_3", delivery="steered")
        assert (await agent.wait(TurnCompleted, 2)).result == "hello"
        assert [fact.cause for fact in agent.facts(TurnStarted)] == ["cmd_1", "cmd_3"]


async def test_an_approved_plan_is_the_next_prompt(adapter_source: dict[str, str], tmp_path: Path) -> None:
    async with running(adapter_source, tmp_path, mode="plan") as agent:
        await agent.turn("plan")
        proposed = await agent.wait(PlanProposed)
        assert proposed.plan == "# Plan"
        assert await agent.session.pending() == {proposed.ask}
        await agent.session.decide(proposed.ask, AskDecided(ask=proposed.ask, behaviour="allow", by="me"))
        assert (await agent.wait(TurnCompleted, 2)).result == "Implement the plan."
        assert [update.mode for update in agent.all(SessionUpdated) if update.mode] == ["plan", "auto"]
        assert agent.all(AskWithdrawn) == []
        with pytest.raises(TrunklineError) as error:
            await agent.session.decide(proposed.ask, AskDecided(ask=proposed.ask, behaviour="deny", by="me"))
        assert error.value.code == "unknown_ask"


async def test_settings_take_effect_and_are_told(adapter_source: dict[str, str], tmp_path: Path) -> None:
    async with running(adapter_source, tmp_path, thinking="max", model="m2") as agent:
        await agent.session.set_mode("full-access")
        await agent.session.set_mode("untrusted/read-only")
        await agent.session.set_model("m")
        await agent.session.set_thinking("off")
        await agent.session.rename("a title")
        await agent.wait(SessionUpdated, 6)
        told = [
            {name: value for name in ("model", "mode", "thinking", "title") if (value := getattr(update, name))}
            for update in agent.all(SessionUpdated)
        ]
        assert told == [
            {"thinking": "xhigh"},
            {"mode": "full-access"},
            {"mode": "untrusted/read-only"},
            {"model": "m"},
            {"thinking": "low"},
            {"title": "a title"},
        ]
        initialized = await agent.wait(SessionInitialized)
        assert [choice.id for choice in initialized.models] == ["m", "m2"]
        assert [choice.id for choice in initialized.commands] == ["review", "tidy"]
        assert initialized.version == "0.0.1"


async def test_commands_begin_turns_of_their_own(adapter_source: dict[str, str], tmp_path: Path) -> None:
    async with running(adapter_source, tmp_path) as agent:
        await agent.session.compact(None, "cmd_1")
        assert (await agent.wait(SessionCompacted)).trigger == "manual"
        await agent.wait(TurnCompleted)
        await agent.session.run_command("/tidy", "up here", "cmd_2")
        assert (await agent.wait(TurnCompleted, 2)).result == "$tidy up here"
        assert [fact.cause for fact in agent.facts(TurnStarted)] == ["cmd_1", "cmd_2"]
        for call, code in (
            (agent.session.run_command("dance", "", "cmd_3"), "bad_params"),
            (agent.session.compact("be brief", "cmd_4"), "unsupported"),
            (agent.session.set_mode("sideways"), "bad_params"),
            (agent.session.native("teleport", {}), "unsupported"),
            (agent.session.native("thread/revert", {"before": "cmd_0"}), "bad_params"),
            (agent.session.rewind("cmd_1"), "unsupported"),
            (agent.session.interrupt(), "stale_target"),
        ):
            with pytest.raises(TrunklineError) as error:
                await call
            assert error.value.code == code


async def test_native_requests_are_of_the_sessions_thread(adapter_source: dict[str, str], tmp_path: Path) -> None:
    async with running(adapter_source, tmp_path) as agent:
        page = await agent.session.native("thread/turns/list", {"limit": 1})
        assert page == {"data": [], "nextCursor": None}
        said = await agent.session.native("review/start", {"target": {"type": "uncommittedChanges"}})
        assert set(said["echo"]) == {"threadId", "target"}
        assert (await agent.session.native("thread/list", {"limit": 2})) == {"echo": {"limit": 2}}


async def test_a_fork_is_another_thread(adapter_source: dict[str, str], tmp_path: Path) -> None:
    async with running(adapter_source, tmp_path, native="some-thread", fork=True) as agent:
        assert (await agent.wait(SessionInitialized)).native_session.endswith("2")


async def test_a_schema_goes_with_every_turn(adapter_source: dict[str, str], tmp_path: Path) -> None:
    schema = {"type": "object"}
    async with running(adapter_source, tmp_path, output_schema=schema) as agent:
        done = await agent.turn("params")
        assert done.structured_output["outputSchema"] == schema
        assert done.structured_output["clientUserMessageId"] == "cmd_1"


async def test_the_environment_is_explicit(adapter_source: dict[str, str], tmp_path: Path) -> None:
    source = adapter_source | {"GITHUB_TOKEN": "secret", "OPENAI_API_KEY": "key", "CODEX_HOME": str(tmp_path)}
    async with running(source, tmp_path) as agent:
        environment = json.loads(await agent.result("environment"))
    assert environment["OPENAI_API_KEY"] == "key"
    assert environment["CODEX_HOME"] == str(tmp_path)
    assert "GITHUB_TOKEN" not in environment


@pytest.mark.parametrize(
    ("behaviour", "code", "said"),
    [("exit", "agent_failed", "this directory is cursed"), ("signed_out", "agent_auth", "run `codex login`")],
)
async def test_an_agent_that_can_not_begin(
    adapter_source: dict[str, str], tmp_path: Path, behaviour: str, code: str, said: str
) -> None:
    with pytest.raises(TrunklineError, match=said) as error:
        async with running(adapter_source, tmp_path, behaviour):
            pass
    assert error.value.code == code


async def test_a_thread_that_is_gone_is_lost_history(adapter_source: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(TrunklineError) as error:
        async with running(adapter_source, tmp_path, native="lost"):
            pass
    assert error.value.code == "history_lost"


async def test_a_silent_agent_is_not_waited_for_without_end(
    adapter_source: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(adapter_source, tmp_path, "mute") as agent:
        monkeypatch.setattr(session_module, "DEADLINE", 0.05)
        with pytest.raises(TrunklineError) as error:
            await agent.session.set_model("m")
        assert error.value.code == "timeout"
    monkeypatch.setattr(session_module, "START_DEADLINE", 0.3)
    with pytest.raises(TrunklineError) as error:
        async with running(adapter_source, tmp_path, "hang"):
            pass
    assert error.value.code == "timeout"


async def test_unknown_native_options_are_refused_by_name(adapter_source: dict[str, str], tmp_path: Path) -> None:
    for native, code in (({"profile": "x"}, "unsupported"), ({"config": 7}, "bad_params")):
        with pytest.raises(TrunklineError) as error:
            async with running(adapter_source, tmp_path, native_options=native):
                pass
        assert error.value.code == code


async def test_a_codex_without_a_server_runs_one_prompt_after_the_other(
    adapter_source: dict[str, str], tmp_path: Path
) -> None:
    async with running(adapter_source, tmp_path, native_options={"interface": "exec"}, mode="no-questions") as agent:
        assert await agent.result("two\nlines") == "two\nlines"
        first = json.loads(await agent.result("arguments", 2))
        assert first[:2] == ["exec", "resume"]
        assert [fact.cause for fact in agent.facts(TurnStarted)] == ["cmd_1", "cmd_2"]
        (initialized,) = agent.all(SessionInitialized)
        assert not initialized.capabilities.interrupt
        assert not initialized.capabilities.streaming
        assert initialized.capabilities.resume


async def test_a_run_that_dies_ends_the_session(adapter_source: dict[str, str], tmp_path: Path) -> None:
    async with running(adapter_source, tmp_path, native_options={"interface": "exec"}) as agent:
        await agent.say("die 7")
        await agent.wait(TurnStarted)
        end = await agent.session.close()
        assert (end.code, end.stderr_tail) == (7, "the fake dies\n")
        with pytest.raises(TrunklineError) as error:
            await agent.say("hello")
        assert error.value.code == "agent_failed"


@pytest.mark.parametrize(
    "fields", [{"mode": "auto"}, {"thinking": "high"}, {"native": "thread", "fork": True}, {"system_prompt": "s"}]
)
async def test_what_only_a_server_can_do_is_refused_without_one(
    adapter_source: dict[str, str], tmp_path: Path, fields: dict[str, Any]
) -> None:
    with pytest.raises(TrunklineError, match="update Codex") as error:
        async with running(adapter_source, tmp_path, native_options={"interface": "exec"}, **fields):
            pass
    assert error.value.code == "unsupported"

"""The OpenCode adapter over its real transport, against a fake server that speaks the native protocol."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest
from tests.contract.running import Running

from trunkline_adapters.opencode import server as server_module
from trunkline_adapters.opencode import session as session_module
from trunkline_adapters.opencode.adapter import OpenCodeAdapter
from trunkline_agentkit import BackendAdapter, local_start
from trunkline_agentkit.contract import AdapterContract, Behaviour, More
from trunkline_wire import TrunklineError
from trunkline_wire.asks import AskDecided, PermissionRequested
from trunkline_wire.blocks import join_text
from trunkline_wire.session import SessionCompacted, SessionInitialized, SessionOptions
from trunkline_wire.turn import (
    MessageAssistant,
    MessageSystem,
    MessageUser,
    ToolCompleted,
    ToolStarted,
    TurnCompleted,
    TurnStarted,
)
from trunkline_wire.work import TaskUpdated

SESSION = "ses_" + "c" * 32
STAND_IN = Path(__file__).parent / "opencode_stand_in.py"


class TestOpenCode(AdapterContract):
    adapter_name = "opencode"
    prompts: ClassVar[Mapping[Behaviour | More, str]] = {
        "say": "hello there",
        "recall": "recall",
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
        "drop": "drop",
    }
    exempt: ClassVar[Mapping[Any, str]] = {"change": "the agent runs what its model wrote, or nothing"}
    unknown: ClassVar[Mapping[str, Any]] = {"sse": "/event", "data": {"type": "thing.of.next.year", "properties": {}}}
    said = "hello there"
    tool_output = "done"

    def make_adapter(self) -> BackendAdapter:
        return OpenCodeAdapter(self._source())

    def source(self, tmp_path: Path) -> dict[str, str]:
        return self._source() | {"HOME": str(tmp_path), "LANG": "C.UTF-8"}

    def _source(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "TRUNKLINE_PROGRAM_OPENCODE": str(STAND_IN)}


@pytest.fixture
def source(tmp_path: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TRUNKLINE_PROGRAM_OPENCODE": str(STAND_IN)}


@asynccontextmanager
async def running(
    source: dict[str, str], tmp_path: Path, behaviour: str = "", native: str | None = None, **fields: Any
) -> AsyncGenerator[Running[Any]]:
    adapter = OpenCodeAdapter(source)
    fork, options = fields.pop("fork", False), fields.pop("native_options", {})
    variables = {"STAND_IN": behaviour, "STAND_IN_MARKER": str(tmp_path / "marker")}
    start = local_start(
        adapter,
        tmp_path,
        source=source,
        options=SessionOptions(environment=variables, native=options, **fields),
        native_session=native,
        fork=fork,
        temporary=tmp_path,
        session=SESSION,
        recording=tmp_path / "native.jsonl",
    )
    opened = Running(await (adapter.create if native is None else adapter.resume)(start))
    reading = asyncio.create_task(opened.read())
    try:
        yield opened
    finally:
        await opened.session.close(grace=1)
        await reading


async def test_every_decision_is_put_in_its_own_words(source: dict[str, str], tmp_path: Path) -> None:
    decisions: list[tuple[dict[str, Any], Any]] = [
        ({"behaviour": "allow"}, {"reply": "once"}),
        ({"behaviour": "allow", "option": "always"}, {"reply": "always"}),
        ({"behaviour": "deny", "message": "not now"}, {"reply": "reject", "message": "not now"}),
        ({"behaviour": "deny"}, {"reply": "reject", "message": "The user rejected this."}),
    ]
    async with running(source, tmp_path) as agent:
        for count, (decision, native) in enumerate(decisions, 1):
            await agent.say("ask git status", f"cmd_{count}")
            asked = await agent.wait(PermissionRequested, count)
            await agent.session.decide(asked.ask, AskDecided(ask=asked.ask, by="me", **decision))
            assert json.loads((await agent.wait(TurnCompleted, count)).result) == native
        await agent.say("ask git push", "cmd_9")
        asked = await agent.wait(PermissionRequested, 5)
        changed = AskDecided(ask=asked.ask, by="me", behaviour="allow", updated_input={"command": "ls"})
        with pytest.raises(TrunklineError) as error:
            await agent.session.decide(asked.ask, changed)
        assert error.value.code == "bad_answer"
        assert await agent.session.pending() == {asked.ask}
        stop = AskDecided(ask=asked.ask, by="me", behaviour="deny", option="stop")
        await agent.session.decide(asked.ask, stop)
        assert (await agent.wait(TurnCompleted, 5)).outcome == "interrupted"
        assert [tool.status for tool in agent.all(ToolCompleted)] == ["completed", "completed"] + ["rejected"] * 3


async def test_a_sub_agent_is_told_in_its_lane_and_a_stranger_not_at_all(
    source: dict[str, str], tmp_path: Path
) -> None:
    async with running(source, tmp_path) as agent:
        await agent.say("child hello from below")
        assert (await agent.wait(TurnCompleted)).result == "child done"
        (call,) = agent.facts(ToolStarted)
        spoken = {
            fact.lane: join_text(cast("MessageAssistant", fact.data).content) for fact in agent.facts(MessageAssistant)
        }
        assert spoken == {call.item: "hello from below", None: "child done"}
        assert [task.status for task in agent.all(TaskUpdated)] == ["running", "completed"]
        await agent.turn("foreign", 2)
        assert b"secret" not in b"".join(native.raw for native in agent.natives)


async def test_model_mode_and_thinking_go_with_every_prompt(source: dict[str, str], tmp_path: Path) -> None:
    async with running(source, tmp_path, mode="plan", thinking="high", append_system_prompt="be kind") as agent:
        first = json.loads(await agent.result("params"))
        assert first == {"agent": "plan", "variant": "high", "system": "be kind"}
        await agent.session.set_mode("build")
        await agent.session.set_model("m")
        await agent.session.set_thinking("low")
        second = json.loads(await agent.result("params", 2))
        assert second["model"] == {"providerID": "p", "modelID": "m"}
        assert (second["agent"], second["variant"]) == ("build", "low")
        (initialized,) = agent.all(SessionInitialized)
        assert [mode.id for mode in initialized.modes] == ["build", "plan"]
        assert [one.id for one in initialized.agents] == ["general"]
        assert [model.id for model in initialized.models] == ["p/m"]
        assert [command.id for command in initialized.commands] == ["hello", "shell", "compact"]
        for call in (
            agent.session.set_mode("title"),
            agent.session.set_model("none"),
            agent.session.set_thinking("medium"),
            agent.session.run_command("dance", "", "cmd_3"),
            agent.session.native("dance", {}),
        ):
            with pytest.raises(TrunklineError) as error:
                await call
            assert error.value.code == "bad_params"


async def test_commands_begin_turns_of_their_own(source: dict[str, str], tmp_path: Path) -> None:
    async with running(source, tmp_path) as agent:
        await agent.session.run_command("/hello", "world", "cmd_1")
        assert (await agent.wait(TurnCompleted)).result == "hello world"
        await agent.session.run_command("shell", "ls", "cmd_2")
        await agent.wait(TurnCompleted, 2)
        assert [tool.status for tool in agent.all(ToolCompleted)] == ["completed"]
        await agent.session.compact(None, "cmd_3")
        await agent.wait(TurnCompleted, 3)
        assert [one.trigger for one in agent.all(SessionCompacted)] == ["manual"]
        assert [fact.cause for fact in agent.facts(TurnStarted)] == ["cmd_1", "cmd_2", "cmd_3"]


async def test_a_request_that_the_server_lacks_is_unsupported_though_it_answers_200(
    source: dict[str, str], tmp_path: Path
) -> None:
    async with running(source, tmp_path) as agent:
        with pytest.raises(TrunklineError, match="update the agent") as error:
            await agent.session.native("GET /nothing/of/the/kind", {})
        assert error.value.code == "unsupported"


async def test_a_model_that_can_not_be_reached_is_given_up(source: dict[str, str], tmp_path: Path) -> None:
    async with running(source, tmp_path, native_options={"attempts": 2}) as agent:
        await agent.say("err500")
        ended = await agent.wait(TurnCompleted)
        assert (ended.outcome, ended.error.code) == ("error", "agent_failed")
        assert "the model answers 500" in ended.error.message
        assert await agent.result("hello", 2) == "hello"


async def test_an_answer_that_always_breaks_off_is_given_up(source: dict[str, str], tmp_path: Path) -> None:
    async with running(source, tmp_path) as agent:
        await agent.say("drop")
        ended = await agent.wait(TurnCompleted)
        assert (ended.outcome, ended.error.message) == ("error", "the model's answer broke off 5 times in a row")
        assert {one.kind for one in agent.all(MessageSystem)} == {"stream_dropped"}


async def test_a_prompt_that_the_server_forgot_is_sent_again(
    source: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "GRACE", 0.3)
    async with running(source, tmp_path, "loses") as agent:
        await agent.say("slow")
        await agent.wait(TurnStarted)
        await agent.say("I am here", "cmd_2", delivery="steered")
        assert (await agent.wait(TurnCompleted, 2)).result == "I am here"
        assert [fact.cause for fact in agent.facts(TurnStarted)] == ["cmd_1", "cmd_2"]


async def test_a_prompt_that_is_never_answered_is_told_as_cancelled(
    source: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "GRACE", 0.1)
    async with running(source, tmp_path, "forgetful") as agent:
        await agent.say("slow")
        await agent.wait(TurnStarted)
        await agent.say("I am here", "cmd_2", delivery="steered")
        told = await agent.wait(MessageUser)
        assert (told.command, told.delivery) == ("cmd_2", "cancelled")


async def test_no_secret_is_in_arguments_messages_or_recordings(source: dict[str, str], tmp_path: Path) -> None:
    async with running(source | {"OPENCODE_X": "kept", "GITHUB_TOKEN": "no"}, tmp_path) as agent:
        environment = json.loads(await agent.result("environment"))
        assert environment["OPENCODE_SERVER_PASSWORD"] == "[redacted]"
        assert environment["OPENCODE_X"] == "kept"
        assert "GITHUB_TOKEN" not in environment
        said = b"".join(native.raw for native in agent.natives) + (tmp_path / "native.jsonl").read_bytes()
        assert b"sk-config-secret" not in said
        assert b"sk-provider-secret" not in said


async def test_a_port_that_was_taken_is_exchanged_for_another(source: dict[str, str], tmp_path: Path) -> None:
    async with running(source, tmp_path, "taken") as agent:
        assert await agent.result("hello") == "hello"


@pytest.mark.parametrize(
    ("behaviour", "code", "said"), [("exit", "agent_failed", "this directory is cursed"), ("deaf", "timeout", "listen")]
)
async def test_a_server_that_can_not_begin(
    source: dict[str, str], tmp_path: Path, behaviour: str, code: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "START_DEADLINE", 2.0 if behaviour == "deaf" else 60.0)
    with pytest.raises(TrunklineError, match=said) as error:
        async with running(source, tmp_path, behaviour):
            pass
    assert error.value.code == code


async def test_a_session_that_is_gone_is_lost_history(source: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(TrunklineError) as error:
        async with running(source, tmp_path, native="ses_gone"):
            pass
    assert error.value.code == "history_lost"


async def test_a_fork_and_a_resumed_session_tell_nothing_of_the_past(source: dict[str, str], tmp_path: Path) -> None:
    async with running(source, tmp_path) as agent:
        await agent.turn("one")
        native = (await agent.wait(SessionInitialized)).native_session
        told = await agent.session.rewind("cmd_1", dry_run=True)
        assert told == {"files": ["a.txt"]}
    for fork in (False, True):
        async with running(source, tmp_path, native=native, fork=fork) as agent:
            assert (await agent.turn("two", 1)).result == "two"
            assert [block.content[0].text for block in agent.all(MessageAssistant)] == ["two"]
            assert ((await agent.wait(SessionInitialized)).native_session == native) is not fork


async def test_unknown_native_options_are_refused_by_name(source: dict[str, str], tmp_path: Path) -> None:
    for native, code in (({"profile": "x"}, "unsupported"), ({"attempts": "many"}, "bad_params")):
        with pytest.raises(TrunklineError) as error:
            async with running(source, tmp_path, native_options=native):
                pass
        assert error.value.code == code

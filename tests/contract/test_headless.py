"""The headless adapter over its real transport, against a fake that speaks the dialects of the real agents."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest
from tests.contract.running import Running
from tests.unit.headless.recorded import RECORDINGS

from trunkline_adapters.headless import session as session_module
from trunkline_adapters.headless.adapter import HeadlessAdapter
from trunkline_adapters.headless.profiles import PROFILES, Profile
from trunkline_adapters.headless.session import HeadlessSession
from trunkline_agentkit import BackendAdapter, Start, local_start
from trunkline_agentkit.contract import AdapterContract, Behaviour, More
from trunkline_testkit import eventually, processes
from trunkline_wire import TrunklineError
from trunkline_wire.blocks import ImageBlock, join_text
from trunkline_wire.session import SessionInitialized, SessionOptions, SessionUpdated
from trunkline_wire.turn import (
    MessageAssistant,
    MessageSystem,
    ToolCompleted,
    TurnCompleted,
    TurnStarted,
)
from trunkline_wire.work import NativeMessage

STAND_IN = Path(__file__).parent / "headless_stand_in.py"
AGENTS = tuple(sorted(PROFILES.shipped))


def source(tmp_path: Path) -> dict[str, str]:
    programs = {f"TRUNKLINE_PROGRAM_HEADLESS_{name.upper().replace('-', '_')}": str(STAND_IN) for name in AGENTS}
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **programs}


class HeadlessContract(AdapterContract):
    adapter_name = "headless"
    agent: ClassVar[str]
    prompts: ClassVar[Mapping[Behaviour | More, str]] = {
        "say": "hello there",
        "long": "long",
        "crash": "die",
        "slow": "slow",
        "huge": "huge 1000000",
        "tool": "tool ls",
        "err400": "err400",
        "err401": "err401",
        "err429": "err429",
        "err500": "err500",
    }
    exempt: ClassVar[Mapping[Any, str]] = {
        "ask": "it has no way to ask: its mode says what it may do",
        "question": "likewise",
        "change": "likewise",
        "plan": "likewise",
        "second": "its process takes one prompt: the next one waits for the end of the turn",
        "stays": "its process is one turn's",
    }
    tool_output = "it-ran"

    def make_adapter(self) -> BackendAdapter:
        return HeadlessAdapter(source(Path("/nowhere")))

    def options(self) -> SessionOptions:
        return SessionOptions(environment=self.environment)

    def start(
        self, adapter: BackendAdapter, tmp_path: Path, behaviour: Behaviour | More = "say", **fields: Any
    ) -> Start:
        self.environment = {"STAND_IN_STATE": str(tmp_path)}
        return super().start(adapter, tmp_path, behaviour, agent=self.agent, **fields)


class TestGemini(HeadlessContract):
    agent = "gemini"
    recordings = sorted(RECORDINGS.glob("*/native.jsonl"))


class TestStreamJson(HeadlessContract):
    agent = "qwen"


class TestStreamJsonInWholeMessages(HeadlessContract):
    agent = "cursor"
    exempt: ClassVar[Mapping[Any, str]] = {
        **HeadlessContract.exempt,
        "streaming": "without `--stream-partial-output`, which repeats itself, its texts come whole",
    }


class TestCline(HeadlessContract):
    agent = "cline"
    exempt: ClassVar[Mapping[Any, str]] = {
        **HeadlessContract.exempt,
        "resume": "`--id` goes with its terminal interface alone",
    }


@asynccontextmanager
async def running(
    tmp_path: Path, behaviour: str = "", *, agent: str = "gemini", native: str | None = None, **options: Any
) -> AsyncGenerator[Running[HeadlessSession]]:
    given = source(tmp_path)
    adapter = HeadlessAdapter(given)
    chosen = SessionOptions(environment={"STAND_IN": behaviour, "STAND_IN_STATE": str(tmp_path)}, **options)
    start = local_start(
        adapter, tmp_path, source=given, options=chosen, agent=agent, native_session=native, temporary=tmp_path
    )
    opened = Running(await (adapter.create if native is None else adapter.resume)(start))
    reading = asyncio.create_task(opened.read())
    try:
        yield opened
    finally:
        await opened.session.close(grace=1)
        await reading


def said(agent: Running[HeadlessSession]) -> str:
    return join_text(agent.all(MessageAssistant)[-1].content)


@pytest.mark.parametrize("agent", AGENTS)
async def test_every_profile_starts_its_agent_and_takes_its_answer(tmp_path: Path, agent: str) -> None:
    async with running(tmp_path, agent=agent) as session:
        assert (await session.turn("hello there")).outcome == "success"
        assert said(session) == "hello there"
        assert len(session.all(SessionInitialized)) == 1
        assert (await session.turn("and now\n\n-- this", 2)).outcome == "success"
        assert said(session) == "and now\n\n-- this"


@pytest.mark.parametrize(
    ("agent", "fields", "first", "second"),
    [
        (
            "gemini",
            {"model": "m", "mode": "yolo"},
            ["--output-format", "stream-json", "--model", "m", "--approval-mode", "yolo"],
            ["--resume", "{session}", "--output-format", "stream-json", "--model", "m", "--approval-mode", "yolo"],
        ),
        (
            "cursor",
            {"mode": "plan"},
            ["--print", "--output-format", "stream-json", "--mode", "plan", "arguments"],
            ["--resume", "{session}", "--print", "--output-format", "stream-json", "--mode", "plan", "arguments"],
        ),
        (
            "amp",
            {},
            ["--execute", "--stream-json"],
            ["threads", "continue", "{session}", "--execute", "--stream-json"],
        ),
        ("cline", {"mode": "plan"}, ["--json", " ", "--plan"], ["--json", " ", "--plan"]),
        (
            "continue",
            {"mode": "auto"},
            ["--print", "--format", "json", "--auto", "arguments"],
            ["--print", "--format", "json", "--auto", "arguments"],
        ),
    ],
)
async def test_the_arguments_are_those_of_the_profile(
    tmp_path: Path, agent: str, fields: dict[str, Any], first: list[str], second: list[str]
) -> None:
    async with running(tmp_path, agent=agent, **fields) as session:
        await session.turn("arguments")
        assert json.loads(said(session)) == first
        await session.turn("arguments", 2)
        native = session.all(SessionInitialized)[0].native_session
        assert json.loads(said(session)) == [native if word == "{session}" else word for word in second]


async def test_model_and_mode_change_from_the_next_turn_on(tmp_path: Path) -> None:
    async with running(tmp_path) as session:
        await session.turn("arguments")
        assert "--model" not in json.loads(said(session))
        await session.session.set_model("large")
        await session.session.set_mode("plan")
        await session.turn("arguments", 2)
        assert json.loads(said(session))[-4:] == ["--model", "large", "--approval-mode", "plan"]
        assert [one.model for one in session.all(SessionUpdated)] == ["large"]
        with pytest.raises(TrunklineError) as refused:
            await session.session.set_mode("sideways")
        assert refused.value.code == "bad_params"
        assert "auto_edit" in refused.value.message


async def test_the_environment_has_what_the_profile_names_and_nothing_else(tmp_path: Path) -> None:
    given = source(tmp_path) | {"GEMINI_API_KEY": "k", "AWS_SECRET": "s"}
    adapter = HeadlessAdapter(given)
    start = local_start(adapter, tmp_path, source=given, agent="gemini", temporary=tmp_path)
    session = Running(await adapter.create(start))
    reading = asyncio.create_task(session.read())
    await session.turn("environment")
    told = json.loads(said(session))
    assert (told["GEMINI_API_KEY"], told["GEMINI_CLI_NO_RELAUNCH"]) == ("k", "true")
    assert not {"AWS_SECRET", "TRUNKLINE_PROGRAM_HEADLESS_GEMINI"} & set(told)
    await session.session.close()
    await reading


@pytest.mark.parametrize("agent", ["gemini", "qwen", "cline"])
async def test_an_interrupt_ends_the_turn_though_the_program_says_nothing_of_it(tmp_path: Path, agent: str) -> None:
    async with running(tmp_path, agent=agent) as session:
        await session.say("long")
        await eventually(lambda: len(session.natives) > 5)
        await session.session.interrupt()
        ended = await session.wait(TurnCompleted)
        assert (ended.outcome, ended.error) == ("interrupted", None)
        last = session.natives[-1]
        assert (last.kind, last.raw, last.ours) == ("exit", b"", True)
        assert [one.aborted for one in session.all(MessageAssistant)] == [True]
        with pytest.raises(TrunklineError) as refused:
            await session.session.interrupt()
        assert refused.value.code == "stale_target"
        assert (await session.turn("hello", 2)).outcome == "success"


async def test_a_program_that_hears_no_interrupt_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "LINGER_S", 0.3)
    async with running(tmp_path, "stubborn") as session:
        await session.say("long")
        await session.wait(TurnStarted)
        await session.session.interrupt()
        assert (await session.wait(TurnCompleted)).outcome == "interrupted"


async def test_exit_code_0_without_a_result_is_no_success(tmp_path: Path) -> None:
    async with running(tmp_path) as session:
        ended = await session.turn("vanish")
        assert (ended.outcome, ended.error and ended.error.code) == ("error", "agent_failed")
        assert "without a result" in ((ended.error and ended.error.message) or "")
        assert said(session) == "I am "
        assert (await session.turn("hello", 2)).outcome == "success"


async def test_a_program_that_fails_ends_its_turn_and_not_the_session(tmp_path: Path) -> None:
    async with running(tmp_path) as session:
        ended = await session.turn("fail")
        assert (ended.outcome, ended.error and ended.error.message) == ("error", "it is all over")
        assert (await session.turn("hello", 2)).outcome == "success"


async def test_silence_ends_a_turn_but_not_while_a_tool_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    impatient = msgspec.structs.replace(PROFILES.shipped["gemini"], stall_s=0.5)

    def chosen(*_: object) -> Profile:
        return impatient

    monkeypatch.setattr(PROFILES, "get", chosen)
    async with running(tmp_path) as session:
        assert (await session.turn("work 2")).outcome == "success"
        assert [one.status for one in session.all(ToolCompleted)] == ["completed"]
        ended = await session.turn("silent", 2)
        assert (ended.outcome, ended.error and ended.error.code) == ("error", "timeout")
        assert "silent for 0.5 s" in ((ended.error and ended.error.message) or "")


async def test_a_program_that_does_not_leave_is_ended_before_the_next_prompt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "LINGER_S", 0.3)
    async with running(tmp_path, "lingers") as session:
        assert (await session.turn("hello")).outcome == "success"
        assert (await session.turn("again", 2)).outcome == "success"
        assert len(await asyncio.to_thread(processes.marked, "HOME", str(tmp_path))) <= 1


@pytest.mark.parametrize(
    ("agent", "command"),
    [("gemini", "gemini"), ("qwen", "qwen"), ("cline", "cline auth"), ("continue", "cn login")],
)
async def test_a_login_that_is_missing_says_which_command_to_run(tmp_path: Path, agent: str, command: str) -> None:
    async with running(tmp_path, "signed_out", agent=agent) as session:
        ended = await session.turn("hello")
        assert (ended.outcome, ended.error and ended.error.code) == ("error", "agent_auth")
        assert f"run `{command}`" in ((ended.error and ended.error.message) or "")


async def test_a_prompt_that_was_missed_is_given_again(tmp_path: Path) -> None:
    async with running(tmp_path, "deaf") as session:
        assert (await session.turn("hello there")).outcome == "success"
        assert len(session.all(TurnStarted)) == 1


async def test_a_session_that_the_agent_has_lost_goes_on_in_a_new_one_and_says_so(tmp_path: Path) -> None:
    async with running(tmp_path, native="gone") as session:
        assert (await session.turn("hello")).outcome == "success"
        assert [one.level for one in session.all(MessageSystem)] == ["warning"]
        assert session.all(SessionInitialized)[0].native_session not in {None, "gone"}
        await session.turn("again", 2)
        assert len(session.all(MessageSystem)) == 1


async def test_a_session_that_was_asked_for_and_is_not_there_is_an_error(tmp_path: Path) -> None:
    async with running(tmp_path, resume_native="gone") as session:
        ended = await session.turn("hello")
        assert (ended.outcome, ended.error and ended.error.code) == ("error", "history_lost")
        assert (await session.turn("hello", 2)).outcome == "success"
        assert [one.level for one in session.all(MessageSystem)] == ["warning"]


async def test_an_agent_without_a_memory_says_so_with_the_second_prompt(tmp_path: Path) -> None:
    async with running(tmp_path, agent="cline") as session:
        await session.turn("hello")
        assert session.all(MessageSystem) == []
        await session.turn("again", 2)
        assert ["knows nothing of what was said before" in one.text for one in session.all(MessageSystem)] == [True]


async def test_a_banner_is_kept_as_unknown(tmp_path: Path) -> None:
    async with running(tmp_path) as session:
        assert (await session.turn("banner")).outcome == "success"
        assert [(one.kind, one.reason) for one in session.all(NativeMessage) if not one.known] == [("?", "not_json")]


@pytest.mark.parametrize(
    ("agent", "fields", "code"),
    [
        ("nobody", {}, "bad_params"),
        (None, {}, "bad_params"),
        ("amp", {"model": "m"}, "unsupported"),
        ("cline", {"resume_native": "s"}, "unsupported"),
        ("gemini", {"mode": "sideways"}, "bad_params"),
        ("gemini", {"native": {"colour": "red"}}, "unsupported"),
        ("gemini", {"native": {"command": "gemini"}}, "bad_params"),
        ("gemini", {"native": {"command": ["/nowhere/at/all"]}}, "agent_not_found"),
    ],
)
async def test_what_can_not_be_honoured_is_refused(
    tmp_path: Path, agent: str | None, fields: dict[str, Any], code: str
) -> None:
    given = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)} if "command" in str(fields) else source(tmp_path)
    adapter = HeadlessAdapter(given)
    start = local_start(
        adapter, tmp_path, source=given, options=SessionOptions(**fields), agent=agent, temporary=tmp_path
    )
    with pytest.raises(TrunklineError) as refused:
        await adapter.create(start)
    assert refused.value.code == code


async def test_prompts_that_no_run_can_take_are_refused(tmp_path: Path) -> None:
    async with running(tmp_path, agent="cursor") as session:
        for text in ("x" * 200_000, "zero\0byte", "  "):
            with pytest.raises(TrunklineError) as refused:
                await session.say(text)
            assert refused.value.code == "bad_params"
        with pytest.raises(TrunklineError) as refused:
            await session.say("look", "cmd_1", ImageBlock(media_type="image/png", data="aGk="))
        assert refused.value.code == "bad_params"
        assert (await session.turn("hello")).outcome == "success"


async def test_closing_in_mid_turn_leaves_the_end_to_the_kit(tmp_path: Path) -> None:
    async with running(tmp_path) as session:
        await session.say("long")
        await session.wait(TurnStarted)
        await session.session.close(grace=0)
        await eventually(lambda: session.over)
        assert session.all(TurnCompleted) == []
        with pytest.raises(TrunklineError) as refused:
            await session.say("hello")
        assert refused.value.code == "agent_failed"

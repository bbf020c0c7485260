"""The real Claude Code through its adapter, in this process, without a log, against a scripted model API."""

import asyncio
import base64
import os
import signal
import struct
import zlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.contract.claude_running import Running

from trunkline_adapters.claude.adapter import ClaudeAdapter
from trunkline_adapters.claude.session import prompt_uuid
from trunkline_agentkit import Piece, local_start
from trunkline_testkit import eventually
from trunkline_testkit.agents import agent_env
from trunkline_testkit.model_api import ScriptedApi
from trunkline_wire import TrunklineError
from trunkline_wire.asks import AskDecided, AskWithdrawn, PermissionRequested, PlanProposed, QuestionAsked
from trunkline_wire.blocks import ImageBlock, TerminalBlock, TextBlock
from trunkline_wire.session import SessionCompacted, SessionInitialized, SessionOptions, SessionStatus, SessionUpdated
from trunkline_wire.turn import MessageAssistant, MessageUser, ToolCompleted, ToolStarted, TurnCompleted, TurnStarted
from trunkline_wire.work import FileRewound, NativeMessage, TaskUpdated

pytestmark = pytest.mark.live


class Bench:
    """A home, a project and a scripted API, in which sessions of the real CLI run."""

    def __init__(self, home: Path, project: Path, api: ScriptedApi, program: Path) -> None:
        self.project = project
        self.api = api
        self.source = agent_env(home, api.url, TRUNKLINE_PROGRAM_CLAUDE=str(program), CLAUDE_CODE_MAX_RETRIES="2")
        self.adapter = ClaudeAdapter(self.source)

    @asynccontextmanager
    async def session(
        self, native: str | None = None, *, fork: bool = False, **options: Any
    ) -> AsyncGenerator[Running]:
        chosen = SessionOptions(**options)
        start = local_start(
            self.adapter, self.project, source=self.source, options=chosen, native_session=native, fork=fork
        )
        begin = self.adapter.create if native is None else self.adapter.resume
        agent = Running(await begin(start))
        reading = asyncio.create_task(agent.read())
        try:
            yield agent
        finally:
            await agent.session.close(grace=3)
            await reading
            drift = [data.kind for data in agent.all(NativeMessage) if not data.known]
            assert drift == [], "the translator knows every message that the CLI sends"


@pytest.fixture
def bench(tmp_path: Path, scripted_api: ScriptedApi, claude_program: Path) -> Bench:
    project = tmp_path / "project"
    project.mkdir()
    return Bench(tmp_path / "home", project, scripted_api, claude_program)


def allow(ask: str, **fields: Any) -> AskDecided:
    return AskDecided(ask=ask, behaviour="allow", by="someone", **fields)


async def test_text_streams_and_ends_in_the_same_text(bench: Bench) -> None:
    async with bench.session() as agent:
        first = await agent.turn("SAY=Alpha beta gamma delta epsilon.")
        assert (first.outcome, first.result) == ("success", "Alpha beta gamma delta epsilon.")
        assert first.cost_usd is not None
        assert first.cost_usd > 0
        second = await agent.turn("SAY=Second.", 2)
        assert (second.outcome, second.result) == ("success", "Second.")
        assert second.total_cost_usd == pytest.approx(first.cost_usd + (second.cost_usd or 0))
        pieces = [out for native in agent.natives for out in native.out if isinstance(out, Piece) and out.text]
        assert len(pieces) > 2
        assert "".join(piece.text for piece in pieces) == "Alpha beta gamma delta epsilon.Second."
        assert [fact.cause for fact in agent.facts(TurnStarted)] == ["cmd_1", "cmd_2"]
        (initialized,) = agent.all(SessionInitialized)
        assert initialized.version == "2.1.332"
        assert initialized.native_session
        assert {"compact", "context"} <= {choice.id for choice in initialized.commands}
        assert [choice.id for choice in initialized.modes] == ["default", "acceptEdits", "plan", "auto", "dontAsk"]
        assert initialized.models


async def test_an_allowed_tool_runs_with_the_changed_input(bench: Bench) -> None:
    async with bench.session() as agent:
        await agent.say("SCENARIO=bash CMD=touch original")
        asked = await agent.wait(PermissionRequested)
        assert asked.input["command"] == "touch original"
        assert await agent.session.pending() == {asked.ask}
        await agent.session.decide(asked.ask, allow(asked.ask, updated_input={"command": "touch changed; echo done"}))
        assert (await agent.wait(TurnCompleted)).outcome == "success"
        assert [path.name for path in bench.project.iterdir()] == ["changed"]
        (tool,) = agent.all(ToolCompleted)
        assert (tool.status, tool.exit_code, tool.content) == (
            "completed",
            0,
            [TerminalBlock(output="done", exit_code=0)],
        )
        assert await agent.session.pending() == set()


async def test_always_allow_is_asked_once(bench: Bench) -> None:
    async with bench.session() as agent:
        await agent.say("SCENARIO=write FILE=one.txt TEXT=one")
        asked = await agent.wait(PermissionRequested)
        (always,) = [option for option in asked.options if option.kind == "allow_always"]
        await agent.session.decide(asked.ask, allow(asked.ask, option=always.id))
        await agent.wait(TurnCompleted)
        assert (await agent.turn("SCENARIO=write FILE=two.txt TEXT=two", 2)).outcome == "success"
        assert len(agent.all(PermissionRequested)) == 1
        assert [(bench.project / name).read_text() for name in ("one.txt", "two.txt")] == ["one", "two"]


async def test_a_denied_tool_does_not_run_and_the_model_learns_why(bench: Bench) -> None:
    async with bench.session() as agent:
        await agent.say("SCENARIO=bash CMD=touch forbidden")
        asked = await agent.wait(PermissionRequested)
        await agent.session.decide(
            asked.ask, AskDecided(ask=asked.ask, behaviour="deny", by="x", message="Not on my disk")
        )
        done = await agent.wait(TurnCompleted)
        assert (done.outcome, done.result) == ("success", "The tool said: Not on my disk")
        (tool,) = agent.all(ToolCompleted)
        assert (tool.status, tool.reason) == ("rejected", "Not on my disk")
        assert not (bench.project / "forbidden").exists()


async def test_a_question_is_answered(bench: Bench) -> None:
    async with bench.session() as agent:
        await agent.say("SCENARIO=question")
        asked = await agent.wait(QuestionAsked)
        (question,) = asked.questions
        assert (question.text, [option.label for option in question.options]) == ("Which colour?", ["Red", "Blue"])
        answer = AskDecided(ask=asked.ask, behaviour="answered", by="x", answers={question.id: "Blue"})
        await agent.session.decide(asked.ask, answer)
        assert '"Which colour?"="Blue"' in (await agent.wait(TurnCompleted)).result


async def test_a_plan_is_proposed_refused_and_approved_with_edits(bench: Bench) -> None:
    async with bench.session(mode="plan") as agent:
        await agent.say("SCENARIO=plan")
        proposed = await agent.wait(PlanProposed)
        assert proposed.plan == "# Plan\n1. do A\n2. do B"
        assert proposed.file
        refusal = AskDecided(ask=proposed.ask, behaviour="deny", by="x", message="Do C first")
        await agent.session.decide(proposed.ask, refusal)
        assert "Do C first" in (await agent.wait(TurnCompleted)).result
        await agent.say("SCENARIO=plan", "cmd_2")
        again = await agent.wait(PlanProposed, 2)
        await agent.session.decide(again.ask, allow(again.ask, option="allow_accept_edits"))
        await agent.wait(TurnCompleted, 2)
        assert [update.mode for update in agent.all(SessionUpdated) if update.mode] == ["acceptEdits"]
        await agent.turn("SCENARIO=write FILE=a.txt TEXT=a", 3)
        assert (bench.project / "a.txt").read_text() == "a"


async def test_an_interrupt_ends_the_turn_and_the_session_goes_on(bench: Bench) -> None:
    async with bench.session() as agent:
        await agent.say("SCENARIO=hold")
        # what the CLI has shown of the answer is what an interrupt leaves of it
        await eventually(
            lambda: any(isinstance(out, Piece) and out.text for native in agent.natives for out in native.out)
        )
        await agent.session.interrupt()
        done = await agent.wait(TurnCompleted)
        assert (done.outcome, done.error) == ("interrupted", None)
        cut = [message for message in agent.all(MessageAssistant) if message.aborted]
        assert [message.content for message in cut] == [[TextBlock(text="Holding. ")]]
        assert (await agent.turn("SAY=Onwards.", 2)).result == "Onwards."
        bench.api.release()


async def test_an_interrupt_withdraws_what_was_asked(bench: Bench) -> None:
    async with bench.session() as agent:
        await agent.say("SCENARIO=bash CMD=touch never")
        asked = await agent.wait(PermissionRequested)
        await agent.session.interrupt()
        assert (await agent.wait(TurnCompleted)).outcome == "interrupted"
        assert agent.all(AskWithdrawn) == [AskWithdrawn(ask=asked.ask, why="interrupted")]
        assert [tool.status for tool in agent.all(ToolCompleted)] == ["cancelled"]
        with pytest.raises(TrunklineError) as error:
            await agent.session.decide(asked.ask, allow(asked.ask))
        assert error.value.code == "unknown_ask"


async def test_prompts_while_a_turn_runs_are_folded_in_queued_or_dropped(bench: Bench) -> None:
    async with bench.session() as agent:
        await agent.say("SCENARIO=bash CMD=touch first")
        asked = await agent.wait(PermissionRequested)
        await agent.say("SAY=steering", "cmd_steer", delivery="steered")
        await agent.say("SAY=waiting", "cmd_queue", delivery="queued")
        await agent.session.decide(asked.ask, allow(asked.ask))
        await agent.wait(TurnCompleted, 2)
        assert [done.result for done in agent.all(TurnCompleted)] == ["steering", "waiting"]
        assert [fact.cause for fact in agent.facts(TurnStarted)] == ["cmd_1", "cmd_queue"]

        await agent.say("SCENARIO=hold", "cmd_hold")
        await bench.api.wait_holding()
        await agent.say("SAY=dropped", "cmd_dropped", delivery="queued")
        queued = prompt_uuid("cmd_dropped").encode()
        await eventually(lambda: any(queued in native.raw and b'"queued"' in native.raw for native in agent.natives))
        await agent.session.interrupt(cancel_queued=True)
        await agent.wait(TurnCompleted, 3)
        dropped = [message for message in agent.all(MessageUser) if message.delivery == "cancelled"]
        assert [message.command for message in dropped] == ["cmd_dropped"]
        bench.api.release()


async def test_a_killed_agent_is_resumed_under_the_same_native_id(bench: Bench) -> None:
    async with bench.session() as agent:
        assert (await agent.turn("SAY=Before.")).outcome == "success"
        native = (await agent.wait(SessionInitialized)).native_session
        await agent.say("SCENARIO=bash CMD=touch never", "cmd_2")
        await agent.wait(PermissionRequested)
        os.kill(agent.session.pid, signal.SIGKILL)
        await eventually(lambda: not agent.session.running)
        assert (await agent.session.close()).signal == signal.SIGKILL
    async with bench.session(native) as agent:
        await agent.say("SAY=After.", "cmd_after")
        done = await agent.wait(TurnCompleted)
        assert (done.outcome, done.result) == ("success", "After.")
        assert (await agent.wait(SessionInitialized)).native_session == native
    async with bench.session(native, fork=True) as agent:
        await agent.say("SAY=Forked.", "cmd_forked")
        assert (await agent.wait(TurnCompleted)).outcome == "success"
        assert (await agent.wait(SessionInitialized)).native_session != native


async def test_a_prompt_that_the_agent_has_had_before_is_not_run_again(bench: Bench) -> None:
    async with bench.session() as agent:
        await agent.turn("SAY=Once.")
        native = (await agent.wait(SessionInitialized)).native_session
    asked = len(bench.api.requests)
    async with bench.session(native) as agent:
        await agent.say("SAY=Once.")
        assert (await agent.wait(MessageUser)).delivery == "cancelled"
        await agent.say("SAY=New.", "cmd_new")
        assert (await agent.wait(TurnCompleted)).result == "New."
    assert len(bench.api.requests) == asked + 1


async def test_resuming_what_does_not_exist_fails_at_once(bench: Bench) -> None:
    with pytest.raises(TrunklineError) as error:
        async with bench.session("b253334b-b421-418a-9d7c-c9596d15b2d2"):
            pass
    assert error.value.code == "history_lost"


async def test_model_mode_thinking_and_title_change_while_it_runs(bench: Bench) -> None:
    async with bench.session() as agent:
        await agent.turn("SAY=one")
        await agent.session.set_model("claude-haiku-4-5")
        await agent.session.set_mode("acceptEdits")
        await agent.session.set_thinking("medium")
        await agent.session.rename("A title")
        await agent.turn("SAY=two", 2)
        told = agent.all(SessionUpdated)
        assert [update.model for update in told if update.model] == ["claude-haiku-4-5"]
        assert [update.mode for update in told if update.mode] == ["acceptEdits"]
        assert [update.thinking for update in told if update.thinking] == ["medium"]
        assert [update.title for update in told if update.title] == ["A title"]
        assert bench.api.requests[-1].model == "claude-haiku-4-5"
        with pytest.raises(TrunklineError) as error:
            await agent.session.set_mode("bypassPermissions")
        assert error.value.code == "unsupported"


async def test_a_background_task_starts_a_turn_by_itself(bench: Bench) -> None:
    async with bench.session(mode="acceptEdits") as agent:
        await agent.say("SCENARIO=bgtask CMD=sleep 0.5; touch later")
        await agent.wait(TurnCompleted, 2)
        assert [done.trigger for done in agent.all(TurnCompleted)] == ["prompt", "background"]
        assert [begun.trigger for begun in agent.all(TurnStarted)] == ["prompt", "background"]
        tasks = [(task.status, task.background) for task in agent.all(TaskUpdated)]
        assert tasks[0] == ("running", True)
        assert tasks[-1][0] == "completed"


async def test_a_subagent_speaks_in_the_lane_of_its_tool_call(bench: Bench) -> None:
    async with bench.session() as agent:
        await agent.turn('SCENARIO=sub CHILD="SAY=I am the child."')
        (call,) = [
            fact
            for fact in agent.facts(ToolStarted)
            if isinstance(fact.data, ToolStarted) and fact.data.name == "Agent"
        ]
        spoken = [fact for fact in agent.facts(MessageAssistant) if fact.lane is not None]
        assert {fact.lane for fact in spoken} == {call.item}
        assert [data.content for fact in spoken if isinstance(data := fact.data, MessageAssistant)] == [
            [TextBlock(text="I am the child.")]
        ]
        (done,) = agent.all(ToolCompleted)
        assert done.content == [TextBlock(text="I am the child.")]


async def test_an_image_reaches_the_model(bench: Bench) -> None:
    image = ImageBlock(media_type="image/png", data=base64.b64encode(png()).decode())
    async with bench.session() as agent:
        await agent.say("SAY=I see it.", "cmd_1", image)
        assert (await agent.wait(TurnCompleted)).outcome == "success"
        # The CLI keeps the picture in a file and tells the model where it came from.
        assert "[Image: source: " in bench.api.requests[-1].prompt


def png() -> bytes:
    """One red pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0\xff\0\0"))
        + chunk(b"IEND", b"")
    )


async def test_files_are_put_back_to_before_a_prompt(bench: Bench) -> None:
    note = bench.project / "note.txt"
    async with bench.session(mode="acceptEdits") as agent:
        await agent.turn("SCENARIO=write FILE=note.txt TEXT=one")
        await agent.turn("SCENARIO=write FILE=note.txt TEXT=two", 2)
        trial = await agent.session.rewind("cmd_2", dry_run=True)
        assert (trial["files"], note.read_text()) == ([str(note)], "two")
        await agent.session.rewind("cmd_2")
        assert note.read_text() == "one"
        rewound = await agent.wait(FileRewound)
        assert (rewound.to, rewound.paths) == ("cmd_2", [str(note)])


async def test_commands_of_the_agent_run_as_turns(bench: Bench) -> None:
    async with bench.session() as agent:
        await agent.turn("SAY=Something to compact.")
        await agent.session.compact(None, "cmd_compact")
        await agent.wait(TurnCompleted, 2)
        assert [compacted.trigger for compacted in agent.all(SessionCompacted)] == ["manual"]
        assert [status.status for status in agent.all(SessionStatus)] == ["compacting", None]
        await agent.session.run_command("clear", "", "cmd_clear")
        await agent.wait(TurnCompleted, 3)
        assert [fact.cause for fact in agent.facts(TurnStarted)] == ["cmd_1", "cmd_compact", "cmd_clear"]
        await agent.turn("SAY=After.", 4)
        renamed = [update.native_session for update in agent.all(SessionUpdated) if update.native_session]
        first = (await agent.wait(SessionInitialized)).native_session
        assert renamed
        assert first not in renamed


async def test_how_turns_end_when_the_api_fails(bench: Bench) -> None:
    async with bench.session() as agent:
        done = await agent.turn("SCENARIO=once529")
        assert (done.outcome, done.error) == ("success", None)
        assert [status.status for status in agent.all(SessionStatus)] == ["retrying", None]
        done = await agent.turn("SCENARIO=err400", 2)
        assert (done.outcome, done.error and done.error.code) == ("error", "agent_failed")
        done = await agent.turn("SCENARIO=err401", 3)
        assert (done.outcome, done.error and done.error.code) == ("error", "agent_auth")
        assert done.error is not None
        assert "/login" in done.error.message


@pytest.mark.parametrize(
    ("prompt", "options", "outcome"),
    [
        ("SCENARIO=bash CMD=ls", {"max_turns": 1}, "max_turns"),
        ("SAY=dear", {"budget_usd": 0.0000001}, "max_budget"),
    ],
)
async def test_how_turns_end_at_a_limit(bench: Bench, prompt: str, options: dict[str, Any], outcome: str) -> None:
    async with bench.session(**options) as agent:
        done = await agent.turn(prompt)
        assert (done.outcome, done.error) == (outcome, None)


async def test_a_cli_that_is_not_signed_in_says_what_to_do(bench: Bench) -> None:
    del bench.source["ANTHROPIC_API_KEY"]
    async with bench.session() as agent:
        done = await agent.turn("SAY=hello")
        assert done.error is not None
        assert done.error.code == "agent_auth"
        assert "/login" in done.error.message


async def test_options_reach_the_agent(bench: Bench) -> None:
    options: dict[str, Any] = {
        "model": "claude-haiku-4-5",
        "system_prompt": "You are a teapot.",
        "append_system_prompt": "Short and stout.",
        "disallowed_tools": ["Write"],
        "mcp_servers": {"broken": {"command": "/bin/false"}},
        "thinking": "low",
    }
    async with bench.session(**options) as agent:
        await agent.turn("SAY=hello")
        request = bench.api.requests[-1]
        assert request.model == "claude-haiku-4-5"
        assert "You are a teapot." in request.system
        assert "Short and stout." in request.system
        assert "Write" not in request.tools
        status = await agent.session.native("mcp_status", {})
        assert [server["name"] for server in status["mcpServers"]] == ["broken"]
        assert "broken" in {server.name for update in agent.all(SessionUpdated) for server in update.mcp_servers or []}

"""The real Codex through its adapter, in this process, without a log, against a scripted model API.

What every agent has to show stands in the matrix: here is what is Codex' own.
"""

import json
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from tests.live.codex_bench import ESCALATED, Bench, allow, codex_source

from trunkline_agentkit import Piece
from trunkline_testkit import eventually
from trunkline_testkit.model_api import ScriptedApi
from trunkline_wire import TrunklineError
from trunkline_wire.asks import AskDecided, PermissionRequested, QuestionAsked
from trunkline_wire.blocks import ImageBlock, TerminalBlock
from trunkline_wire.session import SessionCompacted, SessionInitialized, SessionUpdated
from trunkline_wire.turn import MessageAssistant, MessageUser, ToolCompleted, TurnCompleted, TurnStarted
from trunkline_wire.work import FileChanged, TaskUpdated

pytestmark = pytest.mark.live


@pytest.fixture
async def bench(tmp_path: Path, scripted_api: ScriptedApi, codex_program: Path) -> AsyncGenerator[Bench]:
    async with Bench.made(tmp_path, scripted_api, codex_program) as bench:
        yield bench


async def test_nothing_came_to_the_protocol_that_the_adapter_does_not_know(bench: Bench) -> None:
    """Else review the names, handle them or list them in native.KNOWN, and write them into names.json."""
    assert await bench.adapter.drift() == []


def test_doctor_names_the_program_and_its_protocol(bench: Bench, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "trunkline_cli", "doctor", "--json", "--home", str(tmp_path / "state")],
        env=bench.source | {"PATH": f"{bench.program.parent}:/usr/bin:/bin"},
        check=False,
        capture_output=True,
    )
    found = {one["check"]: one for one in map(json.loads, done.stdout.splitlines())}
    assert found["agent codex (codex)"]["state"] == "ok"
    assert found["agent codex (codex)"]["found"].startswith("0.171.0 at ")
    protocol = found["agent codex (codex) protocol"]
    assert (protocol["state"], protocol["found"]) == ("ok", "is the one that was reviewed")


async def test_text_streams_and_ends_in_the_same_text(bench: Bench) -> None:
    async with bench.session() as agent:
        first = await agent.turn("SAY=Alpha beta gamma delta epsilon.")
        assert (first.outcome, first.result) == ("success", "Alpha beta gamma delta epsilon.")
        assert first.usage is not None
        assert first.usage.output > 0
        second = await agent.turn("SAY=Second.", 2)
        assert (second.outcome, second.result) == ("success", "Second.")
        pieces = [out.text for native in agent.natives for out in native.out if isinstance(out, Piece) and out.text]
        assert len(pieces) > 2
        assert "".join(pieces) == "Alpha beta gamma delta epsilon.Second."
        assert [fact.cause for fact in agent.facts(TurnStarted)] == ["cmd_1", "cmd_2"]
        assert agent.all(MessageUser) == [], "the log has our prompts already"
        (initialized,) = agent.all(SessionInitialized)
        assert initialized.version == "0.171.0"
        assert initialized.mode == "auto"
        assert initialized.models


async def test_a_command_is_asked_for_and_runs(bench: Bench) -> None:
    async with bench.session() as agent:
        await agent.say(f"SCENARIO=bash CMD=echo done {ESCALATED}")
        asked = await agent.wait(PermissionRequested)
        assert (asked.title, asked.reason) == ("echo done", "please")
        assert await agent.session.pending() == {asked.ask}
        await agent.session.decide(asked.ask, allow(asked.ask))
        assert (await agent.wait(TurnCompleted)).outcome == "success"
        (tool,) = agent.all(ToolCompleted)
        assert (tool.status, tool.content) == ("completed", [TerminalBlock(output="done\n", exit_code=0)])
        assert await agent.session.pending() == set()


async def test_an_allowed_prefix_is_not_asked_for_again(bench: Bench) -> None:
    async with bench.session(mode="untrusted") as agent:
        await agent.say("SCENARIO=bash CMD=touch one")
        asked = await agent.wait(PermissionRequested)
        (rule,) = [option for option in asked.options if option.id == "execpolicy"]
        assert rule.name == "Always allow what begins with touch one"
        await agent.session.decide(asked.ask, allow(asked.ask, rule_updates=["touch"]))
        await agent.wait(TurnCompleted)
        assert (await agent.turn("SCENARIO=bash CMD=touch two", 2)).outcome == "success"
        assert len(agent.all(PermissionRequested)) == 1
        assert {path.name for path in bench.project.iterdir()} >= {"one", "two"}


async def test_a_rejection_with_a_stop_ends_the_turn(bench: Bench) -> None:
    async with bench.session(mode="untrusted") as agent:
        await agent.say("SCENARIO=bash CMD=touch never")
        asked = await agent.wait(PermissionRequested)
        stop = AskDecided(ask=asked.ask, behaviour="deny", by="someone", option="cancel")
        await agent.session.decide(asked.ask, stop)
        assert (await agent.wait(TurnCompleted)).outcome == "interrupted"
        assert [tool.status for tool in agent.all(ToolCompleted)] == ["rejected"]
        assert not (bench.project / "never").exists()


async def test_a_patch_shows_what_it_changed(bench: Bench) -> None:
    async with bench.session(model="gpt-5.5") as agent:
        done = await agent.turn("SCENARIO=write FILE=a.txt TEXT=hello")
        assert (done.outcome, done.lines_added) == ("success", 1)
        (changed,) = agent.all(FileChanged)
        assert (Path(changed.path).name, changed.kind) == ("a.txt", "created")
        assert (bench.project / "a.txt").read_text() == "hello\n"


async def test_a_message_is_steered_into_the_running_turn(bench: Bench) -> None:
    async with bench.session() as agent:
        await agent.say("SCENARIO=hold")
        await bench.api.wait_holding()
        await agent.say("SAY=Steered.", "cmd_2", delivery="steered")
        bench.api.release()
        assert (await agent.wait(TurnCompleted)).outcome == "success"
        assert [(user.command, user.delivery) for user in agent.all(MessageUser)] == [("cmd_2", "steered")]
        assert len(agent.all(TurnStarted)) == 1


async def test_an_interrupt_ends_what_is_open(bench: Bench) -> None:
    async with bench.session() as agent:
        await agent.say("SCENARIO=hold")
        await eventually(
            lambda: any(isinstance(out, Piece) and out.text for one in agent.natives for out in one.out), 30
        )
        await agent.session.interrupt()
        assert (await agent.wait(TurnCompleted)).outcome == "interrupted"
        (cut,) = agent.all(MessageAssistant)
        assert (cut.aborted, cut.content[0].text) == (True, "Holding. ")
        assert (await agent.turn("SAY=On.", 2)).result == "On."


async def test_a_review_is_a_turn(bench: Bench) -> None:
    async with bench.session() as agent:
        await agent.session.run_command("review", "SAY=All is well.", "cmd_1")
        assert (await agent.wait(TurnCompleted)).result == "All is well."
        assert [fact.cause for fact in agent.facts(TurnStarted)] == ["cmd_1"]


async def test_a_sub_agent_speaks_and_asks_in_its_lane(bench: Bench) -> None:
    async with bench.session(mode="untrusted") as agent:
        await agent.say("SCENARIO=sub CHILD=SCENARIO=bash")
        asked = await agent.wait(PermissionRequested)
        (asking,) = agent.facts(PermissionRequested)
        assert asking.lane is not None
        await agent.session.decide(asked.ask, allow(asked.ask))
        await eventually(lambda: any(task.status == "completed" for task in agent.all(TaskUpdated)), 30)
        assert (bench.project / "made-by-the-model").exists()
        started = [fact for fact in agent.facts(MessageAssistant) if fact.lane == asking.lane]
        assert started, "what the sub-agent says is in the lane of the call that started it"


async def test_compaction_is_told_with_its_size(bench: Bench) -> None:
    async with bench.session() as agent:
        await agent.turn("SAY=Something.")
        await agent.session.compact(None, "cmd_2")
        compacted = await agent.wait(SessionCompacted)
        assert (compacted.trigger, compacted.after is not None) == ("manual", True)
        await agent.wait(TurnCompleted, 2)
        assert agent.facts(TurnStarted)[-1].cause == "cmd_2"


async def test_a_question_in_plan_mode_is_answered(bench: Bench) -> None:
    async with bench.session(mode="plan") as agent:
        await agent.say("SCENARIO=question")
        asked = await agent.wait(QuestionAsked)
        (question,) = asked.questions
        assert [option.label for option in question.options][:2] == ["Red", "Blue"]
        answer = AskDecided(ask=asked.ask, behaviour="answered", by="someone", answers={question.id: "Blue"})
        await agent.session.decide(asked.ask, answer)
        assert "Blue" in (await agent.wait(TurnCompleted)).result


async def test_modes_models_and_thinking_change_while_it_runs(bench: Bench) -> None:
    async with bench.session(mode="read-only", thinking="high") as agent:
        await agent.session.set_mode("full-access")
        await agent.session.set_model("gpt-5.5")
        await agent.session.set_mode("plan")
        await agent.session.set_mode("auto")
        await agent.session.rename("a title")
        await eventually(lambda: [one.title for one in agent.all(SessionUpdated) if one.title] == ["a title"])
        updates = agent.all(SessionUpdated)
        assert [one.mode for one in updates if one.mode] == ["full-access", "plan", "auto"]
        assert [one.model for one in updates if one.model] == ["gpt-5.5"]
        assert next(one.thinking for one in updates if one.thinking) == "high"
        with pytest.raises(TrunklineError) as error:
            await agent.session.native("no/such/method", {})
        assert (error.value.code, error.value.message) == (
            "unsupported",
            "this Codex does not know 'no/such/method': update it",
        )


async def test_a_change_of_mode_keeps_what_the_configured_sandbox_allows(bench: Bench, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    with (bench.home / ".codex" / "config.toml").open("a") as config:
        config.write(f'[sandbox_workspace_write]\nwritable_roots = ["{outside}"]\nnetwork_access = true\n')
    async with bench.session(mode="read-only") as agent:
        await agent.session.set_mode("no-questions")
        assert (await agent.wait(SessionUpdated)).mode == "no-questions"
        (told,) = [json.loads(one.raw) for one in agent.natives if one.kind == "thread/settings/updated"]
        policy = told["params"]["threadSettings"]["sandboxPolicy"]
        assert (policy["type"], policy["networkAccess"]) == ("workspaceWrite", True)
        await agent.turn(f"SCENARIO=bash CMD=touch {outside}/made")
        assert (outside / "made").exists()


async def test_history_is_listed_reverted_and_forked_by_the_prompts_command(bench: Bench) -> None:
    async with bench.session() as agent:
        await agent.turn("SAY=One.")
        await agent.turn("SAY=Two.", 2)
        await agent.turn("SAY=Three.", 3)
        native = (await agent.wait(SessionInitialized)).native_session
        listed = await agent.session.native("thread/turns/list", {})
        assert len(listed["data"]) == 3
        items = await agent.session.native("thread/items/list", {})
        assert [one["item"]["type"] for one in items["data"]].count("userMessage") == 3
        threads = await agent.session.native("thread/list", {})
        assert [thread["id"] for thread in threads["data"]] == [native]
        await agent.session.native("thread/revert", {"before": "cmd_3"})
        listed = await agent.session.native("thread/turns/list", {})
        assert len(listed["data"]) == 2
    async with bench.session(native, fork=True) as fork:
        initialized = await fork.wait(SessionInitialized)
        assert initialized.native_session != native
        assert (await fork.turn("SAY=Forked.")).result == "Forked."


async def test_a_thread_that_was_never_kept_is_lost_history(bench: Bench) -> None:
    with pytest.raises(TrunklineError) as error:
        async with bench.session("00000000-0000-0000-0000-000000000000"):
            pass
    assert error.value.code == "history_lost"


async def test_an_image_reaches_the_model(bench: Bench) -> None:
    png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
    async with bench.session() as agent:
        await agent.say("SAY=Seen.", "cmd_1", ImageBlock(media_type="image/png", data=png))
        assert (await agent.wait(TurnCompleted)).result == "Seen."


async def test_an_output_follows_its_schema(bench: Bench) -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    async with bench.session(output_schema=schema) as agent:
        assert (await agent.turn("SAY=x")).structured_output == {"a": 0}


async def test_codex_without_a_login_says_which_command_to_run(bench: Bench) -> None:
    codex_source(bench.home, bench.api.url, bench.program, auth="true")
    with pytest.raises(TrunklineError, match="run `codex login`") as error:
        async with bench.session():
            pass
    assert error.value.code == "agent_auth"


async def test_exec_takes_prompts_one_by_one(bench: Bench) -> None:
    async with bench.session(native={"interface": "exec"}, mode="no-questions") as agent:
        assert (await agent.turn("SAY=One.")).result == "One."
        first = await agent.turn("SCENARIO=bash CMD=touch made", 2)
        assert first.outcome == "success"
        assert first.usage is not None
        assert (bench.project / "made").exists()
        assert (await agent.turn("SCENARIO=err400", 3)).outcome == "error"


MCP_SERVER = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    method, number = message.get("method"), message.get("id")
    if method == "initialize":
        info = {"name": "lab", "version": "1"}
        version = message["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    elif method == "tools/list":
        result = {"tools": [{"name": "echo", "description": "echoes", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "echoed"}]}
    else:
        result = {}
    if number is not None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}) + chr(10))
        sys.stdout.flush()
"""


@pytest.mark.parametrize(("behaviour", "status"), [("allow", "completed"), ("deny", "rejected")])
async def test_a_tool_of_an_mcp_server_is_asked_for(bench: Bench, tmp_path: Path, behaviour: Any, status: str) -> None:
    script = tmp_path / "mcp.py"
    script.write_text(MCP_SERVER)
    servers = {"lab": {"command": sys.executable, "args": [str(script)]}}
    async with bench.session(mcp_servers=servers) as agent:
        await agent.say("SCENARIO=tool TOOL=echo INPUT={}")
        asked = await agent.wait(PermissionRequested)
        assert asked.name == "mcp__lab__echo"
        option = "accept_session" if behaviour == "allow" else None
        decision = AskDecided(ask=asked.ask, behaviour=behaviour, by="someone", option=option)
        await agent.session.decide(asked.ask, decision)
        await agent.wait(TurnCompleted)
        assert [tool.status for tool in agent.all(ToolCompleted)] == [status]
        if behaviour == "allow":
            await agent.turn("SCENARIO=tool TOOL=echo INPUT={}", 2)
            assert len(agent.all(PermissionRequested)) == 1, "it is allowed in this session"

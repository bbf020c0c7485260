"""The real OpenCode and Kilo through their adapter, in this process, without a log, on a scripted model API."""

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from tests.live.opencode_bench import PATIENCE, Bench, allow

from trunkline_adapters.opencode.native import PASSING, TRANSLATED, is_known
from trunkline_adapters.opencode.profiles import PROFILES
from trunkline_agentkit import Piece
from trunkline_testkit import eventually
from trunkline_testkit.agents import AGENTS, require
from trunkline_testkit.model_api import ScriptedApi
from trunkline_wire import TrunklineError
from trunkline_wire.asks import AskDecided, AskWithdrawn, PermissionRequested, QuestionAsked
from trunkline_wire.blocks import ImageBlock
from trunkline_wire.session import SessionCompacted, SessionInitialized, SessionStatus
from trunkline_wire.turn import MessageAssistant, MessageUser, ToolCompleted, ToolStarted, TurnCompleted, TurnStarted
from trunkline_wire.work import FileChanged, TaskUpdated

pytestmark = [pytest.mark.live, pytest.mark.matrix, pytest.mark.timeout(900)]

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"


@pytest.fixture(params=["opencode", "kilo"])
def bench(request: pytest.FixtureRequest, tmp_path: Path, scripted_api: ScriptedApi) -> Iterator[Bench]:
    require(request.param)
    made = Bench(tmp_path, scripted_api, request.param)
    yield made
    scripted_api.release()
    assert made.left() == [], "processes of the agent outlive the test"


async def test_a_conversation(bench: Bench) -> None:
    """Text, a command allowed and one refused, a file, a question, an interrupt, and what all of it costs."""
    async with bench.session() as agent:
        await agent.say("SAY=Alpha beta gamma delta epsilon.")
        first = await agent.wait(TurnCompleted, 1, PATIENCE)
        assert (first.outcome, first.result) == ("success", "Alpha beta gamma delta epsilon.")
        pieces = [out.text for native in agent.natives for out in native.out if isinstance(out, Piece) and out.text]
        assert "".join(pieces) == "Alpha beta gamma delta epsilon."
        assert len(pieces) > 1
        assert first.usage.output > 0
        assert first.cost_usd > 0
        assert agent.all(MessageUser) == [], "the log has our prompts already"
        initialized = await agent.wait(SessionInitialized)
        assert initialized.version == AGENTS[bench.agent].version
        assert initialized.mode == PROFILES.shipped[bench.agent].mode
        assert [model.id for model in initialized.models if model.current] == ["scripted/scripted"]

        await agent.say("SCENARIO=bash CMD=touch allowed", "cmd_2")
        asked = await agent.wait(PermissionRequested, 1, PATIENCE)
        assert (asked.name, asked.title) == ("bash", "touch allowed")
        await agent.session.decide(asked.ask, allow(asked.ask))
        await agent.wait(TurnCompleted, 2, PATIENCE)
        assert (bench.project / "allowed").exists()

        await agent.say("SCENARIO=bash CMD=mkdir refused", "cmd_3")
        asked = await agent.wait(PermissionRequested, 2, PATIENCE)
        await agent.session.decide(asked.ask, AskDecided(ask=asked.ask, behaviour="deny", by="me", message="not today"))
        assert "not today" in (await agent.wait(TurnCompleted, 3, PATIENCE)).result
        assert not (bench.project / "refused").exists()

        await agent.say("SCENARIO=question", "cmd_4")
        question = (await agent.wait(QuestionAsked, 1, PATIENCE)).questions[0]
        ask = agent.all(QuestionAsked)[0].ask
        answer = AskDecided(ask=ask, behaviour="answered", by="me", answers={question.id: "Blue"})
        await agent.session.decide(ask, answer)
        assert "Blue" in (await agent.wait(TurnCompleted, 4, PATIENCE)).result

        await agent.say("SCENARIO=hold", "cmd_5")
        await bench.api.wait_holding(timeout=PATIENCE)
        await agent.session.interrupt()
        assert (await agent.wait(TurnCompleted, 5, PATIENCE)).outcome == "interrupted"
        bench.api.release()
        await agent.say("SAY=On.", "cmd_6")
        assert (await agent.wait(TurnCompleted, 6, PATIENCE)).result == "On."
        assert [tool.status for tool in agent.all(ToolCompleted)] == ["completed", "rejected", "completed"]
        assert [fact.cause for fact in agent.facts(TurnStarted)] == [f"cmd_{number}" for number in range(1, 7)]


async def test_a_rejection_with_a_stop_ends_the_turn_and_what_else_was_asked(bench: Bench) -> None:
    async with bench.session() as agent:
        await agent.say("SCENARIO=twobash CMD=touch one CMD2=mkdir two")
        await agent.wait(PermissionRequested, 2, PATIENCE)
        first, second = agent.all(PermissionRequested)
        stop = AskDecided(ask=first.ask, behaviour="deny", by="me", option="stop")
        await agent.session.decide(first.ask, stop)
        # Said before the turn is over, when the server might keep it and never answer it.
        await agent.say("SAY=I am heard.", "cmd_2", delivery="steered")
        ended = await agent.wait(TurnCompleted, 1, PATIENCE)
        assert ended.outcome == "interrupted"
        assert [one.ask for one in agent.all(AskWithdrawn)] == [second.ask]
        assert (await agent.wait(TurnCompleted, 2, PATIENCE)).result == "I am heard."
        assert {tool.status for tool in agent.all(ToolCompleted)} == {"rejected"}
        assert not (bench.project / "one").exists()


async def test_a_sub_agent_speaks_and_asks_in_its_lane(bench: Bench) -> None:
    async with bench.session() as agent:
        await agent.say('SCENARIO=sub CHILD=SCENARIO=bash INPUT={"subagent_type": "general"}')
        asked = await agent.wait(PermissionRequested, 1, PATIENCE)
        (asking,) = agent.facts(PermissionRequested)
        call = next(fact for fact in agent.facts(ToolStarted) if cast("ToolStarted", fact.data).name == "task")
        assert asking.lane == call.item
        await agent.session.decide(asked.ask, allow(asked.ask))
        assert (await agent.wait(TurnCompleted, 1, PATIENCE)).outcome == "success"
        assert (bench.project / "made-by-the-model").exists()
        assert any(fact.lane == call.item for fact in agent.facts(MessageAssistant))
        assert [task.status for task in agent.all(TaskUpdated)] == ["running", "completed"]


async def test_commands_of_its_own(bench: Bench) -> None:
    async with bench.session() as agent:
        await agent.say("SAY=Something to sum up.")
        await agent.wait(TurnCompleted, 1, PATIENCE)
        await agent.session.run_command("shell", "echo from-the-shell", "cmd_2")
        await agent.wait(TurnCompleted, 2, PATIENCE)
        (ran,) = agent.all(ToolCompleted)
        assert "from-the-shell" in ran.content[0].output
        await agent.session.compact(None, "cmd_3")
        assert (await agent.wait(SessionCompacted, 1, PATIENCE)).trigger == "manual"
        await agent.wait(TurnCompleted, 3, PATIENCE)
        await agent.session.rename("a title")
        assert (await agent.session.native("GET /session/{session}", {}))["title"] == "a title"
        assert await agent.session.native("GET /session/{session}/todo", {}) == []
        assert [fact.cause for fact in agent.facts(TurnStarted)] == ["cmd_1", "cmd_2", "cmd_3"]
        with pytest.raises(TrunklineError) as error:
            await agent.session.native("GET /nothing/of/the/kind", {})
        assert error.value.code in {"unsupported", "bad_params"}, "OpenCode answers 200 and a page, Kilo 404"


async def test_a_session_is_taken_up_and_copied_and_knows_its_past(bench: Bench) -> None:
    async with bench.session() as agent:
        await agent.say("SAY=The word is xyzzy.")
        await agent.wait(TurnCompleted, 1, PATIENCE)
        native = (await agent.wait(SessionInitialized)).native_session
    for fork in (False, True):
        async with bench.session(native, fork=fork) as agent:
            await agent.say("SCENARIO=recall")
            assert "xyzzy" in (await agent.wait(TurnCompleted, 1, PATIENCE)).result
            assert len(agent.all(MessageAssistant)) == 1, "the past is not told again"
            assert ((await agent.wait(SessionInitialized)).native_session == native) is not fork
    with pytest.raises(TrunklineError) as error:
        async with bench.session("ses_00000000000000000000000000"):
            pass
    assert error.value.code == "history_lost"


async def test_an_image_and_a_level_of_thinking_reach_the_model(bench: Bench) -> None:
    async with bench.session(thinking="high") as agent:
        await agent.say("SAY=Seen.", "cmd_1", ImageBlock(media_type="image/png", data=PNG))
        assert (await agent.wait(TurnCompleted, 1, PATIENCE)).result == "Seen."
        sent = b"".join(bench.api.bodies)
        assert PNG.encode() in sent
        assert b"reasoning_effort" in sent


async def test_a_model_that_fails_is_told_as_retrying_and_given_up(bench: Bench) -> None:
    async with bench.session(native={"attempts": 1}) as agent:
        await agent.say("SCENARIO=err500")
        ended = await agent.wait(TurnCompleted, 1, PATIENCE)
        assert (ended.outcome, ended.error.code) == ("error", "agent_failed")
        assert [one.attempt for one in agent.all(SessionStatus) if one.status == "retrying"][:2] == [1, 2]
        await agent.say("SAY=On.", "cmd_2")
        assert (await agent.wait(TurnCompleted, 2, PATIENCE)).result == "On."


async def test_no_secret_is_in_messages_or_recordings(bench: Bench, tmp_path: Path) -> None:
    """The server tells keys to whoever may ask, and OpenCode's commands have its password in their environment, Kilo's have not."""
    recording = tmp_path / "native.jsonl"
    async with bench.session(recording=recording) as agent:
        await agent.say("SCENARIO=bash CMD=env")
        asked = await agent.wait(PermissionRequested, 1, PATIENCE)
        await agent.session.decide(asked.ask, allow(asked.ask))
        await agent.wait(TurnCompleted, 1, PATIENCE)
        said = b"".join(native.raw for native in agent.natives) + recording.read_bytes()
        variable = PROFILES.shipped[bench.agent].password_variable.encode()
        assert (variable + b"=[redacted]" in said) == (bench.agent == "opencode")
        assert said.count(variable + b"=") == said.count(variable + b"=[redacted]")
        assert b'"apiKey":"scripted"' not in said
        assert b'"apiKey":"[redacted]"' in said


async def test_nothing_came_to_the_protocol_that_the_adapter_does_not_know(bench: Bench) -> None:
    """Every type of event in the server's own description is translated, or on a reviewed list."""
    async with bench.session() as agent:
        document = await agent.session.native("GET /doc", {})
        schemas = document["components"]["schemas"]
        types = {
            name
            for schema in schemas.values()
            for name in schema.get("properties", {}).get("type", {}).get("enum", [])
            if "properties" in schema.get("properties", {})
        }
        assert len(types) > 60
        profile = PROFILES.shipped[bench.agent]
        strange = {name for name in types if name not in TRANSLATED | PASSING and not is_known(name, profile)}
        assert strange == set()


@pytest.mark.parametrize("bench", ["opencode"], indirect=True)
async def test_files_are_put_back_to_before_a_prompt(bench: Bench) -> None:
    async with bench.session() as agent:
        await agent.say("SAY=First.")
        await agent.wait(TurnCompleted, 1, PATIENCE)
        await agent.say("SCENARIO=write FILE=made.txt TEXT=hello", "cmd_2")
        asked = await agent.wait(PermissionRequested, 1, PATIENCE)
        await agent.session.decide(asked.ask, allow(asked.ask))
        await agent.wait(TurnCompleted, 2, PATIENCE)
        (changed,) = agent.all(FileChanged)
        assert (Path(changed.path).name, changed.kind) == ("made.txt", "created")

        async def told() -> bool:
            return (await agent.session.rewind("cmd_2", dry_run=True)) == {"files": ["made.txt"]}

        await eventually(told, PATIENCE)
        assert (bench.project / "made.txt").exists()
        await agent.session.rewind("cmd_2")
        assert not (bench.project / "made.txt").exists()
        await agent.session.native("POST /session/{session}/unrevert", {})
        assert (bench.project / "made.txt").exists()

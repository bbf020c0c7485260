"""The A2A adapter over HTTP, against a fake of a server that speaks the protocol."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.contract.running import Running
from tests.unit.a2a.recorded import RECORDINGS

from trunkline_adapters.a2a import session as session_module
from trunkline_adapters.a2a.adapter import A2aAdapter
from trunkline_adapters.a2a.session import A2aSession
from trunkline_agentkit import BackendAdapter, Start, local_start
from trunkline_agentkit.contract import AdapterContract, Behaviour, More
from trunkline_agentkit.recorder import read_recording
from trunkline_testkit import eventually
from trunkline_wire import TrunklineError, decode_json
from trunkline_wire.asks import AskDecided, PermissionRequested
from trunkline_wire.blocks import ImageBlock, join_text
from trunkline_wire.session import SessionInitialized, SessionOptions, SessionUpdated
from trunkline_wire.turn import MessageAssistant, ToolCompleted, TurnCompleted, TurnStarted

STAND_IN = Path(__file__).parent / "a2a_stand_in.py"


class Server:
    """The fake, as a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "said.jsonl"
        self.process = subprocess.Popen([sys.executable, STAND_IN, self.log], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def server(tmp_path: Path) -> Generator[Server]:
    running = Server(tmp_path)
    yield running
    running.kill()


class TestA2a(AdapterContract):
    adapter_name = "a2a"
    prompts: ClassVar[Mapping[Behaviour | More, str]] = {
        "say": "hello there",
        "long": "long",
        "ask": "ask ls",
        "slow": "slow",
        "huge": "huge 1000000",
        "tool": "tool ls",
        "err400": "err400",
        "err401": "err401",
        "err429": "err429",
        "err500": "err500",
    }
    exempt: ClassVar[Mapping[Any, str]] = {
        "question": "the protocol has no word for a question but the end of a turn",
        "crash": "the server is no process of the session's",
        "change": "a decision is an outcome alone",
        "plan": "the protocol has no word for a plan",
        "second": "a task takes one message at a time: the next one waits in Trunkline for the end of the turn",
        "stays": "the server is no process of the session's",
    }
    recordings = sorted(RECORDINGS.glob("*/native.jsonl"))
    unknown: ClassVar[Mapping[str, Any]] = {"jsonrpc": "2.0", "id": "1", "result": {"kind": "of-next-year"}}
    tool_output = "it-ran"

    @pytest.fixture(autouse=True)
    def _served(self, server: Server) -> None:
        self.server = server

    def make_adapter(self) -> BackendAdapter:
        return A2aAdapter()

    def start(
        self, adapter: BackendAdapter, tmp_path: Path, behaviour: Behaviour | More = "say", **fields: Any
    ) -> Start:
        return super().start(adapter, tmp_path, behaviour, agent=self.server.url, **fields)

    # The suite means a process of the session's here. The server is none: it runs by itself, and its death is tested below.

    async def test_it_is_installed(self) -> None:
        with pytest.raises(TrunklineError) as refused:
            await A2aAdapter().probe()
        assert refused.value.code == "agent_not_found"

    async def test_every_line_comes_once_in_order_verbatim(self, tmp_path: Path) -> None:
        async with self.session(tmp_path) as talk:
            await talk.turn(self.prompts["say"])
            natives = [native.raw for native in talk.natives]
        said = self.server.log.read_bytes().splitlines()
        assert natives == said[: len(natives)]
        assert len(natives) > 4
        recorded = read_recording(tmp_path / "native.jsonl")
        assert [entry.raw for entry in recorded if entry.speaker == "agent"] == said
        # The card comes first, then the prompt, then the answer to it.
        assert [entry.number for entry in recorded if entry.speaker == "host"] == [2]
        asked = decode_json(recorded[1].raw)
        assert asked["method"] == "message/stream"
        assert asked["params"]["message"]["parts"] == [{"kind": "text", "text": "hello there"}]

    async def test_a_message_of_next_year_does_no_harm(self, tmp_path: Path) -> None:
        """There is no output of a program; an unknown message is translated as such in the still part."""

    async def test_a_session_whose_agent_was_killed_goes_on(self, tmp_path: Path) -> None:
        """A server that dies takes its tasks with it: see `test_a_server_that_dies_ends_the_messages`."""

    async def test_a_killed_agent_ends_its_messages(self, tmp_path: Path) -> None:
        """Likewise."""


@asynccontextmanager
async def running(
    server: Server, tmp_path: Path, native: str | None = None, **options: Any
) -> AsyncGenerator[Running[A2aSession]]:
    adapter = A2aAdapter()
    start = local_start(
        adapter,
        tmp_path,
        options=SessionOptions(**options),
        agent=server.url,
        native_session=native,
        temporary=tmp_path,
        source={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
    )
    opened = Running(await (adapter.create if native is None else adapter.resume)(start))
    reading = asyncio.create_task(opened.read())
    try:
        yield opened
    finally:
        await opened.session.close(grace=1)
        await reading


@pytest.mark.parametrize(
    ("decision", "outcome", "status"),
    [
        ({"behaviour": "allow"}, "proceed_once", "completed"),
        ({"behaviour": "allow", "option": "proceed_always"}, "proceed_always", "completed"),
        ({"behaviour": "deny"}, "cancel", "rejected"),
    ],
)
async def test_a_decision_goes_as_a_message_on_the_same_task(
    server: Server, tmp_path: Path, decision: dict[str, Any], outcome: str, status: str
) -> None:
    async with running(server, tmp_path) as agent:
        await agent.say("ask ls")
        asked = await agent.wait(PermissionRequested)
        assert await agent.session.pending() == {asked.ask}
        assert (asked.name, asked.title, asked.input) == ("run_shell_command", "Confirm", {"command": "ls"})
        bad = AskDecided(ask=asked.ask, behaviour="allow", option="maybe", by="test")
        with pytest.raises(TrunklineError) as refused:
            await agent.session.decide(asked.ask, bad)
        assert refused.value.code == "bad_answer"
        await agent.session.decide(asked.ask, AskDecided(ask=asked.ask, by="test", **decision))
        assert (await agent.wait(TurnCompleted)).outcome == "success"
        told = decode_json(join_text(agent.all(MessageAssistant)[-1].content).encode())
        assert told["outcome"] == outcome
        assert [one.status for one in agent.all(ToolCompleted)] == [status]
        assert len(agent.all(TurnStarted)) == 1


async def test_the_connection_is_kept_while_somebody_decides(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An idle connection is closed after five seconds, and the task with it: the fake answers `aborted` then."""
    monkeypatch.setattr(session_module, "KEEP_S", 0.5)
    async with running(server, tmp_path) as agent:
        await agent.say("ask ls")
        asked = await agent.wait(PermissionRequested)
        cards = server.log.read_text().count('"protocolVersion"')
        await eventually(lambda: server.log.read_text().count('"protocolVersion"') > cards + 14, 30)
        await agent.session.decide(asked.ask, AskDecided(ask=asked.ask, behaviour="allow", by="test"))
        await agent.wait(TurnCompleted)
        assert [one.status for one in agent.all(ToolCompleted)] == ["completed"]


async def test_turns_share_a_task_and_an_interrupted_one_is_followed_by_another(server: Server, tmp_path: Path) -> None:
    async with running(server, tmp_path) as agent:
        await agent.turn("one")
        await agent.turn("two", 2)
        assert agent.all(SessionUpdated)[-1].native_session is None
        await agent.say("long", "cmd_3")
        await agent.wait(TurnStarted, 3)
        await agent.session.interrupt()
        assert (await agent.wait(TurnCompleted, 3)).outcome == "interrupted"
        assert (await agent.turn("three", 4)).outcome == "success"
        changed = agent.all(SessionUpdated)[-1].native_session
        assert changed not in (None, agent.all(SessionInitialized)[0].native_session)


async def test_a_server_that_dies_ends_the_messages_and_a_dead_one_is_said_to_be(
    server: Server, tmp_path: Path
) -> None:
    async with running(server, tmp_path) as agent:
        await agent.say("long")
        await agent.wait(TurnStarted)
        await asyncio.to_thread(server.kill)
        await eventually(lambda: agent.over)
        exit = await agent.session.close()
        assert exit.code == 1
        assert "is its server running?" in exit.stderr_tail
        with pytest.raises(TrunklineError) as refused:
            await agent.say("hello")
        assert refused.value.code == "agent_failed"
    with pytest.raises(TrunklineError, match="is its server running") as refused:
        async with running(server, tmp_path):
            pass
    assert refused.value.code == "agent_failed"


async def test_an_answer_that_breaks_off_fails_the_turn_and_not_the_session(server: Server, tmp_path: Path) -> None:
    async with running(server, tmp_path) as agent:
        ended = await agent.turn("break")
        assert (ended.outcome, ended.error and ended.error.code) == ("error", "agent_failed")
        assert (await agent.turn("hello", 2)).outcome == "success"


async def test_a_failure_that_is_told_in_mid_turn_is_the_turns(server: Server, tmp_path: Path) -> None:
    async with running(server, tmp_path) as agent:
        ended = await agent.turn("err400")
        assert (ended.outcome, ended.error and ended.error.message) == ("error", "Agent Error: 400")
        assert (await agent.turn("hello", 2)).outcome == "success"


async def test_a_task_that_the_server_does_not_know_is_lost(server: Server, tmp_path: Path) -> None:
    with pytest.raises(TrunklineError) as refused:
        async with running(server, tmp_path, native="gone"):
            pass
    assert refused.value.code == "history_lost"


async def test_what_can_not_be_sent_or_done_is_refused(server: Server, tmp_path: Path) -> None:
    async with running(server, tmp_path) as agent:
        with pytest.raises(TrunklineError) as refused:
            await agent.say("look", "cmd_1", ImageBlock(media_type="image/png", data="aGk="))
        assert refused.value.code == "bad_params"
        with pytest.raises(TrunklineError) as refused:
            await agent.session.interrupt()
        assert refused.value.code == "stale_target"
        assert (await agent.turn("hello")).outcome == "success"
    adapter = A2aAdapter()
    for agent_name in (None, "http://192.0.2.1:1"):
        start = local_start(adapter, tmp_path, agent=agent_name, temporary=tmp_path)
        with pytest.raises(TrunklineError) as refused:
            await adapter.create(start)
        assert refused.value.code == "bad_params"

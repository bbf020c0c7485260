"""The OpenCode adapter on a server that runs by itself, loses its streams of events, is away, and is started anew."""

import asyncio
import base64
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.contract.running import Running

from trunkline_adapters.opencode import follow
from trunkline_adapters.opencode import session as session_module
from trunkline_adapters.opencode.adapter import OpenCodeAdapter
from trunkline_agentkit import local_start
from trunkline_agentkit.recorder import read_recording
from trunkline_agentkit.replay import translate
from trunkline_testkit import eventually
from trunkline_testkit.ports import free_port
from trunkline_wire import TrunklineError
from trunkline_wire.asks import AskDecided, AskWithdrawn, PermissionRequested
from trunkline_wire.session import SessionOptions
from trunkline_wire.turn import MessageAssistant, ToolCompleted, ToolStarted, TurnCompleted, TurnStarted

STAND_IN = Path(__file__).parent / "opencode_stand_in.py"
PASSWORD = "a-password-of-a-test"


class Shared:
    """A stand-in that runs by itself, and may be killed and started again where it was."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        self.process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(STAND_IN),
            "serve",
            "--port",
            str(self.port),
            env={"PATH": os.environ["PATH"], "HOME": str(self.folder), "OPENCODE_SERVER_PASSWORD": PASSWORD},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        assert self.process.stdout is not None
        assert b"listening" in await asyncio.wait_for(self.process.stdout.readline(), 30)

    async def kill(self) -> None:
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(signal.SIGKILL)
            await self.process.wait()

    async def control(self, what: str) -> None:
        """`cut` drops every stream of events, `away` refuses new ones until `back`."""
        word = base64.b64encode(f"opencode:{PASSWORD}".encode()).decode()
        async with (
            aiohttp.ClientSession(headers={"Authorization": f"Basic {word}"}) as client,
            client.post(f"{self.url}/_test/{what}") as answer,
        ):
            assert answer.status == 200


@pytest.fixture
async def shared(tmp_path: Path) -> AsyncGenerator[Shared]:
    server = Shared(tmp_path)
    await server.start()
    yield server
    await server.kill()


@asynccontextmanager
async def running(shared: Shared, tmp_path: Path, password: str = PASSWORD) -> AsyncGenerator[Running[Any]]:
    file = tmp_path / "password"
    file.write_text(f"{password}\n")
    adapter = OpenCodeAdapter({})
    options = SessionOptions(native={"server": shared.url, "password_file": str(file)})
    source = {"PATH": "/usr/bin", "HOME": str(tmp_path)}
    recording = tmp_path / "native.jsonl"
    start = local_start(adapter, tmp_path, options=options, source=source, temporary=tmp_path, recording=recording)
    agent = Running(await adapter.create(start))
    reading = asyncio.create_task(agent.read())
    try:
        yield agent
    finally:
        await agent.session.close(grace=1)
        await reading
    told = [line.raw for line in read_recording(recording) if line.speaker == "agent"]
    assert [native.raw for native in agent.natives] == told[: len(agent.natives)]
    _, problems = translate(adapter, recording)
    assert problems == [], "a recording says the same without a server"


def lost(agent: Running[Any]) -> int:
    return [native.kind for native in agent.natives].count("stream/lost")


def ready(agent: Running[Any]) -> bool:
    """What was missed has been read back."""
    kinds = [native.kind for native in agent.natives]
    return lost(agent) > 0 and "answer/GET /question" in kinds[kinds.index("stream/lost") :]


async def test_what_was_said_while_nobody_listened_is_told_once(shared: Shared, tmp_path: Path) -> None:
    async with running(shared, tmp_path) as agent:
        await agent.say("slow")
        await agent.wait(TurnStarted)
        await shared.control("away")
        await eventually(lambda: lost(agent) == 1, 10)
        await asyncio.wait_for(_idle(shared), 30)
        await shared.control("back")
        ended = await agent.wait(TurnCompleted)
        assert (ended.outcome, ended.result) == ("success", "word0 word1 word2 word3 ")
        assert [one.content[0].text for one in agent.all(MessageAssistant)] == ["word0 word1 word2 word3 "]
        assert len(agent.all(TurnStarted)) == len(agent.all(TurnCompleted)) == 1
        assert await agent.result("hello", 2) == "hello"


async def _idle(shared: Shared) -> None:
    word = base64.b64encode(f"opencode:{PASSWORD}".encode()).decode()
    async with aiohttp.ClientSession(headers={"Authorization": f"Basic {word}"}) as client:

        async def rests() -> bool:
            async with client.get(f"{shared.url}/session/status") as answer:
                return await answer.json() == {}

        await eventually(rests, 30)


async def test_a_text_with_a_hole_in_it_comes_whole_at_its_end(shared: Shared, tmp_path: Path) -> None:
    async with running(shared, tmp_path) as agent:
        await agent.say("slow")
        await agent.wait(TurnStarted)
        await shared.control("cut")
        assert (await agent.wait(TurnCompleted)).result == "word0 word1 word2 word3 "
        assert [one.content[0].text for one in agent.all(MessageAssistant)] == ["word0 word1 word2 word3 "]


async def test_an_ask_is_the_same_over_another_connection(shared: Shared, tmp_path: Path) -> None:
    async with running(shared, tmp_path) as agent:
        await agent.say("ask ls")
        asked = await agent.wait(PermissionRequested)
        await shared.control("cut")
        await eventually(lambda: ready(agent), 10)
        assert await agent.session.pending() == {asked.ask}
        await agent.session.decide(asked.ask, AskDecided(ask=asked.ask, behaviour="allow", by="me"))
        assert (await agent.wait(TurnCompleted)).outcome == "success"
        assert len(agent.all(PermissionRequested)) == len(agent.all(ToolStarted)) == len(agent.all(ToolCompleted)) == 1
        assert agent.all(AskWithdrawn) == []


async def test_an_ask_that_came_unheard_is_told(shared: Shared, tmp_path: Path) -> None:
    async with running(shared, tmp_path) as agent:
        await agent.turn("hello")
        await shared.control("away")
        await eventually(lambda: lost(agent) == 1, 10)
        prompting = asyncio.create_task(agent.say("ask ls", "cmd_2"))
        await shared.control("back")
        await prompting
        asked = await agent.wait(PermissionRequested)
        await agent.session.decide(asked.ask, AskDecided(ask=asked.ask, behaviour="allow", by="me"))
        assert (await agent.wait(TurnCompleted, 2)).outcome == "success"


async def test_a_server_that_is_killed_in_mid_turn_and_started_anew(shared: Shared, tmp_path: Path) -> None:
    async with running(shared, tmp_path) as agent:
        await agent.turn("hello")
        await agent.say("ask ls", "cmd_2")
        asked = await agent.wait(PermissionRequested)
        await shared.kill()
        await shared.start()
        ended = await agent.wait(TurnCompleted, 2)
        assert (ended.outcome, ended.error.code) == ("aborted", "agent_failed")
        assert [one.ask for one in agent.all(AskWithdrawn)] == [asked.ask]
        assert [tool.status for tool in agent.all(ToolCompleted)] == ["cancelled"]
        assert await agent.result("on", 3) == "on"
        said = [one.content[0].text for one in agent.all(MessageAssistant)]
        assert said == ["hello", "on"]


async def test_a_server_that_stays_away_ends_the_session(
    shared: Shared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "PAUSES", (0.01, 0.01))
    monkeypatch.setattr(session_module, "AGAIN", 1.0)
    async with running(shared, tmp_path) as agent:
        await agent.turn("hello")
        await shared.kill()
        await eventually(lambda: agent.over, 10)
        with pytest.raises(TrunklineError) as error:
            await agent.say("anyone there?", "cmd_2")
        assert error.value.code == "agent_failed"


async def test_closing_leaves_the_server_and_ends_the_turn(shared: Shared, tmp_path: Path) -> None:
    async with running(shared, tmp_path) as agent:
        await agent.say("long")
        await agent.wait(TurnStarted)
        assert (await agent.session.close()).code == 0
    await asyncio.wait_for(_idle(shared), 30)


async def test_a_wrong_password_is_refused_without_being_told(shared: Shared, tmp_path: Path) -> None:
    with pytest.raises(TrunklineError) as error:
        async with running(shared, tmp_path, password="not-this-one"):
            pass
    assert error.value.code == "agent_auth"
    assert "not-this-one" not in str(error.value)


@pytest.mark.parametrize(
    "address",
    ["ftp://127.0.0.1", "http://me:word@127.0.0.1:1", "http://127.0.0.1:1/?auth_token=x", "http://far.example:4096"],
)
async def test_an_address_that_would_show_a_secret_is_refused(tmp_path: Path, address: str) -> None:
    file = tmp_path / "password"
    file.write_text("word")
    adapter = OpenCodeAdapter({})
    options = SessionOptions(native={"server": address, "password_file": str(file)})
    start = local_start(adapter, tmp_path, options=options, source={"PATH": "/usr/bin"}, temporary=tmp_path)
    with pytest.raises(TrunklineError) as error:
        await adapter.create(start)
    assert error.value.code == "bad_params"

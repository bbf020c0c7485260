"""The Codex adapter over a WebSocket, against a fake of a server that runs by itself and loses its connections."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import WSMsgType, web
from tests.contract.running import Running

from trunkline_adapters.codex import link
from trunkline_adapters.codex.adapter import CodexAdapter
from trunkline_agentkit import local_start
from trunkline_testkit import eventually
from trunkline_wire import TrunklineError
from trunkline_wire.asks import AskDecided, AskWithdrawn, PermissionRequested
from trunkline_wire.session import SessionOptions
from trunkline_wire.turn import ToolCompleted, TurnCompleted, TurnStarted

TURN = {"id": "turn-1", "rootTurnId": "turn-1", "items": [], "error": None}
PLACE = {"threadId": "thread-1", "turnId": "turn-1"}
COMMAND = {"type": "commandExecution", "id": "call-1", "command": "ls", "commandActions": [], "cwd": "/"}


class FakeServer:
    """One thread with one turn, in which a command waits for an approval over however many connections.

    `loses_answers`: it drops the connection at the first answer, as if it had never come.
    """

    def __init__(self, *, loses_answers: bool = False) -> None:
        self.loses_answers = loses_answers
        self.away = False
        """Whoever connects is not served."""
        self.asked = 0
        self.answers: list[Any] = []
        self.waiting = False
        self.ended = False
        self.socket: web.WebSocketResponse | None = None

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        if self.away:
            raise web.HTTPServiceUnavailable
        if request.headers.get("Authorization") != "Bearer a-token":
            raise web.HTTPUnauthorized
        socket = self.socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for frame in socket:
            if frame.type is WSMsgType.TEXT:
                await self.hear(json.loads(frame.data))
        return socket

    async def say(self, message: dict[str, Any]) -> None:
        assert self.socket is not None
        await self.socket.send_json(message)

    async def note(self, method: str, **params: Any) -> None:
        await self.say({"method": method, "params": params})

    async def hear(self, message: dict[str, Any]) -> None:
        method = message.get("method")
        if method is None:
            await self.decided(message)
        elif "id" in message:
            await self.say({"id": message["id"], "result": self.result(method)})
            if method == "turn/start":
                await self.begin()
            elif method == "thread/resume" and self.waiting:
                await self.ask()

    def result(self, method: str) -> dict[str, Any]:
        match method:
            case "thread/start" | "thread/resume":
                return {"thread": {"id": "thread-1"}, "model": "m"}
            case "turn/start":
                return {"turn": TURN | {"status": "inProgress"}}
            case "thread/turns/list":
                items = [COMMAND | {"status": "completed", "exitCode": 0, "completedAtMs": 1}] if self.ended else []
                status = "completed" if self.ended else "inProgress"
                return {"data": [TURN | {"items": items, "status": status}], "nextCursor": None}
            case _:
                return {}

    async def begin(self) -> None:
        await self.note("turn/started", threadId="thread-1", turn=TURN | {"status": "inProgress"})
        await self.note("item/started", item=COMMAND | {"status": "inProgress"}, **PLACE)
        self.waiting = True
        await self.ask()

    async def ask(self) -> None:
        self.asked += 1
        params = PLACE | {"itemId": "call-1", "command": "ls"}
        await self.say({"id": self.asked, "method": "item/commandExecution/requestApproval", "params": params})

    async def decided(self, message: dict[str, Any]) -> None:
        self.answers.append((message["id"], message["result"]))
        if self.loses_answers and len(self.answers) == 1:
            await self.drop()
            return
        self.waiting = False
        await self.note("serverRequest/resolved", threadId="thread-1", requestId=message["id"])
        await self.note("item/completed", item=COMMAND | {"status": "completed", "exitCode": 0}, **PLACE)
        await self.note("turn/completed", threadId="thread-1", turn=TURN | {"status": "completed"})

    async def drop(self) -> None:
        assert self.socket is not None
        await self.socket.close()


@asynccontextmanager
async def running(fake: FakeServer, tmp_path: Path, token: str = "a-token") -> AsyncGenerator[Running[Any]]:
    app = web.Application()
    app.router.add_get("/", fake.serve)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    file = tmp_path / "token"
    file.write_text(token)
    try:
        adapter = CodexAdapter({})
        options = SessionOptions(native={"server": f"ws://127.0.0.1:{port}/", "token_file": str(file)})
        source = {"PATH": "/usr/bin", "HOME": str(tmp_path)}
        start = local_start(adapter, tmp_path, options=options, source=source, temporary=tmp_path)
        agent = Running(await adapter.create(start))
        reading = asyncio.create_task(agent.read())
        try:
            yield agent
        finally:
            await agent.session.close(grace=1)
            await reading
    finally:
        await runner.cleanup()


def allow(ask: str) -> AskDecided:
    return AskDecided(ask=ask, behaviour="allow", by="me")


async def test_an_ask_that_comes_again_under_a_new_id_is_the_same_ask(tmp_path: Path) -> None:
    fake = FakeServer()
    async with running(fake, tmp_path) as agent:
        await agent.say("run it")
        asked = await agent.wait(PermissionRequested)
        await fake.drop()
        await eventually(lambda: fake.asked == 2, 10)
        await agent.session.decide(asked.ask, allow(asked.ask))
        assert (await agent.wait(TurnCompleted)).outcome == "success"
        assert fake.answers == [(2, {"decision": "accept"})]
        assert len(agent.all(PermissionRequested)) == 1
        assert agent.all(AskWithdrawn) == []


async def test_an_answer_that_was_lost_is_given_again(tmp_path: Path) -> None:
    fake = FakeServer(loses_answers=True)
    async with running(fake, tmp_path) as agent:
        await agent.say("run it")
        asked = await agent.wait(PermissionRequested)
        await agent.session.decide(asked.ask, allow(asked.ask))
        assert (await agent.wait(TurnCompleted)).outcome == "success"
        assert fake.answers == [(1, {"decision": "accept"}), (2, {"decision": "accept"})]


async def test_what_ended_unheard_gets_its_end(tmp_path: Path) -> None:
    fake = FakeServer()
    async with running(fake, tmp_path) as agent:
        await agent.say("run it")
        asked = await agent.wait(PermissionRequested)
        fake.waiting, fake.ended = False, True
        await fake.drop()
        assert (await agent.wait(TurnCompleted)).outcome == "success"
        assert [tool.status for tool in agent.all(ToolCompleted)] == ["completed"]
        assert [withdrawn.ask for withdrawn in agent.all(AskWithdrawn)] == [asked.ask]
        assert len(agent.all(TurnStarted)) == 1


async def test_a_server_that_stays_away_ends_the_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "_PAUSES", (0.01, 0.01))
    fake = FakeServer()
    async with running(fake, tmp_path) as agent:
        await agent.say("run it")
        await agent.wait(PermissionRequested)
        fake.away = True
        await fake.drop()
        await eventually(lambda: agent.over, 10)
        end = await agent.session.close()
        assert end.code != 0


async def test_a_wrong_token_is_refused_without_being_told(tmp_path: Path) -> None:
    with pytest.raises(TrunklineError) as error:
        async with running(FakeServer(), tmp_path, token="not-this-one"):
            pass
    assert error.value.code == "agent_auth"
    assert "not-this-one" not in str(error.value)

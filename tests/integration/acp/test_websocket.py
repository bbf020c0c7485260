"""Editors at `/acp`: the protocol's draft WebSocket transport, spoken as it stands, without an SDK."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.integration.supervisor.running import Up

from trunkline_testkit.product import Client

Message = dict[str, Any]
LIMIT_S = 30.0


class RawEditor:
    """A WebSocket that carries JSON-RPC. `choose` answers a permission dialog, None leaves it open."""

    def __init__(self, ws: aiohttp.ClientWebSocketResponse) -> None:
        self.ws = ws
        self.updates: list[Message] = []
        self.asked: list[Message] = []
        self.choose: str | None = "allow_once"
        self._number = 0

    async def send(self, method: str, **params: Any) -> int:
        self._number += 1
        await self.ws.send_json({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        return self._number

    async def call(self, method: str, **params: Any) -> Message:
        """The whole answer; what comes before it is kept."""
        return await self.answer(await self.send(method, **params))

    async def answer(self, number: int) -> Message:
        async with asyncio.timeout(LIMIT_S):
            while True:
                message = await self.take()
                if message.get("id") == number and "method" not in message:
                    return message

    async def until(self, seen: Callable[[], bool]) -> None:
        async with asyncio.timeout(LIMIT_S):
            while not seen():
                await self.take()

    async def take(self) -> Message:
        frame = await self.ws.receive()
        assert frame.type is aiohttp.WSMsgType.TEXT, frame
        message: Message = json.loads(frame.data)
        match message.get("method"):
            case "session/update":
                self.updates.append(message["params"]["update"])
            case "session/request_permission":
                self.asked.append(message["params"])
                options = message["params"]["options"]
                chosen = next((one["optionId"] for one in options if one["kind"] == self.choose), None)
                if chosen is not None:
                    outcome = {"outcome": "selected", "optionId": chosen}
                    await self.ws.send_json({"jsonrpc": "2.0", "id": message["id"], "result": {"outcome": outcome}})
            case _:
                pass
        return message

    @property
    def said(self) -> str:
        chunks = [one for one in self.updates if one["sessionUpdate"] == "agent_message_chunk"]
        return "".join(one["content"]["text"] for one in chunks)

    async def prompt(self, session: str, said: str) -> int:
        return await self.send("session/prompt", sessionId=session, prompt=[{"type": "text", "text": said}])


@asynccontextmanager
async def connected(up: Up, token: str | None = None, **headers: str) -> AsyncGenerator[RawEditor]:
    """An editor with a bearer token, the owner's by default."""
    token = token or (up.home / "token").read_text().strip()
    async with (
        aiohttp.ClientSession() as http,
        http.ws_connect(f"{up.state['gateway']}/acp", headers={"Authorization": f"Bearer {token}", **headers}) as ws,
    ):
        one = RawEditor(ws)
        ready = await one.call("initialize", protocolVersion=1, clientCapabilities={})
        assert (ready["result"]["protocolVersion"], ready["result"]["agentInfo"]["name"]) == (1, "trunkline")
        yield one


async def begin(one: RawEditor, project: Path) -> str:
    made = await one.call("session/new", cwd=str(project), mcpServers=[], _meta={"trunkline": {"agent": "demo"}})
    return str(made["result"]["sessionId"])


async def test_a_conversation_over_a_websocket(up: Up, tmp_path: Path) -> None:
    async with connected(up) as one:
        session = await begin(one, tmp_path)
        ended = await one.answer(await one.prompt(session, "slow 30"))
        assert ended["result"]["stopReason"] == "end_turn"
        pieces = [each for each in one.updates if each["sessionUpdate"] == "agent_message_chunk"]
        assert len(pieces) >= 3  # as it is written, not at the end
        assert one.said == " ".join(f"word{number}" for number in range(30))

        await one.answer(await one.prompt(session, "ask ls"))
        (asked,) = one.asked
        assert (asked["sessionId"], asked["toolCall"]["title"]) == (session, "run: ls")
        last = [each for each in one.updates if each["sessionUpdate"] == "tool_call_update"][-1]
        assert last["status"] == "completed"

        running = await one.prompt(session, "slow 2000")
        told = len(one.updates)
        await one.until(lambda: len(one.updates) > told)
        await one.ws.send_json({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}})
        assert (await one.answer(running))["result"]["stopReason"] == "cancelled"

        # JSON over several lines is one message; a binary frame is none, and no JSON is told so.
        await one.ws.send_bytes(b"{}")
        await one.ws.send_str(
            json.dumps({"jsonrpc": "2.0", "id": "x", "method": "session/list", "params": {}}, indent=1)
        )
        listed = await one.take()
        assert listed["id"] == "x"
        assert session in [info["sessionId"] for info in listed["result"]["sessions"]]
        await one.ws.send_str("what?")
        assert (await one.take())["error"]["code"] == -32700

    # The editor is gone, the session goes on; another one sees all that is past before the answer.
    async with connected(up) as again:
        loaded = await again.call("session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        assert loaded["result"]["modes"]["currentModeId"] == "ask"
        assert again.said.startswith("word0 word1 ")
        ended = await again.answer(await again.prompt(session, "say on"))
        assert ended["result"]["stopReason"] == "end_turn"
        assert again.said.endswith("on")


async def test_an_editor_may_what_its_credential_may(up: Up, browser: Client, tmp_path: Path) -> None:
    tokens = {
        role: (await browser.call("token.create", actor=role, role=role))["token"] for role in ("viewer", "participant")
    }
    async with connected(up) as owner:
        session = await begin(owner, tmp_path)
        await owner.answer(await owner.prompt(session, "say hello"))
    async with connected(up, tokens["viewer"]) as viewer:
        await viewer.call("session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        assert viewer.said == "hello"
        refused = await viewer.answer(await viewer.prompt(session, "say no"))
        assert refused["error"]["data"]["code"] == "forbidden"
        new = await viewer.call("session/new", cwd=str(tmp_path), mcpServers=[], _meta={"trunkline": {"agent": "demo"}})
        assert new["error"]["data"]["code"] == "forbidden"
    async with connected(up, tokens["participant"]) as participant:
        await participant.call("session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        running = await participant.prompt(session, "ask ls")
        await participant.until(lambda: "Your answer was refused" in participant.said)
        (ask,) = (await browser.call("ask.list", session=session))["asks"]
        await browser.call("ask.answer", ask=ask["ask"], behaviour="deny")
        assert (await participant.answer(running))["result"]["stopReason"] == "end_turn"
        scoped = await browser.call("token.create", actor="guest", role="owner", sessions=["ses_" + "0" * 32])
    async with connected(up, scoped["token"]) as guest:
        other = await guest.call("session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        assert other["error"]["data"]["code"] == "forbidden"
        await browser.call("token.revoke", id=scoped["id"])
        closed = await asyncio.wait_for(guest.ws.receive(), LIMIT_S)
        assert (closed.type, closed.data, closed.extra) == (aiohttp.WSMsgType.CLOSE, 1008, "revoked")


async def refusal(http: aiohttp.ClientSession, url: str, **headers: str) -> tuple[int, str]:
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await http.ws_connect(f"{url}/acp", headers=headers)
    async with http.get(f"{url}/acp", headers=headers) as answer:
        return refused.value.status, (await answer.json(content_type=None))["code"]


async def test_who_may_connect(up: Up, browser: Client) -> None:
    url = up.state["gateway"]
    bearer = {"Authorization": f"Bearer {(up.home / 'token').read_text().strip()}"}
    link = await browser.call("sign_in.link", actor="ann", role="viewer")
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
        assert await refusal(http, url) == (401, "unauthorized")
        assert await refusal(http, url, Authorization="Bearer trk_none") == (401, "unauthorized")
        assert await refusal(http, url, **bearer, Origin="https://elsewhere.example") == (403, "bad_origin")
        async with http.post(f"{url}/sign-in", json={"code": link["code"]}, headers={"Origin": url}) as answer:
            assert answer.status == 200
        # A page of ours, signed in by a cookie, may connect; without an Origin, or with another page's, nobody may.
        async with http.ws_connect(f"{url}/acp", headers={"Origin": url}) as ws:
            await ws.send_json({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}})
            assert (await ws.receive_json(timeout=LIMIT_S))["result"]["protocolVersion"] == 1
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await http.ws_connect(f"{url}/acp")
        assert refused.value.status == 403
        assert await refusal(http, url, Origin="https://elsewhere.example") == (403, "bad_origin")
        async with http.get(f"{url}/acp", headers=bearer) as answer:
            assert (answer.status, (await answer.json(content_type=None))["code"]) == (501, "unsupported")

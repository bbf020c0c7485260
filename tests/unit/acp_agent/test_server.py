"""The protocol's methods on a fake way to the gateway."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, Self

import pytest

from trunkline_acp import server
from trunkline_acp.connection import Editor
from trunkline_acp.server import Server, Wanted
from trunkline_client import Notice, Opened
from trunkline_fold.session import initial
from trunkline_testkit import eventually
from trunkline_wire import encode

Obj = dict[str, Any]


class FakeWay:
    """A gateway where every session is there, and nothing happens."""

    def __init__(self) -> None:
        self.called: list[str] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def call(self, method: str, *, within: float = 60.0, **params: Any) -> Any:
        self.called.append(method)
        assert within > 0
        assert method == "session.get"
        return {"state": json.loads(encode(initial(params["session"])))}

    async def watch(self, *, session: str, start: str) -> AsyncIterator[Notice]:
        assert (session[:4], start) == ("ses_", "snapshot")
        yield Opened()
        await asyncio.Event().wait()


class Out:
    def __init__(self) -> None:
        self.answers: dict[int, Obj] = {}

    def write(self, data: bytes) -> None:
        for line in data.splitlines():
            message = json.loads(line)
            self.answers[message["id"]] = message

    async def drain(self) -> None:
        pass


def session(number: int) -> str:
    return f"ses_{number:032x}"


async def test_an_editor_has_so_many_sessions_open_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MAX_SESSIONS", 2)
    reader, out, way = asyncio.StreamReader(), Out(), FakeWay()
    serving = asyncio.create_task(Server(Editor(reader, out), lambda: way, Wanted()).run())
    number = 0

    async def ask(method: str, **params: Any) -> Obj:
        nonlocal number
        number += 1
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        reader.feed_data(json.dumps(request).encode() + b"\n")
        await eventually(lambda: number in out.answers)
        return out.answers[number]

    for one in (1, 2, 2):
        assert "result" in await ask("session/resume", sessionId=session(one))
    refused = await ask("session/resume", sessionId=session(3))
    assert refused["error"]["data"]["code"] == "rate_limited"
    before = len(way.called)
    refused = await ask("session/new", cwd="/", mcpServers=[])
    assert refused["error"]["data"]["code"] == "rate_limited"
    assert len(way.called) == before  # none is made that could not be shown
    assert "result" in await ask("session/close", sessionId=session(1))
    assert "result" in await ask("session/resume", sessionId=session(3))
    reader.feed_eof()
    await serving

"""The Python client: typed methods, events as classes, and a reader that is too slow for what happens."""

import asyncio

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.integration.gateway.rig import Rig, begin_turn

from trunkline_client import Address, Broken, Connection, ConnectionLostError, Gap, Link, Received, Snapshot
from trunkline_wire import TrunklineError
from trunkline_wire.turn import MessageSystem, TurnStarted


def address(rig: Rig) -> Address:
    return Address(url="http://localhost", socket=rig.running.socket)


async def test_methods_and_events(rig: Rig) -> None:
    async with await rig.session() as writer, Link(address(rig), name="tests") as link:
        begin_turn(writer)
        await rig.settled(writer)
        assert (await link.session.get(session=writer.session))["state"]["session"] == writer.session
        with pytest.raises(TrunklineError) as refused:
            await link.session.get(session="ses_" + "0" * 32)
        assert refused.value.code == "unknown_session"
        async for notice in link.watch(session=writer.session, start="start"):
            if isinstance(notice, Received) and isinstance(notice.decoded().data, TurnStarted):
                break


async def test_whoever_is_too_slow_goes_on_by_cursor(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline_client.connection.MOST_WAITING", 20)
    seen: list[int] = []
    breaks = 0
    async with await rig.session() as writer, Link(address(rig)) as link:
        async with asyncio.timeout(30):
            async for notice in link.watch(session=writer.session, start="start"):
                assert not isinstance(notice, Gap)
                breaks += notice == Broken(mended=True)
                if isinstance(notice, Received):
                    seen.append(notice.event["seq"])
                if len(seen) == 1:
                    # Much happens while this reader does something else, over the one connection it has.
                    for number in range(200):
                        writer.append(MessageSystem(text=f"{number}"))
                    await writer.flush()
                    await rig.settled(writer)
                    await link.session.list()
                if len(seen) == writer.seq:
                    break
    assert seen == list(range(1, 202))
    assert breaks >= 1


async def test_a_token_that_is_not_taken_is_named(rig: Rig) -> None:
    with pytest.raises(TrunklineError) as refused:
        await Connection.connect(Address(url=rig.running.url, token="tl_wrong"))
    assert refused.value.code == "unauthorized"


async def test_a_gap_is_told_once(rig: Rig) -> None:
    async with await rig.session() as one, await rig.session() as other, Link(address(rig)) as link:
        await rig.settled(one, other)
        async with await Connection.connect(address(rig)) as connection:
            cursor = (await connection.call("subscribe", session=one.session))["cursor"]
        seen: list[str] = []
        async for notice in link.watch(session=other.session, cursor=cursor):
            seen.append(type(notice).__name__)
            if isinstance(notice, Snapshot):
                begin_turn(other)
                await rig.settled(other)
            if isinstance(notice, Received):
                break
    assert seen == ["Opened", "Gap", "Snapshot", "Received"]


async def test_a_gateway_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline_client.connection.SILENCE", 0.3)

    async def mute(request: web.Request) -> web.WebSocketResponse:
        ws = web.WebSocketResponse()
        await ws.prepare(request)
        hello = await ws.receive_json()
        await ws.send_json({"type": "res", "id": hello["id"], "ok": True, "payload": {}})
        await ws.receive()
        return ws

    app = web.Application()
    app.router.add_get("/ws", mute)
    async with (
        TestServer(app) as server,
        await Connection.connect(Address(url=str(server.make_url("")).rstrip("/"))) as one,
    ):
        with pytest.raises(ConnectionLostError):
            async with asyncio.timeout(10):
                await anext(one.events())
        with pytest.raises(ConnectionLostError):
            await one.call("session.list")

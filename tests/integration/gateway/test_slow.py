"""A client that does not read: others are not slowed, memory stays bounded, and it gets everything once it reads again."""

import asyncio
import contextlib
import json
import socket
from typing import Any

import aiohttp
import pytest
from tests.integration.gateway.rig import Rig, apply_texts, begin_turn, end_turn, say

from trunkline_bus import metrics
from trunkline_testkit import eventually
from trunkline_wire.turn import MessageSystem

ITEM = "itm_" + "a" * 32


class SlowClient:
    """A WebSocket over the unix socket that reads only when told to; small buffers on its side."""

    def __init__(self, http: aiohttp.ClientSession, ws: aiohttp.ClientWebSocketResponse) -> None:
        self.http, self.ws = http, ws
        self.frames: list[dict[str, Any]] = []

    @classmethod
    async def connect(cls, rig: Rig, **subscribe: Any) -> "SlowClient":
        http = aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(rig.running.socket)))
        ws = await http.ws_connect("http://localhost/ws", max_msg_size=0, autoping=True)
        await ws.send_json({"type": "req", "id": 1, "method": "subscribe", "params": subscribe})
        await ws.receive()
        return cls(http, ws)

    @property
    def transport(self) -> asyncio.Transport:
        # aiohttp has no public way to stall a client.
        connection = self.ws._response.connection  # pyright: ignore[reportPrivateUsage]
        assert connection is not None
        assert isinstance(connection.transport, asyncio.Transport)
        return connection.transport

    async def read_until(self, type_: str) -> None:
        async with asyncio.timeout(30):
            while not self.frames or self.frames[-1].get("event") != type_:
                message = await self.ws.receive()
                assert message.type is aiohttp.WSMsgType.TEXT, message
                frame = json.loads(message.data)
                if frame["type"] == "event":
                    self.frames.append(frame)

    async def close(self) -> None:
        await self.ws.close()
        await self.http.close()


async def test_a_slow_client_misses_nothing_and_slows_nobody(rig: Rig) -> None:
    async with await rig.session() as writer, await rig.client() as quick:
        await quick.call("subscribe", session=writer.session)
        slow = await SlowClient.connect(rig, session=writer.session)
        slow.transport.pause_reading()
        lags = metrics.GATEWAY_LAGS._value.get()  # type: ignore[attr-defined]  # prometheus has no other way to read it
        turn = begin_turn(writer)
        for number in range(2500):
            writer.append(MessageSystem(text=f"{number} " + "x" * 6000))
            if number % 100 == 0:
                await writer.flush()
        say(writer, "itm_" + "b" * 32, "said", turn=turn)
        await writer.flush()
        writer.piece(ITEM, 0, "text", "open ", turn=turn)
        await quick.wait("message.system", count=2500)
        await quick.wait("message.delta")
        assert metrics.GATEWAY_LAGS._value.get() > lags  # type: ignore[attr-defined]  # likewise

        slow.transport.resume_reading()
        await slow.read_until("message.delta")
        end_turn(writer, turn)
        await slow.read_until("turn.completed")
        facts = [frame["payload"]["seq"] for frame in slow.frames if "seq" in frame["payload"]]
        assert facts == list(range(2, 2 + 2 + 2500 + 1 + 1))
        assert apply_texts(slow.frames)[ITEM, 0] == "open "
        await slow.close()


async def test_a_client_that_reads_nothing_is_dropped(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline_gateway.outbox.NOT_READING_S", 0.5)
    dropped = metrics.GATEWAY_DROPPED.labels("not_reading")
    before = dropped._value.get()  # type: ignore[attr-defined]  # prometheus has no other way to read it
    async with await rig.session() as writer:
        slow = await SlowClient.connect(rig, session=writer.session)
        slow.transport.pause_reading()
        for number in range(600):
            writer.append(MessageSystem(text=f"{number} " + "x" * 6000))
        await writer.flush()
        await eventually(lambda: dropped._value.get() == before + 1)  # type: ignore[attr-defined]  # likewise
        await eventually(lambda: rig.running.routes.clients == 0)
        slow.transport.resume_reading()
        await slow.close()


async def test_a_silent_client_is_dropped_with_a_reason(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline_gateway.ws.HELLO_S", 0.05)
    monkeypatch.setattr("trunkline_gateway.ws.HEARTBEAT_S", 0.05)
    monkeypatch.setattr("trunkline_gateway.ws.SILENT_S", 0.4)
    async with (
        aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(rig.running.socket))) as http,
        http.ws_connect("http://localhost/ws", autoping=False) as mute,
        http.ws_connect("http://localhost/ws") as polite,
    ):
        heard: list[aiohttp.WSMsgType] = []

        async def answer_pings() -> None:
            # aiohttp answers pings while somebody receives
            while True:
                heard.append((await polite.receive()).type)

        answering = asyncio.create_task(answer_pings())
        async with asyncio.timeout(10):
            while (message := await mute.receive()).type is not aiohttp.WSMsgType.CLOSE:
                assert message.type in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.PING)
        assert (mute.close_code, message.extra) == (1008, "silent")
        # pongs alone keep a client that has nothing to say
        count = len(heard)
        await eventually(lambda: len(heard) > count + 10)
        assert set(heard) == {aiohttp.WSMsgType.TEXT}
        answering.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await answering


async def test_a_client_that_dies_leaves_nothing(rig: Rig) -> None:
    async with await rig.session() as writer:
        raw = socket.socket(socket.AF_UNIX)
        raw.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(raw, str(rig.running.socket))
        await loop.sock_sendall(
            raw,
            b"GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        )
        await eventually(lambda: rig.running.routes.clients == 1)
        raw.close()
        await eventually(lambda: rig.running.routes.clients == 0)
        begin_turn(writer)
        await writer.flush()


async def test_stopping_tells_the_clients(rig: Rig) -> None:
    async with (
        aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(rig.running.socket))) as http,
        http.ws_connect("http://localhost/ws") as ws,
    ):
        await eventually(lambda: rig.running.routes.clients == 1)
        stop = asyncio.create_task(rig.stop_gateway())
        closed = await ws.receive(timeout=5)
        assert (closed.type, closed.extra, ws.close_code) == (aiohttp.WSMsgType.CLOSE, "stopping", 1001)
        await stop
    assert not rig.running.socket.exists()
    assert not (rig.home / "gateway.json").exists()

"""A relay in this process, and a host at it as the README of trunkline_relay says: it shares no code with devices or the product's host."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Self

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer

from trunkline_bus.tasks import end
from trunkline_relay.serve import Relay
from trunkline_relay.switch import Switch
from trunkline_seal import BINARY, CONTROL, TEXT, Accepting, Channel, Identity, Route, control, pack, pairing, unpack

WINDOW = 512 * 1024

OpenGateway = Callable[[aiohttp.ClientSession, str, str], Awaitable[aiohttp.ClientWebSocketResponse]]


@asynccontextmanager
async def relay_here() -> AsyncGenerator[str]:
    """The address of a relay."""
    app = web.Application()
    Relay(Switch(asyncio.get_running_loop().time)).add(app)
    async with TestServer(app) as server:
        yield str(server.make_url("")).rstrip("/")


class Visit:
    """One device's connection."""

    def __init__(self, host: "ScriptedHost", said: control.Opened) -> None:
        self.sid = bytes.fromhex(said.sid)
        self.said = said
        self.frames: asyncio.Queue[bytes] = asyncio.Queue()
        self.acked = 0
        self.sent = 0
        self.news = asyncio.Event()
        self._host = host
        self._channel: Channel | None = None
        self._sending = asyncio.Lock()

    async def send(self, kind: int, message: bytes, *, last: bool = False) -> None:
        assert self._channel is not None
        async with self._sending:
            for frame in self._channel.seal(kind, message, last=last):
                await self._host.frame(self.sid, frame)

    async def say(self, value: Any, *, last: bool = False) -> None:
        await self.send(CONTROL, json.dumps(value).encode(), last=last)

    async def receive(self) -> tuple[int, bytes]:
        assert self._channel is not None
        while True:
            message = self._channel.open(await self.frames.get())
            if message is not None:
                return message

    async def run(self) -> None:
        accepting = Accepting(self._host.identities, self.sid, await self.frames.get())
        number = pairing.nonce()
        about = {"host": "box", "version": "0", "identity": control.b64(self._host.identities[-1].public)}
        if self.said.pairing:
            about["nonce"] = control.b64(number)
        second, waiting = accepting.answer(json.dumps({**about, **self._host.about}).encode())
        await self._host.frame(self.sid, second)
        self._channel, first = waiting.proven(await self.frames.get())
        if self.said.pairing:
            await self._pair(accepting, number, json.loads(first))
        else:
            await self._bridge(json.loads(first))

    async def _pair(self, accepting: Accepting, number: bytes, said: dict[str, str]) -> None:
        about = json.loads(accepting.about)
        link, theirs = self._host.link, control.plain(said["reveal"])
        assert link is not None
        assert control.plain(about["pair"]) == link.secret
        assert pairing.committed(control.plain(about["commit"]), theirs)
        route = control.plain(about["route"])
        ours = (self._host.route.public, accepting.identity.public)
        self._host.code = pairing.short_code(ours, (route, accepting.device), (number, theirs))
        answer = await self._host.decide(about)
        if "paired" in answer:
            await self._host.admit(route)
        await self.say(answer, last=True)

    async def _bridge(self, said: dict[str, Any]) -> None:
        self._host.opened.append(said)
        if self._host.refusal is not None:
            await self.say({"failed": self._host.refusal}, last=True)
            return
        ws = await self._host.gateway(self._host.http, said["open"], said["token"])
        try:
            await self.say({"opened": True})
            assert self._channel is not None
            self._channel.pad(said["pad"])
            up, down = asyncio.create_task(self._up(ws)), asyncio.create_task(self._down(ws))
            try:
                await asyncio.wait({up, down}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                await end(up)
                await end(down)
        finally:
            await ws.close()

    async def _up(self, ws: aiohttp.ClientWebSocketResponse) -> None:
        taken = 0
        while True:
            kind, message = await self.receive()
            if kind == CONTROL:
                said = json.loads(message)
                if "ack" in said:
                    assert self.acked <= said["ack"] <= self.sent
                    self.acked = said["ack"]
                    self.news.set()
                if "closed" in said:
                    self._host.closed.append(said["closed"])
                    return
            else:
                await (ws.send_str(message.decode()) if kind == TEXT else ws.send_bytes(message))
                assert self._channel is not None
                taken += self._channel.cost(message)
                await self.say({"ack": taken})

    async def _down(self, ws: aiohttp.ClientWebSocketResponse) -> None:
        async for message in ws:
            data = message.data.encode() if message.type is aiohttp.WSMsgType.TEXT else message.data
            while self.sent - self.acked >= WINDOW:
                self.news.clear()
                await self.news.wait()
            assert self._channel is not None
            self.sent += self._channel.cost(data)
            await self.send(TEXT if message.type is aiohttp.WSMsgType.TEXT else BINARY, data)
        await self.say({"closed": {"code": ws.close_code or 1000, "reason": ""}}, last=True)


class ScriptedHost:
    """Use as an async context manager. `spoil` may change the bytes of what goes to devices."""

    def __init__(self, relay: str, gateway: OpenGateway) -> None:
        self.relay = relay
        self.gateway = gateway
        self.route = Route.new()
        self.identities = [Identity.new()]
        self.about: dict[str, Any] = {}
        self.admitted: list[str] = []
        self.visits: dict[bytes, Visit] = {}
        self.opened: list[dict[str, Any]] = []
        self.closed: list[dict[str, Any]] = []
        self.refusal: dict[str, str] | None = None
        self.link: pairing.Link | None = None
        self.code = ""
        self.answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self.asked: dict[str, Any] = {}
        self.spoil: Callable[[bytes], bytes] = lambda frame: frame
        self.http: aiohttp.ClientSession
        self._ws: aiohttp.ClientWebSocketResponse
        self._reader: asyncio.Task[None]
        self._tasks: dict[bytes, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Self:
        self.http = aiohttp.ClientSession()
        await self.arrive()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.leave()
        await self.http.close()

    async def arrive(self) -> None:
        self._ws = await self.http.ws_connect(self.relay + control.HOST_PATH, max_msg_size=0)
        challenge = control.to_host((await self._ws.receive()).data)
        assert isinstance(challenge, control.Challenge)
        text = control.host_text(self.relay.partition("//")[2], control.plain(challenge.challenge))
        mine = control.Host(route=control.b64(self.route.public), signature=control.b64(self.route.sign(text)))
        await self._say(mine)
        assert isinstance(control.to_host((await self._ws.receive()).data), control.Ready)
        await self._say(control.Admit(devices=self.admitted))
        self._reader = asyncio.create_task(self._read())

    async def leave(self) -> None:
        await self._ws.close()
        await end(self._reader)
        for task in list(self._tasks.values()):
            await end(task)

    async def admit(self, route: bytes) -> None:
        self.admitted.append(control.b64(route))
        await self._say(control.Admit(devices=self.admitted))

    async def offer(self, app: bytes = bytes(32)) -> str:
        self.link = pairing.Link.new(self.relay, self.route.public, self.identities[-1].public, app)
        await self._say(control.Offer(pairing=self.link.name))
        return self.link.url

    async def decide(self, about: dict[str, Any]) -> dict[str, Any]:
        """What a new device is told; replaced by tests that register it."""
        self.asked = about
        return await self.answer

    async def cut(self) -> None:
        """Every device's connection ends where it is."""
        for sid in list(self.visits):
            await self._say(control.Close(sid=sid.hex()))

    async def frame(self, sid: bytes, frame: bytes) -> None:
        await self._ws.send_bytes(pack(sid, self.spoil(frame)))

    async def _say(self, message: control.Base) -> None:
        await self._ws.send_str(control.encode(message))

    async def _read(self) -> None:
        async for message in self._ws:
            if message.type is aiohttp.WSMsgType.BINARY:
                envelope = unpack(message.data)
                if envelope.sid in self.visits:
                    self.visits[envelope.sid].frames.put_nowait(envelope.ct)
                continue
            said = control.to_host(message.data)
            if isinstance(said, control.Opened):
                visit = self.visits[bytes.fromhex(said.sid)] = Visit(self, said)
                task = asyncio.create_task(self._visit(visit))
                self._tasks[visit.sid] = task
                task.add_done_callback(lambda _, sid=visit.sid: self._tasks.pop(sid, None))
            elif isinstance(said, control.Close):
                sid = bytes.fromhex(said.sid)
                self.visits.pop(sid, None)
                if sid in self._tasks:
                    self._tasks[sid].cancel()

    async def _visit(self, visit: Visit) -> None:
        with contextlib.suppress(ConnectionError):
            await visit.run()
        with contextlib.suppress(ConnectionError):
            await self._say(control.Close(sid=visit.sid.hex()))


def gateway_at(url: str) -> OpenGateway:
    """A gateway to bridge to, with the device's token."""

    async def open(http: aiohttp.ClientSession, path: str, token: str) -> aiohttp.ClientWebSocketResponse:
        headers = {"Authorization": f"Bearer {token}"}
        return await http.ws_connect(f"{url}{path}", headers=headers, max_msg_size=0)

    return open

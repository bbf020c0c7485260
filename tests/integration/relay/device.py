"""A device by the protocol's description, on libsodium's half of it alone: it shares no code with the host's side or the relay."""

import asyncio
import base64
import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from trunkline_seal import CONTROL, TEXT, Channel, Identity, Opening, Route, control, host_name, pack, unpack
from trunkline_seal.handshake import SID_BYTES
from trunkline_seal.pairing import Link, commitment, nonce, short_code
from trunkline_wire import TrunklineError

ACK_EVERY = 64 * 1024


def text64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


@dataclass
class Keys:
    """What a device keeps. `host` is the host's identity as it knows it."""

    relay: str = ""
    host_name: str = ""
    host: bytes = b""
    token: str = ""
    device: str = ""
    identity: Identity = field(default_factory=Identity.new)
    route: Route = field(default_factory=Route.new)
    signing: bytes = field(default_factory=lambda: os.urandom(32))


class CutError(Exception):
    """The relay has ended the connection; `said` is what it gave as its reason."""

    def __init__(self, said: str = "") -> None:
        super().__init__(said)
        self.said = said


class Line:
    """A connection to the relay, let through to the host."""

    def __init__(self, ws: aiohttp.ClientWebSocketResponse, sid: bytes) -> None:
        self.ws = ws
        self.sid = sid

    async def send(self, ct: bytes) -> None:
        await self.ws.send_bytes(pack(self.sid, ct))

    async def receive(self) -> bytes:
        message = await self.ws.receive()
        if message.type is aiohttp.WSMsgType.BINARY:
            return unpack(message.data).ct
        if message.type is aiohttp.WSMsgType.TEXT:
            raise CutError(json.loads(message.data).get("code", ""))
        raise CutError


@asynccontextmanager
async def line(keys: Keys, pairing: str = "") -> AsyncGenerator[Line]:
    async with aiohttp.ClientSession() as http, http.ws_connect(f"{keys.relay}/relay/v1/device/{keys.host_name}") as ws:
        challenge = await ws.receive_json()
        if pairing:
            await ws.send_json({"type": "pairing", "pairing": pairing})
        else:
            place = keys.relay.partition("://")[2]
            signed = control.device_text(place, keys.host_name, base64.b64decode(challenge["challenge"]))
            proof = {"route": text64(keys.route.public), "signature": text64(keys.route.sign(signed))}
            await ws.send_json({"type": "device", **proof})
        message = await ws.receive()
        if message.type is not aiohttp.WSMsgType.TEXT:
            raise CutError
        said = json.loads(message.data)
        if said["type"] != "opened":
            raise CutError(said["code"])
        sid = bytes.fromhex(said["sid"])
        assert len(sid) == SID_BYTES
        yield Line(ws, sid)


class Talk:
    """A sealed connection: requests with their answers, and what comes besides in `frames`."""

    def __init__(self, line: Line, channel: Channel, about: dict[str, Any], header: bytes) -> None:
        self.line = line
        self.channel = channel
        self.about = about
        self._header = header
        self._number = 0
        self.frames: list[dict[str, Any]] = []
        self.closed: dict[str, Any] = {}
        self.identities: list[tuple[bytes, int]] = []
        """With their numbers."""
        self.acked = 0
        self.taken = 0
        self.acks = True
        self._told = 0

    async def send(self, kind: int, message: bytes, *, last: bool = False) -> None:
        for frame in self.channel.seal(kind, message, last=last):
            header, self._header = self._header, b""
            await self.line.send(header + frame)

    async def control(self, value: Any, *, last: bool = False) -> None:
        await self.send(CONTROL, json.dumps(value).encode(), last=last)

    async def receive(self) -> tuple[int, bytes]:
        """The next message. Raises CutError, TrunklineError `bad_seal`."""
        while True:
            opened = self.channel.open(await self.line.receive())
            if opened is not None:
                return opened

    async def said(self) -> dict[str, Any]:
        """The next message, which is a control message."""
        kind, message = await self.receive()
        assert kind == CONTROL, message
        return json.loads(message)

    async def next(self) -> Any:
        """The gateway's next frame; the control messages before it are heeded. Raises CutError at the end."""
        while True:
            kind, message = await self.receive()
            if kind != CONTROL:
                self.taken += self.channel.cost(message)
                if self.acks and self.taken - self._told >= ACK_EVERY:
                    self._told = self.taken
                    await self.control({"ack": self.taken})
                return json.loads(message) if kind == TEXT else message
            value = json.loads(message)
            if "identity" in value:
                self.identities.append((base64.b64decode(value["identity"]), value["number"]))
            self.acked = value.get("ack", self.acked)
            if "closed" in value:
                self.closed = value["closed"]
                raise CutError(self.closed["reason"])

    async def call(self, method: str, /, **params: Any) -> Any:
        self._number += 1
        request = {"type": "req", "id": str(self._number), "method": method, "params": params}
        await self.send(TEXT, json.dumps(request).encode())
        while True:
            frame = await self.next()
            for one in frame if isinstance(frame, list) else [frame]:
                if one["type"] != "res":
                    self.frames.append(one)
                elif one["ok"]:
                    return one["payload"]
                else:
                    raise TrunklineError(one["error"]["code"], one["error"]["message"])

    async def until_closed(self) -> str:
        """The reason with which the connection ends."""
        try:
            while True:
                await self.next()
        except CutError as cut:
            return cut.said


async def opened(line: Line, keys: Keys, about: dict[str, Any]) -> Talk:
    """The handshake. Raises TrunklineError `bad_seal`, CutError."""
    opening = Opening(keys.identity, keys.host, line.sid, json.dumps(about).encode())
    await line.send(opening.first)
    channel, said, header = opening.answered(await line.receive())
    return Talk(line, channel, json.loads(said), header)


@asynccontextmanager
async def talk(keys: Keys, path: str = "/ws", *, pad: int = 0) -> AsyncGenerator[Talk]:
    """A connection of a paired device. Raises TrunklineError with the code of `failed`, CutError."""
    async with asyncio.timeout(30), line(keys) as one:
        made = await opened(one, keys, {"route": text64(keys.route.public)})
        await made.control({"open": path, "token": keys.token, "pad": pad})
        answer = await made.said()
        if "failed" in answer:
            raise TrunklineError(answer["failed"]["code"], answer["failed"]["message"])
        assert answer == {"opened": True}
        made.channel.pad(pad)
        yield made


class Meeting:
    """A pairing under way: the code to be compared, then the outcome."""

    def __init__(self, talk: Talk, keys: Keys, code: str) -> None:
        self.talk = talk
        self.keys = keys
        self.code = code

    async def outcome(self) -> Keys:
        """Raises TrunklineError with the code of `failed`, CutError."""
        answer = await self.talk.said()
        if "failed" in answer:
            raise TrunklineError(answer["failed"]["code"], answer["failed"]["message"])
        self.keys.token, self.keys.device = answer["paired"]["token"], answer["paired"]["device"]
        return self.keys


@asynccontextmanager
async def meet(
    url: str, keys: Keys | None = None, *, name: str = "Ann's phone", **other: str
) -> AsyncGenerator[Meeting]:
    """Come by a link. `other` is what is said otherwise."""
    link = Link.parse(url)
    keys = keys or Keys()
    keys.relay, keys.host_name, keys.host = link.relay, host_name(link.route), link.identity
    number = nonce()
    about = {
        "pair": text64(link.secret),
        "route": text64(keys.route.public),
        "commit": text64(commitment(number)),
        "name": name,
        "key": text64(keys.signing),
        **other,
    }
    async with asyncio.timeout(30), line(keys, pairing=link.name) as one:
        made = await opened(one, keys, about)
        await made.control({"reveal": text64(number)})
        theirs = base64.b64decode(made.about["nonce"])
        code = short_code((link.route, link.identity), (keys.route.public, keys.identity.public), (theirs, number))
        yield Meeting(made, keys, code)

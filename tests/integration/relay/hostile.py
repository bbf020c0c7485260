"""A relay that lets in everybody, keeps all that it sees, and does with it what a test says. It shares no code with the real one."""

import asyncio
import base64
import json
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import WSMsgType, web

from trunkline_seal import host_name, pack, unpack

Hook = Callable[[bytes, bytes], list[tuple[bytes, bytes]]]
"""What goes on instead of a frame (`sid`, `ct`)."""


def honest(sid: bytes, ct: bytes) -> list[tuple[bytes, bytes]]:
    return [(sid, ct)]


class Hostile:
    """`up` is asked for each frame to the host, `down` for each to a device; `ups` and `downs` have what came."""

    def __init__(self) -> None:
        self.url = ""
        self.up: Hook = honest
        self.down: Hook = honest
        self.ups: list[tuple[bytes, bytes]] = []
        self.downs: list[tuple[bytes, bytes]] = []
        self.said: list[dict[str, Any]] = []
        self.pairing = ""
        """The last one that a device came by."""
        self._host: web.WebSocketResponse | None = None
        self._devices: dict[bytes, web.WebSocketResponse] = {}

    async def tell_host(self, **message: Any) -> None:
        assert self._host is not None
        await self._host.send_str(json.dumps(message))

    async def raw_to_host(self, data: bytes) -> None:
        assert self._host is not None
        await self._host.send_bytes(data)

    async def to_host(self, sid: bytes, ct: bytes) -> None:
        await self.raw_to_host(pack(sid, ct))

    async def to_device(self, sid: bytes, ct: bytes) -> None:
        await self._devices[sid].send_bytes(pack(sid, ct))

    async def invent(self, **opened: str) -> bytes:
        """A connection that no device has made."""
        sid = os.urandom(16)
        await self.tell_host(type="opened", sid=sid.hex(), **opened)
        return sid

    def of(self, sid: bytes) -> list[bytes]:
        """What a device has sent in one connection."""
        return [ct for one, ct in self.ups if one == sid]

    async def host(self, request: web.Request) -> web.WebSocketResponse:
        ws = web.WebSocketResponse(max_msg_size=0)
        await ws.prepare(request)
        await ws.send_json({"type": "challenge", "challenge": base64.b64encode(bytes(32)).decode()})
        route = base64.b64decode((await ws.receive_json())["route"])
        await ws.send_json({"type": "ready", "host": host_name(route)})
        self._host = ws
        async for message in ws:
            if message.type is WSMsgType.BINARY:
                envelope = unpack(message.data)
                self.downs.append((envelope.sid, envelope.ct))
                for sid, ct in self.down(envelope.sid, envelope.ct):
                    if sid in self._devices:
                        await self.to_device(sid, ct)
            elif message.type is WSMsgType.TEXT:
                said = json.loads(message.data)
                self.said.append(said)
                if said["type"] == "close" and bytes.fromhex(said["sid"]) in self._devices:
                    await self._devices[bytes.fromhex(said["sid"])].close()
        return ws

    async def device(self, request: web.Request) -> web.WebSocketResponse:
        ws = web.WebSocketResponse(max_msg_size=0)
        await ws.prepare(request)
        await ws.send_json({"type": "challenge", "challenge": base64.b64encode(bytes(32)).decode()})
        answer = await ws.receive_json()
        by = {"device": answer["route"]} if "route" in answer else {"pairing": answer["pairing"]}
        self.pairing = by.get("pairing", self.pairing)
        sid = os.urandom(16)
        self._devices[sid] = ws
        await self.tell_host(type="opened", sid=sid.hex(), **by)
        await ws.send_json({"type": "opened", "sid": sid.hex()})
        async for message in ws:
            if message.type is WSMsgType.BINARY:
                envelope = unpack(message.data)
                self.ups.append((envelope.sid, envelope.ct))
                for to, ct in self.up(envelope.sid, envelope.ct):
                    await self.to_host(to, ct)
        del self._devices[sid]
        if self._host is not None and not self._host.closed:
            await self.tell_host(type="close", sid=sid.hex())
        return ws


@asynccontextmanager
async def hostile() -> AsyncGenerator[Hostile]:
    made = Hostile()
    app = web.Application()
    app.router.add_get("/relay/v1/host", made.host)
    app.router.add_get("/relay/v1/device/{host}", made.device)
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield made
    finally:
        await asyncio.shield(runner.cleanup())

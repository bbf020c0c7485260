"""A relay, hosts and devices on real WebSockets. Hosts and devices say by hand what the protocol wants, or something else."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from trunkline_relay.server import Serving, serving
from trunkline_relay.server_settings import ServerSettings
from trunkline_seal import control, host_name, pack
from trunkline_seal.control import Base, b64, plain
from trunkline_seal.keys import Route

WITHIN = 15.0


@asynccontextmanager
async def relay(**settings: Any) -> AsyncGenerator[Serving]:
    async with serving(ServerSettings(port=0, **settings)) as made:
        yield made


class End:
    """One WebSocket to a relay, after the challenge."""

    def __init__(self, ws: aiohttp.ClientWebSocketResponse, relay: str, challenge: bytes) -> None:
        self.ws = ws
        self.relay = relay
        self.challenge = challenge

    async def say(self, message: Base) -> None:
        await self.ws.send_str(control.encode(message))

    async def next(self) -> Any:
        """A control message or an envelope's bytes; None once the relay has closed."""
        message = await self.ws.receive(timeout=WITHIN)
        if message.type is aiohttp.WSMsgType.TEXT:
            return control.to_host(message.data)
        return message.data if message.type is aiohttp.WSMsgType.BINARY else None

    async def refusal(self) -> str:
        """The code with which the relay ends this; what it says before is passed over."""
        while (said := await self.next()) is not None:
            if isinstance(said, control.Failed):
                assert await self.next() is None, "the relay closes after an error"
                return said.code
        return f"closed with {self.ws.close_code}"


class Host(End):
    route: Route

    async def prove(self, route: Route, text: bytes | None = None) -> None:
        self.route = route
        signature = route.sign(text if text is not None else control.host_text(self.relay, self.challenge))
        await self.say(control.Host(route=b64(route.public), signature=b64(signature)))

    @property
    def name(self) -> str:
        return host_name(self.route.public)

    async def admit(self, *devices: Route) -> None:
        await self.say(control.Admit(devices=[b64(device.public) for device in devices]))

    async def opened(self) -> control.Opened:
        said = await self.next()
        assert isinstance(said, control.Opened), said
        return said


class Device(End):
    sid = b""

    async def prove(self, route: Route, host: str, text: bytes | None = None) -> None:
        signature = route.sign(text if text is not None else control.device_text(self.relay, host, self.challenge))
        await self.say(control.Device(route=b64(route.public), signature=b64(signature)))

    async def opened(self) -> None:
        said = await self.next()
        assert isinstance(said, control.Opened), said
        self.sid = bytes.fromhex(said.sid)

    async def send(self, ct: bytes) -> None:
        await self.ws.send_bytes(pack(self.sid, ct))


class Street:
    """Whoever comes to relays in one test."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self._http = http

    async def connect(self, url: str, path: str, **options: Any) -> tuple[aiohttp.ClientWebSocketResponse, bytes]:
        ws = await self._http.ws_connect(f"{url}{path}", max_msg_size=0, **options)
        message = await ws.receive(timeout=WITHIN)
        said = control.to_host(message.data)
        return ws, plain(said.challenge) if isinstance(said, control.Challenge) else control.encode(said).encode()

    async def host_at(self, url: str, **options: Any) -> Host:
        """A host that has said nothing yet."""
        ws, challenge = await self.connect(url, control.HOST_PATH, **options)
        return Host(ws, urlsplit(url).netloc, challenge)

    async def host(self, url: str, route: Route | None = None, *devices: Route, **options: Any) -> Host:
        """A host that is let in."""
        host = await self.host_at(url, **options)
        await host.prove(route or Route.new())
        ready = await host.next()
        assert ready == control.Ready(host=host.name), ready
        await host.admit(*devices)
        return host

    async def device_at(self, url: str, host: str, **options: Any) -> Device:
        """A device that has said nothing yet."""
        ws, challenge = await self.connect(url, control.DEVICE_PATH + host, **options)
        return Device(ws, urlsplit(url).netloc, challenge)

    async def device(self, url: str, route: Route, host: Host) -> tuple[Device, control.Opened]:
        """A device that is let through, and what the host was told."""
        device = await self.device_at(url, host.name)
        await device.prove(route, host.name)
        await device.opened()
        opened = await host.opened()
        assert opened == control.Opened(sid=device.sid.hex(), device=b64(route.public))
        return device, opened


@asynccontextmanager
async def street() -> AsyncGenerator[Street]:
    async with aiohttp.ClientSession() as http:
        yield Street(http)

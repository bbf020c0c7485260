"""The host's connection to its relay: outbound, kept, and made again after whatever ended it."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, NoReturn, Protocol

import aiohttp
from yarl import URL

from trunkline_bus import metrics
from trunkline_client.straight import straight
from trunkline_relay.network import Network
from trunkline_seal import control, pack, unpack
from trunkline_seal.keys import Route
from trunkline_wire import ERRORS, TrunklineError

log = logging.getLogger(__name__)

FIRST_S: Final = 1.0
LONGEST_S: Final = 30.0
STEADY_S: Final = 60.0
"""A connection that lasted so long was a good one: the next attempts begin with FIRST_S."""
LOOK_S: Final = 2.0
"""Seconds between two looks at the network."""
READY_S: Final = 15.0
HEARTBEAT_S: Final = 20.0
CLOSE_S: Final = 2.0
PATIENCE_S: Final = 30.0
"""Seconds that one frame may take to be taken."""


class Uplink:
    """One connection to the relay, for as long as it lasts. What it raises is a ConnectionError."""

    def __init__(self, ws: aiohttp.ClientWebSocketResponse) -> None:
        self._ws = ws

    async def say(self, message: control.Base) -> None:
        await self._patiently(self._ws.send_str(control.encode(message)))

    async def send(self, sid: bytes, ct: bytes) -> None:
        await self._patiently(self._ws.send_bytes(pack(sid, ct)))

    async def _patiently(self, sending: Awaitable[None]) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                await sending
        except (TimeoutError, aiohttp.ClientError) as error:
            raise ConnectionError("the relay takes nothing") from error


class Visitors(Protocol):
    """Who is told what comes by the relay. None of it waits."""

    def opened(self, uplink: Uplink, said: control.Opened, sid: bytes) -> None: ...
    def frame(self, sid: bytes, ct: bytes) -> None: ...
    def closed(self, sid: bytes, reason: str) -> None: ...
    def lost(self) -> None: ...


class HostLine:
    """Run `run` as a task. `greeting` is what the relay is told whenever it is ready; `trouble` says why it is not."""

    def __init__(
        self, route: Route, visitors: Visitors, greeting: Callable[[], Iterable[control.Base]], *, token: str = ""
    ) -> None:
        self._route = route
        self._visitors = visitors
        self._greeting = greeting
        self._token = token
        self._now = asyncio.Event()
        self.uplink: Uplink | None = None
        self.public_url = ""
        """The relay's address for people, where the relay knows it."""
        self.trouble = "not connected yet"
        self.attempts = 0
        self._connections = 0

    @property
    def ready(self) -> bool:
        return self.uplink is not None

    def hurry(self) -> None:
        """Try again at once."""
        self._now.set()

    async def say(self, message: control.Base) -> None:
        """To the relay, if there is one: whatever matters later is in the greeting."""
        if self.uplink is not None:
            with contextlib.suppress(ConnectionError):
                await self.uplink.say(message)

    async def run(self, url: str) -> NoReturn:
        """Connects to the relay at `url` (`https://…`) until cancelled."""
        delay = FIRST_S
        network = Network()
        timeout = aiohttp.ClientTimeout(total=None, connect=READY_S)
        async with aiohttp.ClientSession(timeout=timeout, trace_configs=[straight()]) as http:
            while True:
                began = time.monotonic()
                self._now.clear()
                self.attempts += 1
                try:
                    await self._once(http, url, network)
                    self.trouble = "the relay closed the connection"
                except TrunklineError as error:
                    self.trouble = str(error)
                except (aiohttp.ClientError, OSError, TimeoutError) as error:
                    self.trouble = str(error) or type(error).__name__
                if time.monotonic() - began >= STEADY_S:
                    delay = FIRST_S
                log.warning("relay_away", extra={"relay": url, "reason": self.trouble, "again_in_s": delay})
                delay = FIRST_S if await self._pause(delay, network) else min(LONGEST_S, delay * 2)

    async def _pause(self, seconds: float, network: Network) -> bool:
        """Whether it ended early: somebody asked, or the network is another one."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(LOOK_S, left)):
                    await self._now.wait()
            if self._now.is_set() or network.changed():
                return True
        return False

    async def _once(self, http: aiohttp.ClientSession, url: str, network: Network) -> None:
        place = URL(url.rstrip("/") + control.HOST_PATH)
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        try:
            connecting = http.ws_connect(
                place,
                headers=headers,
                heartbeat=HEARTBEAT_S,
                max_msg_size=2 * control.MAX_CONTROL,
                timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_S),  # pyright: ignore[reportCallIssue] - its fields are not seen
            )
            async with connecting as ws, asyncio.TaskGroup() as group:
                watching = group.create_task(self._watch(ws, network))
                try:
                    await self._serve(ws, place.host_port_subcomponent or "")
                finally:
                    watching.cancel()
        except* TrunklineError as errors:
            raise errors.exceptions[0] from None
        except* (aiohttp.ClientError, OSError, TimeoutError) as errors:
            raise ConnectionError(str(errors.exceptions[0])) from None
        finally:
            self.uplink = None
            self._visitors.lost()

    async def _serve(self, ws: aiohttp.ClientWebSocketResponse, relay: str) -> None:
        async with asyncio.timeout(READY_S):
            challenge = await self._heard(ws)
            if not isinstance(challenge, control.Challenge):
                raise TrunklineError("bad_frame", "the relay did not challenge")
            signature = self._route.sign(control.host_text(relay, control.plain(challenge.challenge)))
            proof = control.Host(route=control.b64(self._route.public), signature=control.b64(signature))
            await ws.send_str(control.encode(proof))
            ready = await self._heard(ws)
            if not isinstance(ready, control.Ready):
                raise TrunklineError("bad_frame", "the relay did not say that it is ready")
        uplink = Uplink(ws)
        for message in self._greeting():
            await uplink.say(message)
        self.public_url, self.trouble = ready.url, ""
        self.uplink = uplink
        self._connections += 1
        if self._connections > 1:
            metrics.RELAY_HOST_RECONNECTS.inc()
        log.info("relay_ready", extra={"relay": relay, "host": ready.host})
        async for message in ws:
            if message.type is aiohttp.WSMsgType.BINARY:
                envelope = unpack(message.data)
                self._visitors.frame(envelope.sid, envelope.ct)
            elif message.type is aiohttp.WSMsgType.TEXT:
                self._take(uplink, control.to_host(message.data))

    def _take(self, uplink: Uplink, said: control.ToHost) -> None:
        match said:
            case control.Opened():
                self._visitors.opened(uplink, said, control.sid_of(said.sid))
            case control.Close():
                self._visitors.closed(control.sid_of(said.sid), said.reason)
            case control.Failed():
                raise _refusal(said)
            case control.Challenge() | control.Ready():
                raise TrunklineError("bad_frame", "the relay says again what it says once")

    async def _heard(self, ws: aiohttp.ClientWebSocketResponse) -> control.ToHost:
        message = await ws.receive()
        if message.type is not aiohttp.WSMsgType.TEXT:
            raise ConnectionError("the relay closed the connection")
        said = control.to_host(message.data)
        if isinstance(said, control.Failed):
            raise _refusal(said)
        return said

    async def _watch(self, ws: aiohttp.ClientWebSocketResponse, network: Network) -> None:
        """Ends a connection whose own address the machine no longer has: it would be found out only by silence."""
        own = ws.get_extra_info("sockname")
        while isinstance(own, tuple) and network.has(str(own[0])):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._now.wait()
                break
        log.info("relay_left", extra={"reason": "asked to" if self._now.is_set() else "the network changed"})
        await ws.close()


def _refusal(said: control.Failed) -> TrunklineError:
    """The relay's own words, under a code that we know."""
    code = said.code if said.code in ERRORS else "internal"
    words = "".join(sign for sign in said.message[:300] if sign.isprintable())
    return TrunklineError(code, f"the relay refuses this host: {words}")

"""The relay's WebSockets: who comes is challenged, proves a key, and is then switched. It sees envelopes, and opens none."""

import asyncio
import logging
import re
import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final, Protocol

import msgspec
from aiohttp import WSMsgType, web

from trunkline_bus import metrics
from trunkline_relay.gate import Attempts, Gate
from trunkline_relay.lines import LINGER_S, Line
from trunkline_relay.switch import HostPlace, Switch, Visit, opened
from trunkline_seal import control, unpack
from trunkline_seal.envelope import Envelope
from trunkline_seal.keys import host_name, signed_by
from trunkline_wire import TrunklineError
from trunkline_wire.errors import ErrorInfo

log = logging.getLogger(__name__)

CHALLENGE_BYTES: Final = 32
PROOF_S: Final = 10.0
"""Seconds that who comes may take to answer the challenge."""
HEARTBEAT_S: Final = 20.0
MAX_ENVELOPE: Final = 128 * 1024
MAX_CONNECTIONS: Final = 20_000
"""Of all hosts and devices at one relay."""
CONTROLS_A_SECOND: Final = 50.0
CONTROLS_AT_ONCE: Final = 2_000
"""Control frames of a host: it may close all that it has, and admit, at once."""
_HOST: Final = re.compile(r"hst_[a-z2-7]{26}")


class Visiting(Protocol):
    """A device's connection, wherever its host is."""

    sid: bytes

    def up(self, envelope: bytes) -> None: ...
    def leave(self, reason: str) -> None: ...


class Elsewhere(Protocol):
    """The other replicas of this relay."""

    async def arrived(self, place: HostPlace) -> None:
        """A host is here now, and no more where it was."""
        ...

    async def departed(self, place: HostPlace) -> None: ...

    async def visit(self, host: str, line: Line, *, device: bytes | None, pairing: str) -> Visiting:
        """Raises TrunklineError `host_away`, and what the replica says that has the host."""
        ...


class Relay:
    """The routes of one relay. Without `elsewhere` its hosts are all that there are; `url` is its address for people."""

    def __init__(
        self,
        switch: Switch,
        gate: Gate | None = None,
        *,
        elsewhere: Elsewhere | None = None,
        url: str = "",
        max_connections: int = MAX_CONNECTIONS,
    ) -> None:
        self._switch = switch
        self._gate = gate or Gate(time.monotonic)
        self._elsewhere = elsewhere
        self._url = url
        self._max_connections = max_connections
        self._open: set[Line] = set()
        self._lines: dict[str, Line] = {}
        """Of the hosts here, by name."""

    def add(self, app: web.Application) -> None:
        app.router.add_get(control.HOST_PATH, self.host)
        app.router.add_get(control.DEVICE_PATH + "{host}", self.device)
        app.on_shutdown.append(self._end_all)

    async def host(self, request: web.Request) -> web.StreamResponse:
        """A host, for as long as it stays."""
        if (refusal := self._refusal(request)) is not None:
            return refusal
        async with self._socket(request, "host") as (ws, line):
            await asyncio.to_thread(self._gate.check_token, request.headers.get("Authorization"))
            challenge = secrets.token_bytes(CHALLENGE_BYTES)
            said = control.from_host(await _challenged(ws, line, challenge))
            if not isinstance(said, control.Host):
                raise TrunklineError("bad_frame", "a host answers the challenge first")
            route = control.plain(said.route)
            text = control.host_text(request.host, challenge)
            if not signed_by(route, text, control.plain(said.signature)):
                raise TrunklineError("unauthorized", "the host's signature is not that of its key for this relay")
            place = self._switch.arrive(host_name(route), line)
            self._lines[place.name] = line
            try:
                if self._elsewhere is not None:
                    await self._elsewhere.arrived(place)
                line.say(control.Ready(host=place.name, url=self._url))
                await self._hear(ws, place)
            except TrunklineError as error:
                _tell(line, error)  # before its place is given up, which ends the line
                raise
            finally:
                self._switch.depart(place)
                if self._lines.get(place.name) is line:
                    del self._lines[place.name]
                if self._elsewhere is not None:
                    await self._elsewhere.departed(place)
        return ws

    async def _hear(self, ws: web.WebSocketResponse, place: HostPlace) -> None:
        controls = Attempts(CONTROLS_A_SECOND, CONTROLS_AT_ONCE, time.monotonic)
        async for message in ws:
            if message.type is WSMsgType.TEXT:
                controls.take("")
                _from_host(place, control.from_host(message.data))
            elif message.type is WSMsgType.BINARY:
                place.down(_envelope(message.data, "down").sid, message.data)

    async def device(self, request: web.Request) -> web.StreamResponse:
        """A device's connection to its host, for as long as both stay."""
        if (refusal := self._refusal(request)) is not None:
            return refusal
        async with self._socket(request, "device") as (ws, line):
            name = request.match_info["host"]
            challenge = secrets.token_bytes(CHALLENGE_BYTES)
            said = control.from_device(await _challenged(ws, line, challenge))
            visit = await self._visit(said, name, control.device_text(request.host, name, challenge), line)
            before = self._lines.get(name) if isinstance(visit, Visit) else None
            reason = "the device has gone"
            try:
                async for message in ws:
                    if message.type is WSMsgType.BINARY:
                        if _envelope(message.data, "up").sid != visit.sid:
                            raise TrunklineError("bad_frame", "the envelope is another connection's")
                        visit.up(message.data)
                        if before is not None:
                            await before.room()
                    elif message.type is WSMsgType.TEXT:
                        raise TrunklineError("bad_frame", "a device says nothing more to the relay")
            except TrunklineError as error:
                reason = error.message
                _tell(line, error)
                raise
            finally:
                visit.leave(reason)
        return ws

    async def _visit(self, said: control.FromDevice, name: str, text: bytes, line: Line) -> Visiting:
        route: bytes | None = None
        pairing = ""
        if isinstance(said, control.Pairing):
            pairing = said.pairing
        else:
            route = control.plain(said.route)
            if not signed_by(route, text, control.plain(said.signature)):
                raise TrunklineError(
                    "unauthorized", "the device's signature is not that of its key for this host and relay"
                )
        if name not in self._switch.hosts and self._elsewhere is not None and _HOST.fullmatch(name):
            return await self._elsewhere.visit(name, line, device=route, pairing=pairing)
        place = self._switch.find(name)
        visit = place.visit(line, device=route, pairing=pairing)
        place.line.say(opened(visit, pairing))
        line.say(opened(visit))
        return visit

    def _refusal(self, request: web.Request) -> web.Response | None:
        """What is said before there is a WebSocket."""
        try:
            self._gate.check(request)
            self._gate.count(request)
            if len(self._open) >= self._max_connections:
                raise TrunklineError("rate_limited", "the relay has as many connections as it can serve")
        except TrunklineError as error:
            return refused(error)
        return None

    @asynccontextmanager
    async def _socket(self, request: web.Request, kind: str) -> AsyncGenerator[tuple[web.WebSocketResponse, Line]]:
        """The WebSocket and its line. A TrunklineError inside is told to who came, and ends the connection."""
        # Twice the limit: what is a little over it is told so, what is far over it is not even kept.
        ws = web.WebSocketResponse(
            heartbeat=HEARTBEAT_S, timeout=LINGER_S, max_msg_size=2 * MAX_ENVELOPE, compress=False
        )
        await ws.prepare(request)
        line = Line(ws, request.transport, kind)
        self._open.add(line)
        driving = asyncio.create_task(line.drive())
        try:
            yield ws, line
        except TrunklineError as error:
            metrics.RELAY_REFUSED.labels(error.code).inc()
            log.info("refused", extra={"end": kind, "code": error.code})
            _tell(line, error)
        finally:
            self._open.discard(line)
            line.end()
            await driving

    async def _end_all(self, _: web.Application) -> None:
        for line in list(self._open):
            line.end()


def refused(error: TrunklineError) -> web.Response:
    """An error as an answer over HTTP."""
    metrics.RELAY_REFUSED.labels(error.code).inc()
    log.info("refused", extra={"code": error.code})
    body = msgspec.json.encode(ErrorInfo.of(error))
    return web.Response(status=error.status, body=body, content_type="application/problem+json")


def _tell(line: Line, error: TrunklineError) -> None:
    line.say(control.Failed(code=error.code, message=error.message))
    line.end()


def _from_host(place: HostPlace, said: control.FromHost) -> None:
    match said:
        case control.Admit():
            place.admit(frozenset(control.plain(key) for key in said.devices))
        case control.Offer():
            place.offer(said.pairing, said.seconds)
        case control.Withdraw():
            place.withdraw(said.pairing)
        case control.Close():
            visit = place.visits.get(control.sid_of(said.sid))
            if visit is not None:
                place.leave(visit, said.reason)
        case control.Host():
            raise TrunklineError("bad_frame", "a host says once who it is")


def _envelope(data: bytes, direction: str) -> Envelope:
    if len(data) > MAX_ENVELOPE:
        raise TrunklineError("too_large", f"an envelope has at most {MAX_ENVELOPE} bytes")
    metrics.RELAY_FRAMES.labels(direction).inc()
    metrics.RELAY_BYTES.labels(direction).inc(len(data))
    return unpack(data)


async def _challenged(ws: web.WebSocketResponse, line: Line, challenge: bytes) -> str:
    line.say(control.Challenge(challenge=control.b64(challenge)))
    try:
        async with asyncio.timeout(PROOF_S):
            message = await ws.receive()
    except TimeoutError as error:
        raise TrunklineError("timeout", "the challenge was not answered in time") from error
    if message.type is not WSMsgType.TEXT:
        raise TrunklineError("bad_frame", "the challenge is to be answered")
    return message.data

"""The relay's WebSockets: who comes is challenged, proves a key, and is then switched. It sees envelopes, and opens none."""

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import WSMsgType, web

from trunkline_relay.lines import Line
from trunkline_relay.switch import HostPlace, Switch, Visit, opened
from trunkline_seal import control, unpack
from trunkline_seal.envelope import Envelope
from trunkline_seal.keys import host_name, signed_by
from trunkline_wire import TrunklineError

log = logging.getLogger(__name__)

CHALLENGE_BYTES: Final = 32
PROOF_S: Final = 10.0
"""Seconds that who comes may take to answer the challenge."""
HEARTBEAT_S: Final = 20.0
MAX_ENVELOPE: Final = 128 * 1024


class Relay:
    """The routes of one relay."""

    def __init__(self, switch: Switch) -> None:
        self._switch = switch

    def add(self, app: web.Application) -> None:
        app.router.add_get(control.HOST_PATH, self.host)
        app.router.add_get(control.DEVICE_PATH + "{host}", self.device)

    async def host(self, request: web.Request) -> web.WebSocketResponse:
        """A host, for as long as it stays."""
        async with _socket(request) as (ws, line):
            challenge = secrets.token_bytes(CHALLENGE_BYTES)
            said = control.from_host(await _challenged(ws, line, challenge))
            if not isinstance(said, control.Host):
                raise TrunklineError("bad_frame", "a host answers the challenge first")
            route = control.plain(said.route)
            text = control.host_text(request.host, challenge)
            if not signed_by(route, text, control.plain(said.signature)):
                raise TrunklineError("unauthorized", "the host's signature is not that of its key for this relay")
            place = self._switch.arrive(host_name(route), line)
            try:
                line.say(control.Ready(host=place.name))
                async for message in ws:
                    if message.type is WSMsgType.TEXT:
                        self._from_host(place, control.from_host(message.data))
                    elif message.type is WSMsgType.BINARY:
                        place.down(_envelope(message.data).sid, message.data)
            finally:
                self._switch.depart(place)
        return ws

    def _from_host(self, place: HostPlace, said: control.FromHost) -> None:
        match said:
            case control.Admit():
                place.admit(frozenset(control.plain(key) for key in said.devices))
            case control.Offer():
                place.offer(said.pairing, said.seconds)
            case control.Withdraw():
                place.withdraw(said.pairing)
            case control.Close():
                visit = place.visits.get(bytes.fromhex(said.sid))
                if visit is not None:
                    place.leave(visit, said.reason)
            case control.Host():
                raise TrunklineError("bad_frame", "a host says once who it is")

    async def device(self, request: web.Request) -> web.WebSocketResponse:
        """A device's connection to its host, for as long as both stay."""
        async with _socket(request) as (ws, line):
            challenge = secrets.token_bytes(CHALLENGE_BYTES)
            said = control.from_device(await _challenged(ws, line, challenge))
            name = request.match_info["host"]
            visit = self._visit(said, name, control.device_text(request.host, name, challenge), line)
            try:
                async for message in ws:
                    if message.type is WSMsgType.BINARY:
                        if _envelope(message.data).sid != visit.sid:
                            raise TrunklineError("bad_frame", "the envelope is another connection's")
                        visit.up(message.data)
            finally:
                visit.host.leave(visit, "the device has gone")
        return ws

    def _visit(self, said: control.FromDevice, name: str, text: bytes, line: Line) -> Visit:
        place = self._switch.find(name)
        if isinstance(said, control.Pairing):
            visit = place.visit(line, pairing=said.pairing)
            place.line.say(opened(visit, said.pairing))
        else:
            route = control.plain(said.route)
            if not signed_by(route, text, control.plain(said.signature)):
                raise TrunklineError(
                    "unauthorized", "the device's signature is not that of its key for this host and relay"
                )
            visit = place.visit(line, device=route)
            place.line.say(opened(visit))
        line.say(opened(visit))
        return visit


def _envelope(data: bytes) -> Envelope:
    if len(data) > MAX_ENVELOPE:
        raise TrunklineError("too_large", f"an envelope has at most {MAX_ENVELOPE} bytes")
    return unpack(data)


async def _challenged(ws: web.WebSocketResponse, line: Line, challenge: bytes) -> str:
    line.say(control.Challenge(challenge=control.b64(challenge)))
    async with asyncio.timeout(PROOF_S):
        message = await ws.receive()
    if message.type is not WSMsgType.TEXT:
        raise TrunklineError("bad_frame", "the challenge is to be answered")
    return message.data


@asynccontextmanager
async def _socket(request: web.Request) -> AsyncGenerator[tuple[web.WebSocketResponse, Line]]:
    """The WebSocket and its line. A TrunklineError inside is told to who came, and ends the connection."""
    ws = web.WebSocketResponse(heartbeat=HEARTBEAT_S, max_msg_size=MAX_ENVELOPE + 1024, compress=False)
    await ws.prepare(request)
    line = Line(ws)
    driving = asyncio.create_task(line.drive())
    try:
        yield ws, line
    except TimeoutError:
        line.say(control.Failed(code="timeout", message="the challenge was not answered in time"))
    except TrunklineError as error:
        log.info("refused", extra={"code": error.code})
        line.say(control.Failed(code=error.code, message=error.message))
    finally:
        line.end()
        await driving

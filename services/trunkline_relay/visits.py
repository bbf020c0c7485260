"""Who comes by the relay: each device's connection from its handshake to its end. What fails ends that one connection."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection
from typing import Final, Protocol, Self

import aiohttp
import msgspec

from trunkline_bus import metrics
from trunkline_relay.bridge import REVOKED, Bridge
from trunkline_relay.devices import Devices
from trunkline_relay.gateway import Paired
from trunkline_relay.host import Uplink
from trunkline_relay.sealed import GoneError, Inbox, Sealed, Send, answered, first_message
from trunkline_seal import control
from trunkline_seal.channel import MAX_PAD
from trunkline_seal.control import MAX_OF_DEVICE, MAX_PAIRINGS
from trunkline_wire import TrunklineError
from trunkline_wire.secret import Discreet, Secret

log = logging.getLogger(__name__)

_UP: Final = metrics.RELAY_HOST_BYTES.labels("up")
_DOWN: Final = metrics.RELAY_HOST_BYTES.labels("down")

HANDSHAKE_S: Final = 10.0
TOLD_S: Final = 1.0
"""Seconds that those who were revoked have for being told so, before the relay lets go of them."""
MAX_VISITS: Final = 256
"""Of devices; those that are being paired count apart. Twice as many may be there with those that just end, likewise of one device."""


class Door(Protocol):
    """What a device is let in to."""

    async def open(self, path: str, token: str, device: str) -> aiohttp.ClientWebSocketResponse: ...


class Welcome(Protocol):
    """Who takes in new devices."""

    async def receive(self, pairing: str, sid: bytes, inbox: Inbox, send: Send) -> None: ...


class _About(msgspec.Struct, frozen=True):
    route: str


class _Open(Discreet, frozen=True):
    open: str
    token: Secret
    pad: int = 0


class Visit:
    """A connection that is there. `device` is who has proven to be at its other end, and talks to the gateway."""

    def __init__(self, uplink: Uplink, said: control.Opened, sid: bytes) -> None:
        self.uplink = uplink
        self.said = said
        self.sid = sid
        self.inbox = Inbox()
        self.device: Paired | None = None
        self.sealed: Sealed | None = None
        self.bridge: Bridge | None = None
        self.task: asyncio.Task[None] | None = None
        self.left = False
        """Whether the relay knows that it is over."""

    async def send(self, ct: bytes) -> None:
        await self.uplink.send(self.sid, ct)
        _DOWN.inc(len(ct))


class Visits:
    """All of them. Use as an async context manager: at its end they end."""

    def __init__(
        self, devices: Devices, door: Door, welcome: Welcome, about: Callable[[], dict[str, str | int]]
    ) -> None:
        """`about`: what devices are told of this host, besides its identity."""
        self._devices = devices
        self._door = door
        self._welcome = welcome
        self._about = about
        self._visits: dict[bytes, Visit] = {}
        self.refused: dict[str, int] = {}
        """By code, how many were refused."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for visit in self._visits.values():
            if visit.bridge is not None:
                visit.bridge.end(1001, "stopping")
        tasks = [visit.task for visit in self._visits.values() if visit.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=1.0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def __len__(self) -> int:
        return len(self._visits)

    def here(self) -> Collection[str]:
        """The devices that are connected."""
        return {visit.device.id for visit in self._visits.values() if visit.device is not None}

    async def end_devices(self, gone: Collection[str]) -> None:
        """They were revoked. Returns once they have been told, or soon."""
        tasks: list[asyncio.Task[None]] = []
        for visit in self._visits.values():
            if visit.device is not None and visit.device.id in gone and visit.bridge is not None:
                visit.bridge.end(*REVOKED)
                tasks += [visit.task] if visit.task is not None else []
        if tasks:
            await asyncio.wait(tasks, timeout=TOLD_S)

    async def tell_identity(self) -> None:
        """To all that are connected: the host's identity is another one."""
        message = self._devices.told()
        for visit in list(self._visits.values()):
            if visit.sealed is not None and visit.device is not None and visit.device.id in self._devices.known:
                with contextlib.suppress(GoneError):
                    await visit.sealed.say(message)

    # What comes by the line

    def opened(self, uplink: Uplink, said: control.Opened, sid: bytes) -> None:
        if sid in self._visits or self._crowded(list(self._visits.values()), said, 2):
            self._refuse("rate_limited")
            log.warning("visit_refused", extra={"reason": "known already, or far too many"})
            return
        metrics.RELAY_HOST_VISITS_BEGUN.inc()
        crowd = self._crowded([one for one in self._visits.values() if not one.left], said, 1)
        visit = self._visits[sid] = Visit(uplink, said, sid)
        visit.task = asyncio.create_task(self._run(visit, crowd))

    def frame(self, sid: bytes, ct: bytes) -> None:
        visit = self._visits.get(sid)
        if visit is not None:
            _UP.inc(len(ct))
            visit.inbox.put(ct)

    def closed(self, sid: bytes, reason: str) -> None:  # noqa: ARG002  # it is the relay's word, and nothing follows from it
        visit = self._visits.get(sid)
        if visit is not None:
            visit.left = True
            visit.inbox.close()

    def lost(self) -> None:
        for visit in self._visits.values():
            visit.left = True
            visit.inbox.close()

    def _crowded(self, there: list[Visit], said: control.Opened, times: int) -> str:
        """Why there is no room for one more. A device comes by no other route key than the relay names: it counts by that."""
        routes = [one.said.device for one in there if one.said.device]
        if not said.device:
            return f"{MAX_PAIRINGS} pairings" if len(there) - len(routes) >= times * MAX_PAIRINGS else ""
        if routes.count(said.device) >= times * MAX_OF_DEVICE:
            return f"{MAX_OF_DEVICE} connections of the device"
        return f"{MAX_VISITS} connections" if len(routes) >= times * MAX_VISITS else ""

    # One of them

    async def _run(self, visit: Visit, crowd: str) -> None:
        reason = ""
        try:
            if crowd:
                raise TrunklineError("rate_limited", f"{crowd} are here already")
            if visit.said.pairing:
                await self._welcome.receive(visit.said.pairing, visit.sid, visit.inbox, visit.send)
            else:
                reason = await self._serve(visit)
        except GoneError:
            pass
        except TimeoutError:
            reason = self._refuse("timeout")
        except TrunklineError as error:
            reason = self._refuse(error.code)
            log.info("visit_refused", extra={"code": error.code, "reason": error.message})
        except Exception:
            reason = self._refuse("internal")
            log.exception("visit_failed")
        finally:
            self._visits.pop(visit.sid, None)
            if not visit.left:
                with contextlib.suppress(ConnectionError):
                    await visit.uplink.say(control.Close(sid=visit.sid.hex(), reason=reason[:120]))

    def _refuse(self, code: str) -> str:
        self.refused[code] = self.refused.get(code, 0) + 1
        metrics.RELAY_HOST_REFUSED.labels(code).inc()
        return code

    async def _serve(self, visit: Visit) -> str:
        try:
            async with asyncio.timeout(HANDSHAKE_S):
                sealed, device, wanted = await self._shake(visit)
        except (TrunklineError, TimeoutError, GoneError):
            metrics.RELAY_HOST_HANDSHAKES_FAILED.inc()
            raise
        try:
            request = _read(wanted)
            if device is None:
                raise TrunklineError("unpaired", "the host does not know this device, or no more: pair it again")
            gateway = await self._door.open(request.open, request.token, device.id)
        except TrunklineError as error:
            if error.code == "unauthorized":
                self._devices.look()  # it may have been revoked a moment ago
            async with asyncio.timeout(HANDSHAKE_S):
                await sealed.fail(error)
            raise
        try:
            await sealed.say({"opened": True})
            sealed.pad(request.pad)
            return await self._bridge(visit, device, sealed, gateway)
        finally:
            await gateway.close()

    async def _shake(self, visit: Visit) -> tuple[Sealed, Paired | None, bytes]:
        """The sealed connection, the device if it is one of ours, and what it wants."""
        host = self._devices.host
        hello = await first_message(host.all(), visit.sid, visit.inbox)
        device = self._devices.find(hello.identity)
        used = hello.accepting.identity.public
        if device is not None and not (
            device.route == visit.said.device == _route(hello.about) and host.may_use(device.id, used)
        ):
            device = None
        # Who is none of ours hears of no other identity than the one it had.
        about = {**self._about(), **(host.told(used) if device is None else self._devices.told())}
        sealed, wanted = await answered(hello, about, visit.inbox, visit.send)
        if device is not None:
            await self._devices.came(device.id, used)
        return sealed, device, wanted

    async def _bridge(
        self, visit: Visit, device: Paired, sealed: Sealed, gateway: aiohttp.ClientWebSocketResponse
    ) -> str:
        bridge = Bridge(sealed, gateway)
        if device.id not in self._devices.known:
            bridge.end(*REVOKED)  # while it was let in
        visit.device, visit.sealed, visit.bridge = device, sealed, bridge
        self._devices.look()  # it is noted as seen
        log.info("visit", extra={"device": device.id, "visits": len(self._visits)})
        reason = await bridge.run()
        if reason == REVOKED[1]:
            self._devices.look()
        return reason


def _route(about: bytes) -> str:
    try:
        return msgspec.json.decode(about, type=_About).route
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise TrunklineError("bad_frame", "a device says its route key first") from error


def _read(message: bytes) -> _Open:
    try:
        request = msgspec.json.decode(message, type=_Open)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise TrunklineError("bad_frame", "a device says first what it wants to open") from error
    if not 0 <= request.pad <= MAX_PAD:
        raise TrunklineError("bad_params", f"messages are padded to {MAX_PAD} bytes at most", field="pad")
    return request

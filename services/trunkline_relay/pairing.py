"""New devices: a link that is good once and for a minute, six digits at both ends, and a person here who says that they are the same."""

import asyncio
import contextlib
import hmac
import logging
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Final, Protocol

import msgspec

from trunkline_bus import metrics
from trunkline_relay.devices import Devices
from trunkline_relay.gateway import NewDevice
from trunkline_relay.sealed import GoneError, Hello, Inbox, Sealed, Send, answered, first_message
from trunkline_seal import control, fingerprint
from trunkline_seal.keys import KEY_BYTES
from trunkline_seal.pairing import VALID_S, Link, committed, nonce, pairing_name, short_code
from trunkline_wire import TrunklineError
from trunkline_wire.secret import Discreet, Secret

log = logging.getLogger(__name__)

MAX_OFFERS: Final = 8
HANDSHAKE_S: Final = 10.0
DECIDE_S: Final = 120.0
"""Seconds that people may take to compare the codes."""


class Relay(Protocol):
    """What the relay is told."""

    async def say(self, message: control.Base) -> None: ...


class Arrived(msgspec.Struct, frozen=True, kw_only=True, tag="arrived"):
    """A device has proven the link's secret; the same code has to be on its screen."""

    name: str
    code: str
    fingerprint: str


class Done(msgspec.Struct, frozen=True, kw_only=True, tag="paired"):
    device: str
    name: str
    role: str


class NotDone(msgspec.Struct, frozen=True, kw_only=True, tag="failed"):
    code: str
    message: str


Step = Arrived | Done | NotDone


class Offer:
    """One link. `steps` says what comes of it; `decide` what the person says to the code."""

    def __init__(self, link: Link, invitation: str, until: float) -> None:
        self.link = link
        self.invitation = invitation
        self.until = until
        self.used = False
        self.steps: asyncio.Queue[Step] = asyncio.Queue()
        self._decided: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def end(self, step: Done | NotDone) -> None:
        """What came of it."""
        metrics.RELAY_HOST_PAIRINGS.labels("paired" if isinstance(step, Done) else step.code).inc()
        self.steps.put_nowait(step)

    def decide(self, agree: bool) -> None:
        if not self._decided.done():
            self._decided.set_result(agree)

    async def decision(self) -> bool:
        return await asyncio.shield(self._decided)


class _About(Discreet, frozen=True):
    pair: Secret
    route: str
    commit: str
    key: Secret
    name: str = "device"


class _Reveal(msgspec.Struct, frozen=True):
    reveal: str


class Pairing:
    """All links that are open here."""

    def __init__(
        self,
        devices: Devices,
        relay: Relay,
        about: Callable[[], dict[str, str | int]],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._devices = devices
        self._relay = relay
        self._about = about
        self._clock = clock
        self._offers: dict[str, Offer] = {}

    def offers(self) -> list[control.Base]:
        """For a relay that has just been connected to."""
        now = self._clock()
        return [
            control.Offer(pairing=name, seconds=offer.until - now)
            for name, offer in self._offers.items()
            if not offer.used and offer.until > now
        ]

    @asynccontextmanager
    async def offered(self, url: str, invitation: str) -> AsyncGenerator[Offer]:
        """A link at the relay `url`, for as long as the block runs. `invitation` is the gateway's. Raises TrunklineError `rate_limited`."""
        if len(self._offers) >= MAX_OFFERS:
            raise TrunklineError("rate_limited", f"{MAX_OFFERS} links are open already")
        host = self._devices.host
        app = control.plain(str(self._about().get("app", ""))) or bytes(KEY_BYTES)
        link = Link.new(url, host.route.public, host.newest.public, app)
        name = pairing_name(link.secret)
        offer = self._offers[name] = Offer(link, invitation, self._clock() + VALID_S)
        try:
            await self._relay.say(control.Offer(pairing=name, seconds=VALID_S))
            yield offer
        finally:
            del self._offers[name]
            if not offer.used:
                metrics.RELAY_HOST_PAIRINGS.labels("unused").inc()
            offer.decide(False)
            await self._relay.say(control.Withdraw(pairing=name))

    async def receive(self, pairing: str, sid: bytes, inbox: Inbox, send: Send) -> None:
        """A device that comes by a link. Raises TrunklineError for one that does not get through."""
        offer = self._offers.get(pairing)
        if offer is None or offer.used or offer.until <= self._clock():
            raise TrunklineError("bad_pairing", "the link is too old, was used before, or is none")
        offer.used = True
        try:
            await self._receive(offer, sid, inbox, send)
        except TrunklineError as error:
            offer.end(NotDone(code=error.code, message=error.message))
            raise
        except (GoneError, TimeoutError):
            offer.end(NotDone(code="timeout", message="the device went away"))
            raise

    async def _receive(self, offer: Offer, sid: bytes, inbox: Inbox, send: Send) -> None:
        host = self._devices.host
        number = nonce()
        async with asyncio.timeout(HANDSHAKE_S):
            hello = await first_message([host.newest], sid, inbox)
            said = _checked(hello, offer)
            about = {**self._about(), **host.told(host.newest.public), "nonce": control.b64(number)}
            sealed, revealed = await answered(hello, about, inbox, send)
        theirs = _number(revealed)
        if not committed(control.plain(said.commit), theirs):
            raise await _told(sealed, TrunklineError("bad_pairing", "the device's number is not what it committed to"))
        route = control.plain(said.route)
        code = short_code((host.route.public, host.newest.public), (route, hello.identity), (number, theirs))
        name = _plain_name(said.name)
        offer.steps.put_nowait(Arrived(name=name, code=code, fingerprint=fingerprint(hello.identity)))
        if not await self._agreed(offer, sealed):
            raise await _told(
                sealed, TrunklineError("bad_pairing", "nobody at the host has confirmed that the codes are the same")
            )
        wanted = NewDevice(
            invitation=offer.invitation,
            name=name,
            key=said.key,
            route=said.route,
            identity=control.b64(hello.identity),
        )
        await self._register(offer, wanted, host.newest.public, sealed)

    async def _agreed(self, offer: Offer, sealed: Sealed) -> bool:
        """What the person says. A device that goes away meanwhile is not waited for. Raises GoneError."""
        deciding = asyncio.create_task(offer.decision())
        listening = asyncio.create_task(sealed.receive())
        try:
            await asyncio.wait({deciding, listening}, timeout=DECIDE_S, return_when=asyncio.FIRST_COMPLETED)
            if listening.done():
                listening.result()
                raise GoneError  # it has nothing to say now
            return deciding.done() and deciding.result()
        finally:
            for task in (deciding, listening):
                task.cancel()
            await asyncio.gather(deciding, listening, return_exceptions=True)

    async def _register(self, offer: Offer, wanted: NewDevice, identity: bytes, sealed: Sealed) -> None:
        try:
            device, token = await self._devices.pair(wanted, identity)
        except ConnectionError:
            error = TrunklineError("not_running", "the host's gateway does not answer: try again")
            raise await _told(sealed, error) from None
        except TrunklineError as error:
            raise await _told(sealed, error) from None
        # It may come as soon as it hears of it.
        await self._relay.say(control.Admit(devices=self._devices.routes()))
        answer = {"device": device.id, "actor": device.actor, "role": device.role, "token": token}
        try:
            await sealed.say({"paired": {**answer, "host": self._about()["host"]}}, last=True)
        except GoneError:
            await self._devices.revoke(device.id)
            raise
        log.info("paired", extra={"device": device.id})
        offer.end(Done(device=device.id, name=device.name, role=device.role))


def _checked(hello: Hello, offer: Offer) -> _About:
    """What the device says, once it has proven the link's secret. Nothing else of it is believed before."""
    try:
        said = msgspec.json.decode(hello.about, type=_About)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise TrunklineError("bad_frame", "a new device says who it is") from error
    if not hmac.compare_digest(control.plain(said.pair), offer.link.secret):
        raise TrunklineError("bad_pairing", "the device does not have the link's secret")
    if any(len(control.plain(key)) != KEY_BYTES for key in (said.route, said.key)):
        raise TrunklineError("bad_params", f"a device's keys have {KEY_BYTES} bytes", field="key")
    return said


def _number(message: bytes) -> bytes:
    try:
        return control.plain(msgspec.json.decode(message, type=_Reveal).reveal)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise TrunklineError("bad_frame", "a new device opens its commitment") from error


def _plain_name(name: str) -> str:
    return "".join(sign for sign in " ".join(name.split()) if sign.isprintable())[:64] or "device"


async def _told(sealed: Sealed, error: TrunklineError) -> TrunklineError:
    """The error, told to the device."""
    with contextlib.suppress(GoneError, TimeoutError):
        async with asyncio.timeout(HANDSHAKE_S):
            await sealed.fail(error)
    return error

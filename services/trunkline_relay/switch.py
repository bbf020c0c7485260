"""Who is connected to a relay, and what goes where: no input, no output. It keeps who may come, and nothing of what is said."""

import secrets
from collections.abc import Callable
from typing import Final, Protocol

from trunkline_seal.control import MAX_DEVICES, MAX_OF_DEVICE, MAX_PAIRINGS, Base, Close, Failed, Opened, b64
from trunkline_seal.handshake import SID_BYTES
from trunkline_seal.keys import KEY_BYTES
from trunkline_wire import TrunklineError

MAX_OFFERS: Final = 16
MAX_OFFER_S: Final = 300.0
MAX_CONNECTIONS: Final = 256
"""Of the devices of one host at a time; those that are being paired count apart, so that no paired device keeps them out."""
MAX_PAIRING: Final = 64
"""Signs of a pairing's name."""

_UNPAIRED: Final = ("unpaired", "the host does not know this device, or no more: pair it again")
_TOO_MUCH: Final = ("rate_limited", "the host takes less than this device sends")


class Line(Protocol):
    """A connection, as `trunkline_relay.lines` has it."""

    @property
    def crowded(self) -> bool: ...
    def say(self, message: Base) -> None: ...
    def put(self, frame: bytes) -> bool: ...
    def end(self) -> None: ...


class Visit:
    """A device's connection to a host."""

    def __init__(self, sid: bytes, host: "HostPlace", line: Line, device: bytes | None) -> None:
        self.sid = sid
        self.host = host
        self.line = line
        self.device = device

    def up(self, envelope: bytes) -> None:
        """From the device to the host. A device that sends more than the host takes leaves, so that the others stay."""
        if self.host.line.crowded:
            self.host.leave(self, "the device sends more than is taken", _TOO_MUCH)
        else:
            self.host.line.put(envelope)

    def leave(self, reason: str) -> None:
        """The device has gone, or has to."""
        self.host.leave(self, reason)


class HostPlace:
    """A host that is connected, with the devices that it admits and the connections that it has."""

    def __init__(self, name: str, line: Line, clock: Callable[[], float]) -> None:
        self.name = name
        self.line = line
        self.admitted: frozenset[bytes] = frozenset()
        self.open = False
        """Whether the host has said who may come: nobody is unpaired because they come a moment before that."""
        self.offers: dict[str, float] = {}
        """By pairing, until when, in seconds of the clock."""
        self.visits: dict[bytes, Visit] = {}
        self._clock = clock

    def admit(self, devices: frozenset[bytes]) -> None:
        """Raises TrunklineError `bad_params` for too many, or what is no key."""
        if len(devices) > MAX_DEVICES:
            raise TrunklineError("bad_params", f"a host may admit {MAX_DEVICES} devices", field="devices")
        if any(len(device) != KEY_BYTES for device in devices):
            raise TrunklineError("bad_params", f"a device's key has {KEY_BYTES} bytes", field="devices")
        self.admitted = devices
        self.open = True
        for visit in list(self.visits.values()):
            if visit.device is not None and visit.device not in devices:
                self.leave(visit, "the device was revoked", _UNPAIRED)

    def offer(self, pairing: str, seconds: float) -> None:
        """Raises TrunklineError `bad_params` for too many, or what is no name."""
        now = self._clock()
        self.offers = {name: until for name, until in self.offers.items() if until > now}
        if not 0 < len(pairing) <= MAX_PAIRING:
            raise TrunklineError("bad_params", f"a pairing's name has 1 to {MAX_PAIRING} signs", field="pairing")
        if pairing not in self.offers and len(self.offers) >= MAX_OFFERS:
            raise TrunklineError("bad_params", f"a host may offer {MAX_OFFERS} pairings at a time", field="pairing")
        self.offers[pairing] = now + min(seconds, MAX_OFFER_S)

    def withdraw(self, pairing: str) -> None:
        self.offers.pop(pairing, None)

    def visit(self, line: Line, *, device: bytes | None = None, pairing: str = "", sid: bytes | None = None) -> Visit:
        """A device comes; its route key is proven. `sid`: the one that it has already, at the relay where it is.

        Raises TrunklineError `host_away`, `unpaired`, `bad_pairing`, `rate_limited`.
        """
        if not self.open:
            raise TrunklineError("host_away", "the host is just connecting: try again in a moment")
        if device is not None and device not in self.admitted:
            raise TrunklineError(*_UNPAIRED)
        self._require_room(device)
        if device is None and self.offers.pop(pairing, 0.0) <= self._clock():
            raise TrunklineError(
                "bad_pairing", "the link is too old, was used before, or is none: `trunkline pair` makes another"
            )
        visit = Visit(sid or secrets.token_bytes(SID_BYTES), self, line, device)
        self.visits[visit.sid] = visit
        return visit

    def _require_room(self, device: bytes | None) -> None:
        paired = [visit.device for visit in self.visits.values() if visit.device is not None]
        if device is None:
            if len(self.visits) - len(paired) >= MAX_PAIRINGS:
                raise TrunklineError("rate_limited", f"{MAX_PAIRINGS} devices are being paired with the host already")
        elif paired.count(device) >= MAX_OF_DEVICE:
            raise TrunklineError("rate_limited", f"this device has {MAX_OF_DEVICE} connections to the host already")
        elif len(paired) >= MAX_CONNECTIONS:
            raise TrunklineError("rate_limited", f"the host has {MAX_CONNECTIONS} connections already")

    def leave(self, visit: Visit, reason: str, told: tuple[str, str] | None = None) -> None:
        """The connection is over, whoever ended it. `told`: the error, code and text, that the device hears."""
        if self.visits.pop(visit.sid, None) is None:
            return
        self.line.say(Close(sid=visit.sid.hex(), reason=reason))
        if told is not None:
            visit.line.say(Failed(code=told[0], message=told[1]))
        visit.line.end()

    def down(self, sid: bytes, envelope: bytes) -> None:
        """From the host to a device. What comes for one that has left is dropped; a device that is too slow leaves."""
        visit = self.visits.get(sid)
        if visit is not None and not visit.line.put(envelope):
            self.leave(visit, "the device is too slow")


class Switch:
    """All hosts that are connected here."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.hosts: dict[str, HostPlace] = {}
        self._clock = clock

    @property
    def visits(self) -> int:
        """How many devices are connected to hosts here."""
        return sum(len(place.visits) for place in self.hosts.values())

    def arrive(self, name: str, line: Line) -> HostPlace:
        """A host connects; its name is proven. One that was there under this name is replaced: it has come again by another way."""
        self.replace(name)
        place = self.hosts[name] = HostPlace(name, line, self._clock)
        return place

    def replace(self, name: str) -> None:
        """A host has come again, here or at another relay: the connection that it had is over."""
        former = self.hosts.get(name)
        if former is not None:
            self.depart(former, Failed(code="already_running", message="the host has come again by another connection"))

    def depart(self, place: HostPlace, told: Failed | None = None) -> None:
        """A host's connection is over, and with it those of its devices. `told`: what the host hears last."""
        if self.hosts.get(place.name) is place:
            del self.hosts[place.name]
        for visit in list(place.visits.values()):
            place.leave(visit, "the host has gone", ("host_away", "the host is no longer connected to the relay"))
        if told is not None:
            place.line.say(told)
        place.line.end()

    def find(self, name: str) -> HostPlace:
        """Raises TrunklineError `host_away`."""
        place = self.hosts.get(name)
        if place is None:
            raise TrunklineError("host_away", "the host is not connected: it is off, or has no network")
        return place


def opened(visit: Visit, pairing: str = "") -> Opened:
    """What the host is told of a new connection."""
    return Opened(sid=visit.sid.hex(), device=b64(visit.device) if visit.device else "", pairing=pairing)

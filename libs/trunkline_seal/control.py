"""What hosts and devices say to a relay, and it to them: JSON text frames beside the envelopes, which are binary frames.

Both come by WebSocket: a host at `/relay/v1/host`, a device at `/relay/v1/device/<host>`. The relay challenges first; who comes signs the challenge with
its route key, with the relay's own address in it, so that one relay can't use at another what it was told.
"""

import base64
import binascii
from typing import Final, TypeVar

import msgspec

from trunkline_seal.handshake import SID_BYTES
from trunkline_wire import TrunklineError

HOST_PATH: Final = "/relay/v1/host"
DEVICE_PATH: Final = "/relay/v1/device/"
MAX_DEVICES: Final = 1_000
"""That a host may admit."""
MAX_OF_DEVICE: Final = 16
"""Connections that a device may have to its host at a time."""
MAX_PAIRINGS: Final = 16
"""Connections of devices that a host may be pairing at a time."""
MAX_CONTROL: Final = 128 * 1024
"""Bytes of a control frame: a list of MAX_DEVICES keys has its place in it."""


class Base(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True):
    """Keys, challenges and signatures are base64; `sid` is hex."""


class Challenge(Base, frozen=True, kw_only=True, tag="challenge"):
    challenge: str


class Host(Base, frozen=True, kw_only=True, tag="host"):
    """A host's answer to the challenge."""

    route: str
    signature: str


class Device(Base, frozen=True, kw_only=True, tag="device"):
    """A device's answer to the challenge."""

    route: str
    signature: str


class Pairing(Base, frozen=True, kw_only=True, tag="pairing"):
    """A new device's answer: the relay knows the pairing by the host's offer."""

    pairing: str


class Ready(Base, frozen=True, kw_only=True, tag="ready"):
    """To a host: it is let in, devices find it by this name. `url` is the relay's address for people, if it knows it."""

    host: str
    url: str = ""


class Admit(Base, frozen=True, kw_only=True, tag="admit"):
    """From a host: the route keys of all its devices. Who is no longer among them is disconnected at once."""

    devices: list[str]


class Offer(Base, frozen=True, kw_only=True, tag="offer"):
    """From a host: one device may come by this pairing, once, for so long."""

    pairing: str
    seconds: float = 60.0


class Withdraw(Base, frozen=True, kw_only=True, tag="withdraw"):
    """From a host: nobody may come by this pairing any more."""

    pairing: str


class Opened(Base, frozen=True, kw_only=True, tag="opened"):
    """To both ends: a connection begins. The host is told the device's route key, or the pairing by which it comes."""

    sid: str
    device: str = ""
    pairing: str = ""


class Close(Base, frozen=True, kw_only=True, tag="close"):
    """To and from a host: a connection is over. What came of it before is still to be read."""

    sid: str
    reason: str = ""


class Failed(Base, frozen=True, kw_only=True, tag="error"):
    """To both ends, before the relay closes."""

    code: str
    message: str


T = TypeVar("T")

ToHost = Challenge | Ready | Opened | Close | Failed
FromHost = Host | Admit | Offer | Withdraw | Close
ToDevice = Challenge | Opened | Failed
FromDevice = Device | Pairing

_to_host = msgspec.json.Decoder(ToHost)
_from_host = msgspec.json.Decoder(FromHost)
_to_device = msgspec.json.Decoder(ToDevice)
_from_device = msgspec.json.Decoder(FromDevice)


def encode(message: Base) -> str:
    return msgspec.json.encode(message).decode()


def to_host(text: str) -> ToHost:
    """Raises TrunklineError `bad_frame`, as its siblings do."""
    return _decoded(_to_host, text)


def from_host(text: str) -> FromHost:
    return _decoded(_from_host, text)


def to_device(text: str) -> ToDevice:
    return _decoded(_to_device, text)


def from_device(text: str) -> FromDevice:
    return _decoded(_from_device, text)


def host_text(relay: str, challenge: bytes) -> bytes:
    """What a host signs. `relay`: the host and port that it connected to, as in the `Host` header."""
    return b"\0".join((b"trunkline-relay-host", relay.lower().encode(), challenge))


def device_text(relay: str, host: str, challenge: bytes) -> bytes:
    """What a device signs to be let through to `host`."""
    return b"\0".join((b"trunkline-relay-device", relay.lower().encode(), host.encode(), challenge))


def plain(text: str) -> bytes:
    """Bytes of base64. Raises TrunklineError `bad_frame`."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise TrunklineError("bad_frame", "base64 is expected") from error


def sid_of(text: str) -> bytes:
    """The connection that a control frame names. Raises TrunklineError `bad_frame`."""
    try:
        sid = bytes.fromhex(text)
    except ValueError:
        sid = b""
    if len(sid) != SID_BYTES:
        raise TrunklineError("bad_frame", f"a connection's `sid` is {SID_BYTES} bytes in hex")
    return sid


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _decoded(decoder: msgspec.json.Decoder[T], text: str) -> T:
    if len(text) > MAX_CONTROL:
        raise TrunklineError("too_large", "a control frame is too large")
    try:
        return decoder.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise TrunklineError("bad_frame", f"no control frame of a relay: {error}") from error

"""Answers that a registered device has signed: checked here, once each, by the server's time.

A nonce comes from the gateway, lives WINDOW_S in `trunk_presence`, and whichever gateway uses it first writes beside it what
for. The same answer may be brought again (its sender does not know what became of it): all that it says, its id among it, is what
was signed, and an id has one effect. Any other answer needs another nonce.
"""

import base64
import datetime as dt
import hmac
import secrets
from typing import Final

import msgspec

from trunkline_bus import kv
from trunkline_bus.connection import Bus
from trunkline_gateway.devices import Devices
from trunkline_gateway.roles import Principal
from trunkline_wire import Answer, TrunklineError, encode, parse_time
from trunkline_wire.signing import FORM, answer_mac
from trunkline_wire.subjects import KV_PRESENCE

WINDOW_S: Final = 30
"""Seconds that a nonce is good for, and that the signed time may be off."""
REPEATED_S: Final = 24 * 3600
"""Seconds in which the same answer may be brought again."""


class Nonce(msgspec.Struct, frozen=True, omit_defaults=True):
    """A nonce as stored: whose it is, and the signature that it was used for."""

    actor: str
    used: str | None = None


async def make_nonce(bus: Bus, actor: str) -> str:
    """16 random bytes as hex, for one answer of `actor`."""
    nonce = secrets.token_hex(16)
    await kv.put(bus, KV_PRESENCE, _key(nonce), encode(Nonce(actor)), ttl=WINDOW_S)
    return nonce


async def check_signature(bus: Bus, devices: Devices, principal: Principal, answer: Answer) -> str | None:
    """The device that signed the answer; None for an answer without a signature. Raises TrunklineError `bad_signature`.

    The nonce is used up by it, whatever becomes of the answer.
    """
    signature = answer.signature
    if signature is None:
        return None
    device = devices.records.known.get(signature.device)
    if device is None or device.actor != principal.actor or principal.device not in (None, device.id):
        raise _bad("the device is not registered for who answers")
    mac = answer_mac(base64.b64decode(device.key), answer, signature.time, signature.nonce)
    if not hmac.compare_digest(mac, signature.mac):
        raise _bad(f"it is not the device's for this answer, by the form {FORM!r}")
    if not await _use(bus, principal.actor, signature.nonce, mac, signature.time):
        raise _bad("its nonce was used before, is too old, or was never given out: `ask.nonce` gives the next one")
    return device.id


async def _use(bus: Bus, actor: str, nonce: str, mac: str, time: str) -> bool:
    """Use a nonce up for the answer with this signature; True also where it was used for that very one."""
    while True:
        entry = await kv.get(bus, KV_PRESENCE, _key(nonce))
        if entry is None or entry.value is None:
            return False
        known = msgspec.json.decode(entry.value, type=Nonce)
        if known.actor != actor or known.used is not None:
            return known.actor == actor and known.used == mac
        off = abs((dt.datetime.now(dt.UTC) - parse_time(time)).total_seconds())
        if off > WINDOW_S:
            raise _bad(f"its time is {off:.0f} s off; {WINDOW_S} s are allowed")
        used = encode(Nonce(actor, mac))
        if await kv.update(bus, KV_PRESENCE, entry.key, used, revision=entry.revision, ttl=REPEATED_S) is not None:
            return True


def _bad(why: str) -> TrunklineError:
    return TrunklineError("bad_signature", f"the signature does not count: {why}")


def _key(nonce: str) -> str:
    return f"nonce.{nonce}"

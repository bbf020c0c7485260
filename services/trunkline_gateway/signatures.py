"""Answers that a registered device has signed: checked here, once each, by the server's time.

A nonce comes from the gateway, lives WINDOW_S in `trunk_presence`, and whichever gateway takes it out first has used it. An answer
that stands in the log already may be brought again without one, by a sender that does not know what became of it: all that
it says was signed, its id too, and an id has one effect.
"""

import base64
import datetime as dt
import hmac
import secrets
from typing import Final

from trunkline_bus import kv
from trunkline_bus.connection import Bus
from trunkline_bus.reader import read
from trunkline_gateway.devices import Devices
from trunkline_gateway.roles import Principal
from trunkline_wire import Answer, TrunklineError, decode_answer, parse_time, subjects
from trunkline_wire.asks import Signature
from trunkline_wire.signing import FORM, answer_mac
from trunkline_wire.subjects import KV_PRESENCE

WINDOW_S: Final = 30
"""Seconds that a nonce is good for, and that the signed time may be off."""


async def make_nonce(bus: Bus, actor: str) -> str:
    """16 random bytes as hex, for one answer of `actor`."""
    nonce = secrets.token_hex(16)
    await kv.put(bus, KV_PRESENCE, _key(nonce), actor.encode(), ttl=WINDOW_S)
    return nonce


async def check_signature(bus: Bus, user: str, devices: Devices, principal: Principal, answer: Answer) -> str | None:
    """The device that signed the answer; None for an answer without a signature. Raises TrunklineError `bad_signature`.

    The nonce is used up by it, whatever becomes of the answer. `user` is the NATS user that brings answers to the log.
    """
    signature = answer.signature
    if signature is None:
        return None
    device = devices.records.known.get(signature.device)
    if (
        device is None
        or not devices.stands(device.id)
        or device.actor != principal.actor
        or principal.device not in (None, device.id)
    ):
        raise _bad("the device is not registered for who answers")
    mac = answer_mac(base64.b64decode(device.key), answer, signature.time, signature.nonce)
    if not hmac.compare_digest(mac, signature.mac):
        raise _bad(f"it is not the device's for this answer, by the form {FORM!r}")
    try:
        await _use(bus, principal.actor, signature)
    except TrunklineError as error:
        if error.code != "bad_signature" or not await _stands(bus, user, answer):
            raise
    return device.id


async def _use(bus: Bus, actor: str, signature: Signature) -> None:
    off = abs((dt.datetime.now(dt.UTC) - parse_time(signature.time)).total_seconds())
    if off > WINDOW_S:
        raise _bad(f"its time is {off:.0f} s off; {WINDOW_S} s are allowed")
    entry = await kv.get(bus, KV_PRESENCE, _key(signature.nonce))
    fresh = entry is not None and entry.value == actor.encode()
    if entry is None or not fresh or not await kv.remove(bus, KV_PRESENCE, entry.key, revision=entry.revision):
        raise _bad("its nonce was used before, is too old, or was never given out: `ask.nonce` gives the next one")


async def _stands(bus: Bus, user: str, answer: Answer) -> bool:
    """Whether this very answer is in the log: whoever brought it there has checked it."""
    brought = await read(bus, subjects.COMMANDS, [subjects.answer(answer.session, user)])
    known = (decode_answer(stored.raw) for stored in brought)
    return any(one.id == answer.id and one.signature == answer.signature for one in known)


def _bad(why: str) -> TrunklineError:
    return TrunklineError("bad_signature", f"the signature does not count: {why}")


def _key(nonce: str) -> str:
    return f"nonce.{nonce}"

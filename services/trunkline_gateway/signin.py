"""Signing in from a browser: a code that works once, for a few minutes, becomes a cookie.

The code stands behind the `#` of a link, which browsers keep to themselves: it is in no request line, log or referrer.
"""

import hmac
import secrets
import time
from typing import Final

import msgspec

from trunkline_bus import kv
from trunkline_bus.connection import Bus
from trunkline_gateway.roles import EVERYTHING, Role, Scope
from trunkline_gateway.tokens import digest_of
from trunkline_wire import TrunklineError, encode
from trunkline_wire.subjects import KV_TOKENS

CODE_S: Final = 300.0
SIGNED_IN_S: Final = 30 * 86400.0


class CodeRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a code stands for. `expires` is the code's end, `lasts` how long the sign-in does; both in seconds.

    `parent` is the device by whose rights it was made: it counts no more once that is gone, and neither does who signs in.
    """

    hash: str
    actor: str
    role: Role
    expires: float
    lasts: float = SIGNED_IN_S
    scope: Scope = EVERYTHING
    parent: str | None = None


async def make_code(
    bus: Bus, actor: str, role: Role, *, scope: Scope, lasts: float, parent: str | None = None
) -> tuple[str, float]:
    """A new code and the time at which it ends."""
    code = secrets.token_urlsafe(24)
    digest = digest_of(code)
    expires = time.time() + CODE_S
    record = CodeRecord(hash=digest, actor=actor, role=role, expires=expires, lasts=lasts, scope=scope, parent=parent)
    await kv.put(bus, KV_TOKENS, _key(digest), encode(record))
    return code, expires


async def redeem(bus: Bus, code: str) -> CodeRecord:
    """Use a code up: of several who try, at however many gateways, one succeeds. Raises TrunklineError `unauthorized`."""
    digest = digest_of(code)
    entry = await kv.get(bus, KV_TOKENS, _key(digest))
    if entry is not None and entry.value is not None:
        record = msgspec.json.decode(entry.value, type=CodeRecord)
        if await kv.remove(bus, KV_TOKENS, entry.key, revision=entry.revision) and hmac.compare_digest(
            record.hash, digest
        ):
            if record.expires > time.time():
                return record
            raise TrunklineError("unauthorized", "the link is too old: ask for a new one (`trunkline sign-in`)")
    raise TrunklineError(
        "unauthorized", "the link was used before, or is none: ask for a new one (`trunkline sign-in`)"
    )


async def forget_expired(bus: Bus) -> None:
    """Delete codes that nobody has used in time."""
    for entry in await kv.entries(bus, KV_TOKENS, "code.*"):
        if entry.value is not None and msgspec.json.decode(entry.value, type=CodeRecord).expires <= time.time():
            await kv.remove(bus, KV_TOKENS, entry.key, revision=entry.revision)


def _key(digest: str) -> str:
    return f"code.{digest[:32]}"

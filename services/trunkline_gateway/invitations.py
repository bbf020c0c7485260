"""Invitations: what a person has agreed to let in, for the host's side of a relay to bring, once.

It can't tell a person from an agent of the same user, who may both open its socket: the gateway tells, when it gives an invitation out.
"""

import secrets
from typing import Final

import msgspec

from trunkline_bus import kv
from trunkline_bus.connection import Bus
from trunkline_gateway.roles import Role
from trunkline_gateway.tokens import digest_of
from trunkline_wire import TrunklineError, encode
from trunkline_wire.subjects import KV_PRESENCE

LASTS_S: Final = 300
"""Seconds: a link's minute, and the time to compare codes."""


class Invitation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a device will be. Without a name it has its own word for itself. `parent` is the device on which it was made, if on one."""

    actor: str
    role: Role
    name: str = ""
    parent: str | None = None


async def make(bus: Bus, invitation: Invitation) -> str:
    """The code that stands for it."""
    code = secrets.token_urlsafe(24)
    await kv.put(bus, KV_PRESENCE, _key(code), encode(invitation), ttl=LASTS_S)
    return code


async def use(bus: Bus, code: str) -> Invitation:
    """Use it up. Raises TrunklineError `bad_pairing`."""
    entry = await kv.get(bus, KV_PRESENCE, _key(code))
    if entry is not None and entry.value is not None:
        invitation = msgspec.json.decode(entry.value, type=Invitation)
        if await kv.remove(bus, KV_PRESENCE, entry.key, revision=entry.revision):
            return invitation
    raise TrunklineError("bad_pairing", "the invitation is too old, was used before, or is none: pair again")


def _key(code: str) -> str:
    return f"invitation.{digest_of(code)[:32]}"

"""Links that decide one ask, once: for people whom a message reaches where they have no client.

The code stands behind the `#` of `/a/<ask>#code=…`, which browsers keep to themselves. Opening the link decides nothing: its page
shows what is asked, and a button posts the code and the decision. A code is bound to its ask, to the decisions it may bring, to
the person it was made for and to who made it; it is of no use to the processes of agents. What an extension's link decides is
decided by `ext:<name>/<person>`: where several people have to agree, all links of an extension, and the extension, are one voice.
"""

import hmac
import secrets
import time
from typing import Final

import msgspec

from trunkline_bus import kv
from trunkline_bus.connection import Bus
from trunkline_gateway.tokens import digest_of
from trunkline_wire import TrunklineError, encode
from trunkline_wire.actors import EXTENSION, vouched
from trunkline_wire.asks import Behaviour
from trunkline_wire.subjects import KV_TOKENS

MAX_LASTS_S: Final = 7 * 86400.0


class LinkRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a code stands for. `actor` opens it, `by` made it, on the device `parent` if on one; `expires` in seconds since 1970."""

    hash: str
    ask: str
    session: str
    actor: str
    by: str
    behaviours: tuple[Behaviour, ...]
    expires: float
    parent: str | None = None

    @property
    def decider(self) -> str:
        """Who decides, as the log has it: a person that an extension names is known by that extension's word alone."""
        named = self.by.startswith(EXTENSION) and self.actor != self.by
        return vouched(self.by, self.actor) if named else self.actor


async def make(
    bus: Bus,
    *,
    ask: str,
    session: str,
    actor: str,
    by: str,
    behaviours: tuple[Behaviour, ...],
    lasts: float,
    parent: str | None = None,
) -> tuple[str, float]:
    """A new code and the time at which it ends."""
    code = secrets.token_urlsafe(24)
    digest = digest_of(code)
    record = LinkRecord(
        hash=digest,
        ask=ask,
        session=session,
        actor=actor,
        by=by,
        behaviours=behaviours,
        expires=time.time() + lasts,
        parent=parent,
    )
    await restore(bus, record)
    return code, record.expires


async def look(bus: Bus, code: str) -> LinkRecord:
    """What a code stands for. Raises TrunklineError `unauthorized`."""
    return (await _find(bus, code))[0]


async def redeem(bus: Bus, code: str, behaviour: Behaviour) -> LinkRecord:
    """Use a code up: of several who try, one succeeds. Raises TrunklineError `unauthorized`, `forbidden`."""
    record, revision = await _find(bus, code)
    if behaviour not in record.behaviours:
        raise TrunklineError("forbidden", f"the link is for {' or '.join(record.behaviours)}")
    if not await kv.remove(bus, KV_TOKENS, _key(record.hash), revision=revision):
        raise _none()
    return record


async def restore(bus: Bus, record: LinkRecord) -> None:
    """Make a code count (again): what it was used for did not come about."""
    await kv.put(bus, KV_TOKENS, _key(record.hash), encode(record))


async def forget_expired(bus: Bus) -> None:
    for entry in await kv.entries(bus, KV_TOKENS, "link.*"):
        if entry.value is not None and msgspec.json.decode(entry.value, type=LinkRecord).expires <= time.time():
            await kv.remove(bus, KV_TOKENS, entry.key, revision=entry.revision)


async def _find(bus: Bus, code: str) -> tuple[LinkRecord, int]:
    digest = digest_of(code)
    entry = await kv.get(bus, KV_TOKENS, _key(digest))
    if entry is None or entry.value is None:
        raise _none()
    record = msgspec.json.decode(entry.value, type=LinkRecord)
    if not hmac.compare_digest(record.hash, digest):
        raise _none()
    if record.expires <= time.time():
        raise TrunklineError("unauthorized", "the link is too old: decide it in the app, or with `trunkline approve`")
    return record, entry.revision


def _none() -> TrunklineError:
    return TrunklineError(
        "unauthorized", "the link was used before, or is none: see the app, or `trunkline asks`, for what is open"
    )


def _key(digest: str) -> str:
    return f"link.{digest[:32]}"

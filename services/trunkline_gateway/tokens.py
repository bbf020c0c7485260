"""Bearer tokens: only their sha256 is kept, in the bucket `trunk_tokens`, the same for every gateway of a log."""

import asyncio
import hashlib
import hmac
import logging
import math
import os
import secrets
import time
from pathlib import Path
from typing import Final, Protocol

import msgspec

from trunkline_bus import kv
from trunkline_bus.connection import Bus
from trunkline_gateway.records import Records
from trunkline_gateway.roles import EVERYTHING, Principal, Role, Scope
from trunkline_wire import TrunklineError, timestamp
from trunkline_wire.ids import new_token
from trunkline_wire.subjects import KV_TOKENS

log = logging.getLogger(__name__)

OWNER: Final = "owner"
_CURSORS: Final = "gateway.cursors"


class Lineage(Protocol):
    """The devices, each of which may have come by the rights of another."""

    def stands(self, id: str | None) -> bool:
        """Whether a device, and all above it, are there; true for None."""
        ...

    async def there(self, id: str) -> bool:
        """The same as of now, not of what has been heard here."""
        ...


class TokenRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A token as stored. `id` is the first half of the hash: enough to name it, useless to anyone.

    `expires` is in seconds since 1970, None for never; `via` says how it came to be: made by hand, or by a sign-in. `device` is whose
    own it is; `parent`, where it is none's, that by whose rights it was made.
    """

    id: str
    hash: str
    actor: str
    role: Role
    created: str
    scope: Scope = EVERYTHING
    expires: float | None = None
    label: str = ""
    device: str | None = None
    parent: str | None = None
    via: str = "created"

    @property
    def under(self) -> str | None:
        """The device with which it ends."""
        return self.device or self.parent

    def principal(self) -> Principal:
        return Principal(
            actor=self.actor,
            role=self.role,
            via="tcp",
            token=self.id,
            scope=self.scope,
            device=self.device,
            parent=self.parent,
            expires=self.expires,
        )


class Tokens:
    """The tokens of the log, watched: one that is revoked anywhere is refused everywhere at once.

    It is refused likewise as soon as its device is gone, or one above that: whether its own record is still there says nothing then.
    """

    def __init__(self, bus: Bus, devices: Lineage) -> None:
        self._devices = devices
        self.records = Records(bus, KV_TOKENS, TokenRecord, "token")

    def check(self, token: str) -> TokenRecord:
        """The record of a token. Raises TrunklineError `unauthorized`."""
        digest = digest_of(token)
        record = self.records.known.get(digest[:32])
        if record is None or not hmac.compare_digest(record.hash, digest) or not self._devices.stands(record.under):
            raise TrunklineError("unauthorized", "the token is unknown or was revoked")
        if record.expires is not None and record.expires <= time.time():
            raise TrunklineError("unauthorized", "the token has expired: ask the owner for another one")
        return record

    def stands(self, id: str) -> bool:
        """Whether a token is there and its device is, whatever its time."""
        record = self.records.known.get(id)
        return record is not None and self._devices.stands(record.under)

    def next_expiry(self) -> float:
        """When the next of the valid tokens expires that were made by hand, in seconds since 1970; infinite where none does."""
        return min((one.expires for one in self.list() if one.expires and one.via == "created"), default=math.inf)

    def list(self) -> "list[TokenRecord]":
        now = time.time()
        young = (one for one in self.records.known.values() if one.expires is None or one.expires > now)
        valid = (one for one in young if self._devices.stands(one.under))
        return sorted(valid, key=lambda record: record.created)

    async def create(
        self,
        actor: str,
        role: Role,
        *,
        scope: Scope = EVERYTHING,
        expires: float | None = None,
        label: str = "",
        device: str | None = None,
        parent: str | None = None,
        via: str = "created",
    ) -> tuple[str, TokenRecord]:
        """A new token, to be shown once, and its record."""
        token = new_token()
        digest = digest_of(token)
        record = TokenRecord(
            id=digest[:32],
            hash=digest,
            actor=actor,
            role=role,
            created=timestamp(),
            scope=scope,
            expires=expires,
            label=label,
            device=device,
            parent=parent,
            via=via,
        )
        await self.records.put(record.id, record)
        return token, record

    async def revoke(self, id: str) -> TokenRecord:
        """Raises TrunklineError `bad_params` for a token that does not exist."""
        record = self.records.known.get(id)
        if record is None:
            raise TrunklineError("bad_params", f"there is no token {id!r}; `token.list` names them", field="id")
        await self.records.delete(id)
        return record

    async def forget_expired(self) -> None:
        """Delete the records of tokens that have expired, or whose device is gone; other gateways may do the same at the same time."""
        now = time.time()
        for record in list(self.records.known.values()):
            if (record.expires is not None and record.expires <= now) or await self._orphaned(record):
                await self.records.delete(record.id)

    async def _orphaned(self, record: TokenRecord) -> bool:
        """A device that was not heard of here yet is no reason."""
        under = record.under
        return under is not None and not self._devices.stands(under) and not await self._devices.there(under)

    async def ensure_owner(self, path: Path) -> None:
        """Make the owner's token at the first start, and see to it that the log knows the hash of the one in `path`.

        The file is the owner's alone (0600).
        """
        token = await asyncio.to_thread(_read_or_make, path)
        try:
            self.check(token)
        except TrunklineError:
            digest = digest_of(token)
            record = TokenRecord(id=digest[:32], hash=digest, actor=OWNER, role="owner", created=timestamp())
            await self.records.put(record.id, record)


async def cursor_secret(bus: Bus) -> bytes:
    """The secret that cursors are sealed with: made once for a log, shared by its gateways."""
    while True:
        found = await kv.get(bus, KV_TOKENS, _CURSORS)
        if found is not None and found.value is not None:
            return found.value
        made = secrets.token_hex(32).encode()
        if await kv.update(bus, KV_TOKENS, _CURSORS, made, revision=found.revision if found else 0) is not None:
            return made


def digest_of(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _read_or_make(path: Path) -> str:
    try:
        token = path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        token = ""
    if not token:
        token = new_token()
        _write_private(path, token)
        log.info("owner_token_made", extra={"path": str(path)})
    return token


def _write_private(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        os.fchmod(descriptor, 0o600)
        file.write(f"{text}\n")

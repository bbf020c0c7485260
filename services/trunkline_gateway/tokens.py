"""Bearer tokens: only their sha256 is kept, in the bucket `trunk_tokens`, the same for every gateway of a log."""

import asyncio
import contextlib
import hashlib
import hmac
import logging
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from trunkline_bus import kv
from trunkline_bus.connection import Bus
from trunkline_gateway.roles import Role
from trunkline_wire import TrunklineError, encode, timestamp
from trunkline_wire.subjects import KV_TOKENS

log = logging.getLogger(__name__)

OWNER: Final = "owner"
_TOKEN: Final = "token"  # noqa: S105 - the first part of a key
_CURSORS: Final = "gateway.cursors"
_PREFIX: Final = "trk_"


class TokenRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A token as stored. `id` is the first half of the hash: enough to name it, useless to anyone."""

    id: str
    hash: str
    actor: str
    role: Role
    created: str


class Tokens:
    """The tokens of the log, watched: one that is revoked anywhere is refused everywhere at once."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._records: dict[str, TokenRecord] = {}
        self.ready = asyncio.Event()
        self.on_revoked: list[Callable[[str], None]] = []

    async def run(self) -> None:
        """Watch the bucket until cancelled."""
        while True:
            try:
                await self._watch()
            except TrunklineError as error:
                log.warning("tokens_restart", extra={"code": error.code})
                await asyncio.sleep(1)

    async def _watch(self) -> None:
        restarts = 0
        async with kv.watch(self._bus, KV_TOKENS, (f"{_TOKEN}.*",)) as reader:
            async for batch in reader.batches():
                if reader.restarts != restarts:
                    restarts = reader.restarts
                    self._records.clear()
                for stored in batch:
                    self._take(kv.entry(stored))
                if not batch:
                    self.ready.set()

    def _take(self, entry: kv.Entry) -> None:
        id_ = entry.key.partition(".")[2]
        if entry.value is None:
            if self._records.pop(id_, None) is not None:
                for tell in self.on_revoked:
                    tell(id_)
            return
        with contextlib.suppress(msgspec.MsgspecError):
            self._records[id_] = msgspec.json.decode(entry.value, type=TokenRecord)

    def check(self, token: str) -> TokenRecord:
        """The record of a token. Raises TrunklineError `unauthorized`."""
        digest = _digest(token)
        record = self._records.get(digest[:32])
        if record is None or not hmac.compare_digest(record.hash, digest):
            raise TrunklineError("unauthorized", "the token is unknown or was revoked")
        return record

    def valid(self, id: str) -> bool:
        return id in self._records

    def list(self) -> "list[TokenRecord]":
        return sorted(self._records.values(), key=lambda record: record.created)

    async def create(self, actor: str, role: Role) -> tuple[str, TokenRecord]:
        """A new token, to be shown once, and its record."""
        token = _PREFIX + secrets.token_urlsafe(32)
        record = await self._store(token, actor, role)
        return token, record

    async def revoke(self, id: str) -> None:
        """Raises TrunklineError `bad_params` for a token that does not exist."""
        if id not in self._records:
            raise TrunklineError("bad_params", f"there is no token {id!r}; `token.list` names them", field="id")
        await kv.delete(self._bus, KV_TOKENS, f"{_TOKEN}.{id}")

    async def ensure_owner(self, path: Path) -> None:
        """Make the owner's token at the first start, and see to it that the log knows the hash of the one in `path`.

        The file is the owner's alone (0600).
        """
        token = await asyncio.to_thread(_read_or_make, path)
        try:
            self.check(token)
        except TrunklineError:
            await self._store(token, OWNER, "owner")

    async def _store(self, token: str, actor: str, role: Role) -> TokenRecord:
        digest = _digest(token)
        record = TokenRecord(id=digest[:32], hash=digest, actor=actor, role=role, created=timestamp())
        await kv.put(self._bus, KV_TOKENS, f"{_TOKEN}.{record.id}", encode(record))
        self._records[record.id] = record
        return record


async def cursor_secret(bus: Bus) -> bytes:
    """The secret that cursors are sealed with: made once for a log, shared by its gateways."""
    while True:
        found = await kv.get(bus, KV_TOKENS, _CURSORS)
        if found is not None and found.value is not None:
            return found.value
        made = secrets.token_hex(32).encode()
        if await kv.update(bus, KV_TOKENS, _CURSORS, made, revision=found.revision if found else 0) is not None:
            return made


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _read_or_make(path: Path) -> str:
    try:
        token = path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        token = ""
    if not token:
        token = _PREFIX + secrets.token_urlsafe(32)
        _write_private(path, token)
        log.info("owner_token_made", extra={"path": str(path)})
    return token


def _write_private(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        os.fchmod(descriptor, 0o600)
        file.write(f"{text}\n")

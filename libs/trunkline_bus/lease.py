"""Leases in the bucket `trunk_leases`: they elect who may try. What they elect is fenced elsewhere, by the log."""

import asyncio
import contextlib
import logging
from typing import Any, Final

import msgspec

from trunkline_bus import leader, metrics
from trunkline_bus.connection import Bus
from trunkline_bus.mux import Lost, NoAnswer
from trunkline_bus.stored import Stored
from trunkline_wire import TrunklineError, subjects
from trunkline_wire.ids import uuid7_hex
from trunkline_wire.subjects import HEADER_EXPECTED

log = logging.getLogger(__name__)

STREAM: Final = f"KV_{subjects.KV_LEASES}"
_ENDED: Final = frozenset({"DEL", "PURGE"})


class LeaseInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A lease that somebody holds: who (`holder`), for how many seconds without renewal, at which revision."""

    key: str
    holder: dict[str, Any]
    token: str
    ttl_s: float
    revision: int


class _Value(msgspec.Struct, frozen=True, kw_only=True):
    holder: dict[str, Any]
    token: str
    ttl_s: float


async def read_lease(bus: Bus, key: str) -> LeaseInfo | None:
    """Who holds a lease, from the leader; None where nobody does."""
    return _info(key, await leader.last_of(bus.mux, STREAM, _subject(key)))


class Lease:
    """A lease on `key` (a session's id, a partition's name) for `ttl` seconds at a time, at most the bucket's 30.

    Once acquired it renews itself three times in a `ttl` until `release`. `lost` is set when another holder took it
    or `ttl` passed without a renewal; `renewed_at` is the loop time of the last one.
    """

    def __init__(self, bus: Bus, key: str, holder: dict[str, Any], ttl: float) -> None:
        self.key, self.ttl = key, ttl
        self.lost = asyncio.Event()
        self.renewed_at = 0.0
        self._bus = bus
        self._revision = 0
        self._value = _Value(holder=holder, token=uuid7_hex(), ttl_s=ttl)
        self._encoded = msgspec.json.encode(self._value)
        self._task: asyncio.Task[None] | None = None

    async def acquire(self) -> bool:
        """Take it if nobody holds it, and keep it renewed. False where somebody else does, or was quicker."""
        return await self._take(None)

    async def take_over(self, revision: int) -> bool:
        """Take it from a holder that is known to be dead; False where it was renewed since `revision` was read."""
        return await self._take(revision)

    async def release(self) -> None:
        """Give it back so that another can have it at once. A lease that was lost is left to its new holder."""
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.wait((self._task,))
        self._task = None
        if not self.lost.is_set():
            with contextlib.suppress(Lost, NoAnswer, TrunklineError):
                await self._send(self._revision, b"", {"KV-Operation": "DEL"})

    async def _take(self, dead: int | None) -> bool:
        if not await self._write(dead):
            return False
        self.lost.clear()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._keep(), name=f"lease {self.key}")
        return True

    async def _keep(self) -> None:
        """Renew until the lease is lost."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self.ttl / 3)
            try:
                async with asyncio.timeout_at(self.renewed_at + self.ttl):
                    mine = await self._write(None)
            except TimeoutError:
                return self._lose(f"no renewal for {loop.time() - self.renewed_at:.1f} s")
            except TrunklineError as error:
                return self._lose(error.message)
            if not mine:
                return self._lose("another holder has it")

    async def _write(self, dead: int | None) -> bool:
        """Write our value behind the last one, unless that is another holder's (but not the dead one's); waits for the server.

        The last value is read each time, so an unanswered write of ours, or one that a crash of the server forgot,
        is no reason to lose the lease.
        """
        loop, tries = asyncio.get_running_loop(), 0
        while True:
            last = await leader.last_of(self._bus.mux, STREAM, _subject(self.key))
            held = _info(self.key, last)
            if held is not None and held.token != self._value.token and held.revision != dead:
                return False
            begin = loop.time()
            with contextlib.suppress(Lost, NoAnswer):
                answer = await self._send(last.sequence if last is not None else 0, self._encoded, {})
                if isinstance(answer, int):
                    self._revision, self.renewed_at = answer, begin
                    return True
            tries += 1
            await leader.pause(self._bus.mux, tries)

    async def _send(self, expected: int, payload: bytes, headers: dict[str, str]) -> int | leader.Refusal:
        # Each write carries its own time to live: the bucket's is the longest.
        headers |= {HEADER_EXPECTED: str(expected), "Nats-TTL": f"{max(1, round(self.ttl))}s"}
        return await leader.publish(self._bus.mux, _subject(self.key), payload, headers)

    def _lose(self, why: str) -> None:
        metrics.LEASES_LOST.inc()
        log.warning("lease.lost", extra={"key": self.key, "reason": why})
        self.lost.set()


def _subject(key: str) -> str:
    return f"$KV.{subjects.KV_LEASES}.{key}"


def lease_of(stored: Stored) -> tuple[str, LeaseInfo | None]:
    """The key of a message of the bucket, and the lease as it stands since."""
    key = stored.subject.split(".", 2)[2]
    return key, _info(key, stored)


def _info(key: str, last: Stored | None) -> LeaseInfo | None:
    headers = (last.headers or {}) if last is not None else {}
    if last is None or headers.get("KV-Operation") in _ENDED or "Nats-Marker-Reason" in headers or not last.raw:
        return None
    value = msgspec.json.decode(last.raw, type=_Value)
    return LeaseInfo(key=key, holder=value.holder, token=value.token, ttl_s=value.ttl_s, revision=last.sequence)

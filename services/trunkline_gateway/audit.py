"""The audit: sign-ins, refusals and the owner's acts, on `trunk.sys.<kind>`. Never a secret."""

import asyncio
import logging
import time
from typing import Any, Final

from trunkline_bus import metrics
from trunkline_bus.requests import Requests
from trunkline_wire import SystemRecord, TrunklineError, timestamp
from trunkline_wire.ids import new_event_id

log = logging.getLogger(__name__)

MAX_WAITING: Final = 1_000
"""Records that wait for the log; beyond that they are counted and logged, not stored."""

TOKEN_USE_S: Final = 3600.0
AGAIN_S: Final = 1.0
REFUSALS: Final = 120
"""Refusals stored in a minute: whoever may not come in must not fill the log either."""


class Audit:
    """Run `run()` as a task; `note` never blocks."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self._queue: asyncio.Queue[SystemRecord] = asyncio.Queue(MAX_WAITING)
        self._minute = 0.0
        self._refusals = 0
        self._used: dict[str, float] = {}

    def refusal(self, actor: str, **details: Any) -> None:
        """Record a refusal; of a flood the first REFUSALS a minute, the rest is in the metrics."""
        now = time.monotonic()
        if now - self._minute >= 60:
            self._minute, self._refusals = now, 0
        self._refusals += 1
        if self._refusals <= REFUSALS:
            self.note("refusal", actor, **details)
        else:
            metrics.GATEWAY_AUDIT_DROPPED.inc()

    def token_used(self, token: str, actor: str) -> None:
        """Record that a token is used: once in TOKEN_USE_S, for programs send it with every request."""
        now = time.monotonic()
        if now - self._used.get(token, -TOKEN_USE_S) < TOKEN_USE_S:
            return
        if len(self._used) >= MAX_WAITING:
            self._used.clear()
        self._used[token] = now
        self.note("token", actor, act="used", token=token)

    def note(self, kind: str, actor: str, *, session: str | None = None, **details: Any) -> None:
        """Record an act. `details` are names, codes and addresses."""
        log.info("audit", extra={"kind": kind, "actor": actor, "session": session, **details})
        record = SystemRecord(
            id=new_event_id(), kind=kind, time=timestamp(), actor=actor, session=session, details=details
        )
        try:
            self._queue.put_nowait(record)
        except asyncio.QueueFull:
            metrics.GATEWAY_AUDIT_DROPPED.inc()

    async def run(self) -> None:
        """Write records until cancelled. What the log refuses is dropped; while nobody answers they wait."""
        while True:
            await self._store(await self._queue.get())

    async def _store(self, record: SystemRecord) -> None:
        while True:
            try:
                await self._requests.record(record)
                return
            except TrunklineError as error:
                log.warning("audit_not_stored", extra={"kind": record.kind, "code": error.code})
                if error.code != "log_unavailable":
                    metrics.GATEWAY_AUDIT_DROPPED.inc()
                    return
                await asyncio.sleep(AGAIN_S)

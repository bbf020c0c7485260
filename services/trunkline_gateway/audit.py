"""The audit: sign-ins, refusals and the owner's acts, on `trunk.sys.<kind>`. Never a secret."""

import asyncio
import logging
import time
from typing import Any, Final

import nats.errors
from nats.js.errors import Error as JetStreamError

from trunkline_bus import metrics
from trunkline_bus.connection import Bus
from trunkline_wire import SystemRecord, encode, subjects, timestamp
from trunkline_wire.ids import new_event_id

log = logging.getLogger(__name__)

MAX_WAITING: Final = 1_000
"""Records that wait for the log; beyond that they are counted and logged, not stored."""

REFUSALS: Final = 120
"""Refusals stored in a minute: whoever may not come in must not fill the log either."""


class Audit:
    """Run `run()` as a task; `note` never blocks."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._queue: asyncio.Queue[SystemRecord] = asyncio.Queue(MAX_WAITING)
        self._minute = 0.0
        self._refusals = 0

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
        """Write records until cancelled."""
        while True:
            record = await self._queue.get()
            try:
                await self._bus.js_cmd.publish(
                    subjects.system(record.kind), encode(record), headers={subjects.HEADER_ID: record.id}
                )
            except (nats.errors.Error, JetStreamError) as error:
                metrics.GATEWAY_AUDIT_DROPPED.inc()
                log.warning("audit_not_stored", extra={"kind": record.kind, "error": type(error).__name__})

"""The server's clock: expiries are decided by it, so that hosts, replicas and restarts agree, and no local clock counts."""

import asyncio
import datetime as dt
import logging
import time
from typing import Any

import nats.errors
from nats.js.errors import APIError

from trunkline_bus import jsapi
from trunkline_bus.connection import Bus
from trunkline_bus.patience import patiently
from trunkline_wire import TrunklineError, parse_time, subjects

log = logging.getLogger(__name__)

INTERVAL = 30.0


class ServerClock:
    """`now()` is what the server said last and the steady time since; off by at most half a round trip.

    This machine's wall clock may be wrong, and may jump. Until the first `read` it is all there is.
    """

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def now(self) -> dt.datetime:
        return dt.datetime.fromtimestamp(time.monotonic() + self._offset, dt.UTC)

    async def read(self, bus: Bus) -> None:
        """Ask until the server answers. Raises `log_unavailable` where nobody does for 15 s, and APIError."""
        before, answer, after = await patiently(bus.commands, lambda: self._ask(bus))
        stated = answer.get("ts")
        if stated is not None:
            self._offset = parse_time(_micros(stated)).timestamp() - (before + after) / 2

    async def _ask(self, bus: Bus) -> tuple[float, dict[str, Any], float]:
        """The answer, and the steady clock before and after it."""
        before = time.monotonic()
        answer = await jsapi.request(bus.js_cmd, f"STREAM.INFO.{subjects.COMMANDS}")
        return before, answer, time.monotonic()

    async def keep(self, bus: Bus) -> None:
        """Ask from time to time, until cancelled."""
        while True:
            try:
                await self.read(bus)
            except (TrunklineError, nats.errors.Error, APIError, OSError) as error:
                log.info("clock_unread", extra={"error": f"{type(error).__name__}: {error}"})
            await asyncio.sleep(INTERVAL)


def _micros(stamp: str) -> str:
    """The server writes nanoseconds, of which Python reads six digits."""
    head, dot, rest = stamp.rstrip("Z").partition(".")
    return f"{head}{dot}{rest[:6]}+00:00"

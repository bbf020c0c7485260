"""How full the log is: at NEARLY_FULL no new turn begins, at ALMOST_FULL running ones end; the rest is for decisions and endings."""

import asyncio
import contextlib
import logging
from typing import Final

import nats.errors
from nats.js import JetStreamContext

from trunkline_bus import jsapi, metrics
from trunkline_wire import TrunklineError, subjects

log = logging.getLogger(__name__)

NEARLY_FULL: Final = 0.85
ALMOST_FULL: Final = 0.95
EVERY_S: Final = 10.0
"""Seconds between two looks: a log of 8 GiB does not fill by a tenth in that time."""


class Capacity:
    """`fill` is the share of EVENTS' `max_bytes` in use, 0 to 1, as last seen; 0 where there is no limit."""

    def __init__(self) -> None:
        self.fill = 0.0
        self._task: asyncio.Task[None] | None = None

    @property
    def condition(self) -> TrunklineError | None:
        """`log_full` (with `fill` in its details) from NEARLY_FULL on."""
        if self.fill < NEARLY_FULL:
            return None
        return TrunklineError(
            "log_full",
            f"the log is {self.fill:.0%} full: raise its max_bytes with `trunkline topology apply`, or erase sessions",
            fill=round(self.fill, 3),
        )

    def watch(self, js: JetStreamContext) -> None:
        """Look now and every EVERY_S seconds until `close`; a second call changes nothing."""
        if self._task is None:
            self._task = asyncio.create_task(self._watch(js), name="capacity of the log")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    async def look(self, js: JetStreamContext) -> float:
        """Ask the leader. Raises what `jsapi.request` raises; a log that does not exist yet is empty."""
        info = await jsapi.stream_info(js, subjects.EVENTS)
        limit = info["config"]["max_bytes"] if info is not None else -1
        self.fill = info["state"]["bytes"] / limit if info is not None and limit > 0 else 0.0
        metrics.LOG_FILL.set(self.fill)
        return self.fill

    async def _watch(self, js: JetStreamContext) -> None:
        before = 0.0
        while True:
            with contextlib.suppress(nats.errors.Error):  # unreachable or electing: the last value stands
                fill = await self.look(js)
                if fill >= NEARLY_FULL > before:
                    log.warning("log.nearly_full", extra={"fill": round(fill, 3)})
                before = fill
            await asyncio.sleep(EVERY_S)

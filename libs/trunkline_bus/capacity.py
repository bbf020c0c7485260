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
STORE: Final = "trunk-store"
"""Metadata of EVENTS: bytes that the server's store may hold, all streams together; absent where nobody said so."""
EVERY_S: Final = 2.0
"""Seconds between two looks: few logs fill by a tenth in that time."""


class Capacity:
    """`fill` is the share in use, 0 to 1, as last seen; 0 where there is no limit.

    It is the larger one of two: of EVENTS' `max_bytes`, and of what the server's store may hold (`STORE`).
    """

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
            f"the log is {self.fill:.0%} full: raise its max_bytes with `trunkline topology apply`, erase sessions, "
            "or give its disk more room and start Trunkline anew",
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
        fill = 0.0
        if info is not None:
            config = info["config"]
            fill = _share(info["state"]["bytes"], config["max_bytes"])
            store = int((config.get("metadata") or {}).get(STORE, "0"))
            if store:
                fill = max(fill, _share((await jsapi.request(js, "INFO"))["storage"], store))
        self.fill = fill
        metrics.LOG_FILL.set(fill)
        return fill

    async def _watch(self, js: JetStreamContext) -> None:
        before = 0.0
        while True:
            with contextlib.suppress(nats.errors.Error):  # unreachable or electing: the last value stands
                fill = await self.look(js)
                if fill >= NEARLY_FULL > before:
                    log.warning("log.nearly_full", extra={"fill": round(fill, 3)})
                before = fill
            await asyncio.sleep(EVERY_S)


def _share(used: int, limit: int) -> float:
    return used / limit if limit > 0 else 0.0

"""How full the log is: near its limit no new turn may begin, so that what runs can still be brought to an end."""

import time
from typing import Final

from trunkline_bus import jsapi
from trunkline_bus.connection import Bus
from trunkline_bus.patience import patiently
from trunkline_wire import TrunklineError, subjects

NEW_TURNS_UP_TO: Final = 0.85
_FRESH_S: Final = 5.0


class Capacity:
    """The share of the log's, or its store's, limit that is used; asked of the server at most every few seconds."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._used = 0.0
        self._asked: float | None = None

    async def require_room(self) -> None:
        """Raises TrunklineError `log_full` when new turns have to be refused."""
        now = time.monotonic()
        if self._asked is None or now - self._asked > _FRESH_S:
            self._used = await self._measure()
            self._asked = now
        if self._used >= NEW_TURNS_UP_TO:
            raise TrunklineError(
                "log_full",
                f"the log is {self._used:.0%} full and new turns are refused from {NEW_TURNS_UP_TO:.0%}: "
                "give it a larger max_bytes, or erase old sessions",
                used=round(self._used, 3),
            )

    async def _measure(self) -> float:
        info = await patiently(self._bus.commands, lambda: jsapi.stream_info(self._bus.js_cmd, subjects.EVENTS))
        if info is None:
            return 0.0
        limit = info["config"].get("max_bytes", -1)
        return info["state"]["bytes"] / limit if limit > 0 else 0.0

"""What hinders the log from taking a message: told to the owner while it lasts, an error once it has lasted too long."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from trunkline_wire import TrunklineError

log = logging.getLogger(__name__)

GIVE_UP_AFTER_S: Final = 600.0
"""How long a log may refuse (full, unwritable) before the write fails. An unreachable server is waited for without end."""
UNWRITABLE_AFTER_S: Final = 10.0
"""How long writes may go unanswered on a connection that stands before the log is called unwritable."""

Condition = Callable[[TrunklineError | None], None]


class Obstacles:
    """The obstacles of one write: since when each stands, and which one its owner was told of."""

    def __init__(self, report: Condition) -> None:
        self._report = report
        self._reported: str | None = None
        self._since: dict[str, float] = {}

    def stands(self, code: str, message: str, *, already: float = 0.0) -> None:
        """Note that it still stands (`already` seconds before the first time); silence counts after UNWRITABLE_AFTER_S.

        Raises TrunklineError `code` after GIVE_UP_AFTER_S.
        """
        now = asyncio.get_running_loop().time()
        since = self._since.setdefault(code, now - already)
        error = TrunklineError(code, message, for_s=round(now - since, 1))
        if now - since >= GIVE_UP_AFTER_S:
            raise error
        patience = UNWRITABLE_AFTER_S if already else 0.0
        if now - since >= patience and self._reported != code:
            log.warning("log.hindered", extra={"code": code, "reason": message})
            self._reported = code
            self._report(error)

    def forget(self, code: str) -> None:
        """It no longer stands, though the write has not succeeded yet."""
        self._since.pop(code, None)

    def gone(self) -> None:
        """The write succeeded."""
        self._since.clear()
        if self._reported is not None:
            self._reported = None
            self._report(None)

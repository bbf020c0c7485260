"""How far a consumer of the log is behind, for metrics."""

import contextlib
import time
from collections.abc import Callable, Generator, Sequence
from typing import Final

from trunkline_bus import metrics
from trunkline_bus.stored import Stored

_NS: Final = 1_000_000_000


class Lag:
    """Of the consumer `name`; `pending` says how many messages wait for it, as far as it knows.

    `whole` is what it is a part of: delays are counted for all parts together.
    """

    def __init__(self, name: str, pending: Callable[[], int], whole: str | None = None) -> None:
        self._name = name
        self._pending = pending
        self._newest_ns: int | None = None
        self._delay = metrics.READER_DELAY.labels(whole or name)
        metrics.READER_LAG_EVENTS.labels(name).set_function(pending)
        metrics.READER_LAG_SECONDS.labels(name).set_function(self.seconds)

    def took(self, batch: Sequence[Stored], *, live: bool) -> None:
        """A batch was taken; `live` where it is no backlog of a time when nobody read."""
        self._newest_ns = batch[-1].time_ns
        if live:
            self._delay.observe(max(0.0, time.time() - batch[0].time_ns / _NS))

    def seconds(self) -> float:
        if self._newest_ns is None or not self._pending():
            return 0.0
        return max(0.0, time.time() - self._newest_ns / _NS)

    def close(self) -> None:
        """It reads no more, here: what is behind is another's."""
        for gauge in (metrics.READER_LAG_EVENTS, metrics.READER_LAG_SECONDS):
            gauge.remove(self._name)


@contextlib.contextmanager
def lag_of(name: str, pending: Callable[[], int], whole: str | None = None) -> Generator[Lag]:
    """A Lag for the length of a block."""
    lag = Lag(name, pending, whole)
    try:
        yield lag
    finally:
        lag.close()

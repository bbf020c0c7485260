"""How much a client may send: token buckets of requests and of bytes, one pair for each who asks. No clock of its own."""

from collections import OrderedDict
from typing import Final

from trunkline_wire import TrunklineError

MAX_CLIENTS: Final = 10_000


class Bucket:
    """`rate` a second on the average, `burst` at once; times in seconds of one clock."""

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self._rate = rate
        self._burst = burst
        self._level = burst
        self._at = now

    def wait(self, amount: float, now: float) -> float:
        """Seconds until `amount` may be taken; 0 for now. What is more than `burst` needs a full bucket."""
        self._level = min(self._burst, self._level + (now - self._at) * self._rate)
        self._at = now
        return max(0.0, (min(amount, self._burst) - self._level) / self._rate)

    def take(self, amount: float) -> None:
        """After `wait` gave 0. A large amount leaves a debt."""
        self._level -= amount


class Limits:
    """`messages` and `bytes` a second, and `burst`, how many seconds' worth may come at once; a rate of 0 is no limit."""

    def __init__(self, messages: float, bytes: float, burst: float) -> None:
        self._rates = (messages, bytes)
        self._burst = burst
        self._clients: OrderedDict[str, list[Bucket | None]] = OrderedDict()

    def take(self, client: str, size: int, now: float) -> None:
        """Count a request of `size` bytes. Raises TrunklineError `rate_limited`, with `retry_after` in seconds."""
        buckets = self._clients.get(client)
        if buckets is None:
            buckets = [Bucket(rate, rate * self._burst, now) if rate else None for rate in self._rates]
            self._clients[client] = buckets
            if len(self._clients) > MAX_CLIENTS:
                self._clients.popitem(last=False)
        self._clients.move_to_end(client)
        wanted = [(bucket, amount) for bucket, amount in zip(buckets, (1, size), strict=True) if bucket is not None]
        wait = max((bucket.wait(amount, now) for bucket, amount in wanted), default=0.0)
        if wait > 0:
            raise TrunklineError(
                "rate_limited", f"too many requests: try again in {wait:.1f} s", retry_after=round(wait, 3)
            )
        for bucket, amount in wanted:
            bucket.take(amount)

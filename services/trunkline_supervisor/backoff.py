"""When a child that died may start again. Pure: the caller brings the clock."""

import msgspec

FIRST_DELAY = 0.2
LONGEST_DELAY = 5.0
"""Short enough that a service is back within ten seconds however often it was killed."""
HEALTHY_RUN = 10.0
"""Seconds after which a run counts as healthy: the next death is the first again."""

LOOP = 5
"""This many deaths in a row, none after a healthy run, are a crash loop."""

GIVE_UP = 20
"""This many deaths in a row, about a minute and a half of them, and it is not started again."""


class Restarts(msgspec.Struct, frozen=True):
    """The deaths in a row so far."""

    deaths: int = 0

    def died(self, ran: float) -> "Restarts":
        """After one more death; `ran` is how long the child lived, in seconds."""
        return Restarts(1 if ran >= HEALTHY_RUN else self.deaths + 1)

    @property
    def delay(self) -> float:
        """Seconds to wait before the next start: 0.2, 0.4, 0.8 … 5."""
        return min(LONGEST_DELAY, FIRST_DELAY * 2 ** max(0, self.deaths - 1)) if self.deaths else 0.0

    @property
    def looping(self) -> bool:
        return self.deaths >= LOOP

    @property
    def hopeless(self) -> bool:
        return self.deaths >= GIVE_UP

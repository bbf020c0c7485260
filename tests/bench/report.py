"""A figure and the limit it is held against, measured in the same run."""

import resource
import statistics
import time
from collections.abc import Awaitable, Callable

import msgspec


class Figure(msgspec.Struct, kw_only=True):
    """`value` and `limit` in `unit`. `ratio` is ours to the limit; `goal` says which side of it is good, None: none does."""

    name: str
    unit: str
    value: float
    limit: float
    limit_name: str
    goal: float | None
    at_least: bool = False
    note: str = ""

    @property
    def ratio(self) -> float:
        return self.value / self.limit if self.limit else float("inf")

    @property
    def good(self) -> bool:
        if self.goal is None:
            return True
        return self.ratio >= self.goal if self.at_least else self.ratio <= self.goal

    def line(self) -> str:
        goal = "" if self.goal is None else f"; goal {'>=' if self.at_least else '<='} {self.goal}"
        mark = "   " if self.goal is None else "ok " if self.good else "-- "
        return (
            f"{mark}{self.name:<54} {self.value:>12,.2f} {self.unit:<10} {self.ratio:>6.2f} of {self.limit_name}"
            f" ({self.limit:,.2f}){goal}{'; ' + self.note if self.note else ''}"
        )


class Measured(msgspec.Struct):
    """Wall seconds and the CPU seconds of this process."""

    wall: float
    cpu: float


def cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def timed(work: Callable[[], Awaitable[object]]) -> Measured:
    wall, spent = time.perf_counter(), cpu()
    await work()
    return Measured(time.perf_counter() - wall, cpu() - spent)


async def best(work: Callable[[], Awaitable[object]], rounds: int = 3) -> Measured:
    """The round with the median wall time."""
    return median([await timed(work) for _ in range(rounds)])


async def turns(
    limit: Callable[[], Awaitable[object]], ours: Callable[[], Awaitable[object]], rounds: int = 5
) -> tuple[Measured, Measured]:
    """The median rounds of the limit and of ours, which take turns: what else the machine does meets both alike."""
    pairs = [(await timed(limit), await timed(ours)) for _ in range(rounds)]
    return median([pair[0] for pair in pairs]), median([pair[1] for pair in pairs])


def median(runs: list[Measured]) -> Measured:
    return sorted(runs, key=lambda run: run.wall)[len(runs) // 2]


def percentile(values: list[float], share: float) -> float:
    """The value below which `share` (0 to 1) of the values lie."""
    if len(values) == 1:
        return values[0]
    return statistics.quantiles(values, n=1000, method="inclusive")[min(998, max(0, round(share * 1000) - 1))]

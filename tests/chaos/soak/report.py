"""Figures of a run, as data and as lines for people."""

import os
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from trunkline_testkit.chaos.evidence import Violation


@dataclass
class Report:
    """`recoveries` are seconds by part. `slow` are recoveries that were within their limit only by the machine's load."""

    seed: int
    on: str
    kills: Counter[str] = field(default_factory=Counter[str])
    others: Counter[str] = field(default_factory=Counter[str])
    recoveries: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    counts: Counter[str] = field(default_factory=Counter[str])
    violations: list[Violation] = field(default_factory=list[Violation])
    slow: list[str] = field(default_factory=list[str])
    seconds: float = 0.0

    @property
    def killed(self) -> int:
        return self.kills.total()

    def add(self, other: "Report") -> None:
        """Takes the figures of another run in."""
        self.kills += other.kills
        self.others += other.others
        self.counts += other.counts
        self.violations += other.violations
        self.slow += other.slow
        self.seconds += other.seconds
        for part, times in other.recoveries.items():
            self.recoveries[part] += times

    def line(self) -> str:
        """Progress."""
        last = [time for times in self.recoveries.values() for time in times]
        return (
            f"{self.killed:>5} kills, {self.seconds:>5.0f} s, {self.counts['events']:>6} events checked, "
            f"recovery p50 {percentile(last, 0.5):.2f} max {max(last, default=0):.2f} s, "
            f"load {os.getloadavg()[0]:.1f}, violations {len(self.violations)}"
        )

    def text(self) -> str:
        """The whole report."""
        lines = [
            f"{self.on}, seed {self.seed}: {self.killed} kills in {self.seconds:.0f} s",
            f"{'part':<16}{'kills':>6}{'other':>7}{'p50 s':>8}{'p95 s':>8}{'max s':>8}",
        ]
        for part in sorted({*self.kills, *self.others}):
            times = self.recoveries[part]
            lines.append(
                f"{part:<16}{self.kills[part]:>6}{self.others[part]:>7}{percentile(times, 0.5):>8.2f}"
                f"{percentile(times, 0.95):>8.2f}{max(times, default=0):>8.2f}"
            )
        lines.append(", ".join(f"{name} {count}" for name, count in sorted(self.counts.items())))
        lines += [f"slow by load: {one}" for one in self.slow]
        lines.append(f"violations {len(self.violations)}")
        return "\n".join(lines)


def percentile(values: list[float], share: float) -> float:
    """0 for no values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0

"""Figures of a run, as data and as lines for people."""

import os
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from trunkline_testkit.chaos.evidence import Violation


@dataclass
class Report:
    """`recoveries` are seconds by part, for other faults than kills by `part (kind)`.

    `slow` are recoveries that were within their limit only by the machine's load.
    """

    seed: int
    on: str
    killed: int = 0
    recoveries: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    counts: Counter[str] = field(default_factory=Counter[str])
    violations: list[Violation] = field(default_factory=list[Violation])
    slow: list[str] = field(default_factory=list[str])
    seconds: float = 0.0

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
            f"{'killed':<22}{'times':>6}{'p50 s':>8}{'p95 s':>8}{'max s':>8}",
        ]
        for name, times in sorted(self.recoveries.items()):
            shares = f"{percentile(times, 0.5):>8.2f}{percentile(times, 0.95):>8.2f}{max(times):>8.2f}"
            lines.append(f"{name:<22}{len(times):>6}{shares}")
        lines.append(", ".join(f"{name} {count}" for name, count in sorted(self.counts.items())))
        lines += [f"slow by load: {one}" for one in self.slow]
        lines.append(f"violations {len(self.violations)}")
        return "\n".join(lines)


def percentile(values: list[float], share: float) -> float:
    """0 for no values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0

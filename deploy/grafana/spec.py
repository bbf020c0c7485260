"""What a dashboard consists of, before it is Grafana's JSON: questions to Prometheus with a title and a unit."""

from typing import Literal

import msgspec

Unit = Literal["short", "s", "bytes", "Bps", "reqps", "ops", "percentunit", "currencyUSD", "dtdurations"]
Kind = Literal["timeseries", "stat"]


class Query(msgspec.Struct, frozen=True):
    """`legend` names a series by its labels, as `{{label}}`."""

    expr: str
    legend: str = ""


class Panel(msgspec.Struct, frozen=True):
    title: str
    queries: tuple[Query, ...]
    unit: Unit = "short"
    kind: Kind = "timeseries"
    says: str = ""
    """What to look for."""


class Board(msgspec.Struct, frozen=True):
    """`uid` is the file's name too. Rows are titles with the panels below them."""

    uid: str
    title: str
    rows: tuple[tuple[str, tuple[Panel, ...]], ...]

    @property
    def panels(self) -> tuple[Panel, ...]:
        return tuple(panel for _, panels in self.rows for panel in panels)


def panel(title: str, expr: str, legend: str = "", unit: Unit = "short", says: str = "") -> Panel:
    """A panel of one question over time."""
    return Panel(title, (Query(expr, legend),), unit, "timeseries", says)


def stat(title: str, expr: str, unit: Unit = "short", says: str = "") -> Panel:
    """One number, as it is now."""
    return Panel(title, (Query(expr),), unit, "stat", says)


def rate(title: str, counter: str, by: str, unit: Unit = "ops", says: str = "") -> Panel:
    """How often something happens, by the labels in `by` (one or more, with commas)."""
    legend = " ".join(f"{{{{{label.strip()}}}}}" for label in by.split(","))
    return panel(title, f"sum by ({by}) (rate({counter}[$__rate_interval]))", legend, unit, says)


def quantiles(title: str, histogram: str, by: str = "", says: str = "") -> Panel:
    """The median, and what one in twenty and one in a hundred waits at least; seconds."""
    labels = f"le, {by}" if by else "le"
    names = f" {{{{{by}}}}}" if by else ""
    return Panel(
        title,
        tuple(
            Query(
                f"histogram_quantile({q}, sum by ({labels}) (rate({histogram}_bucket[$__rate_interval])))",
                f"{p}{names}",
            )
            for q, p in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"))
        ),
        "s",
        "timeseries",
        says,
    )

"""`python -m tests.integration.observability.pictures DIRECTORY`: what the dashboards show of a run under load, as SVG."""

import asyncio
import html
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from deploy.grafana.boards import BOARDS
from deploy.grafana.spec import Board, Panel
from tests.integration.observability.prometheus import Prometheus
from tests.integration.observability.stage import stage

_WIDTH: Final = 420
_HEIGHT: Final = 210
_COLUMNS: Final = 3
_COLORS: Final = ("#3b7dd8", "#d9822b", "#2e9e5b", "#c23030", "#8f4bb8", "#6b7280", "#0aa2a2", "#b0891c")
_LEGEND: Final = 4
Lines = list[tuple[str, list[tuple[float, float]]]]


async def lines_of(metrics: Prometheus, panel: Panel) -> Lines:
    """Every series of a panel with its name and its points."""
    lines: Lines = []
    for query in panel.queries:
        for series in await metrics.over_time(query.expr.replace("$__rate_interval", "30s")):
            name = query.legend
            for label, value in series["metric"].items():
                name = name.replace(f"{{{{{label}}}}}", value)
            points = [(float(at), float(value)) for at, value in series["values"] if value not in {"+Inf", "-Inf"}]
            if points:
                lines.append((name or panel.title, points))
    return lines


def draw(title: str, unit: str, lines: Lines, x: float, y: float) -> Iterator[str]:
    """One panel with its upper left corner at `x`, `y`."""
    yield f'<g transform="translate({x},{y})"><rect width="{_WIDTH}" height="{_HEIGHT}" rx="4" fill="#fff" stroke="#d5d9e0"/>'
    yield f'<text x="10" y="18" font-weight="bold">{html.escape(title)}</text>'
    values = [value for _, points in lines for _, value in points]
    if not values:
        yield '<text x="10" y="100" fill="#888">nothing happened</text></g>'
        return
    top = max(*values, 1e-9) * 1.05
    first = min(points[0][0] for _, points in lines)
    last = max(*(points[-1][0] for _, points in lines), first + 1)
    left, right, up, down = 60, _WIDTH - 10, 28, _HEIGHT - 62
    for share in (0.0, 0.5, 1.0):
        at = down - (down - up) * share
        yield f'<line x1="{left}" x2="{right}" y1="{at}" y2="{at}" stroke="#eceff3"/>'
        yield f'<text x="{left - 4}" y="{at + 4}" text-anchor="end" fill="#666">{top * share:.3g}</text>'
    yield f'<text x="{right}" y="18" text-anchor="end" fill="#888">{unit}</text>'
    for number, (name, points) in enumerate(lines):
        color = _COLORS[number % len(_COLORS)]
        path = " ".join(
            f"{left + (right - left) * (at - first) / (last - first):.1f},{down - (down - up) * max(0.0, value) / top:.1f}"
            for at, value in points
        )
        yield f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="1.5"/>'
        if number < _LEGEND:
            place = down + 18 + 14 * (number // 2), 10 + (number % 2) * (_WIDTH / 2)
            yield f'<text x="{place[1]}" y="{place[0]}" fill="{color}">{html.escape(name[:36])} {points[-1][1]:.3g}</text>'
    if len(lines) > _LEGEND:
        yield f'<text x="10" y="{_HEIGHT - 8}" fill="#888">and {len(lines) - _LEGEND} more</text>'
    yield "</g>"


async def picture(metrics: Prometheus, board: Board) -> str:
    parts: list[str] = []
    y = 40.0
    for title, panels in board.rows:
        parts.append(f'<text x="10" y="{y + 14}" font-size="14">{html.escape(title)}</text>')
        y += 24
        for row in _rows(panels):
            for column, panel in enumerate(row):
                lines = await lines_of(metrics, panel)
                parts += draw(panel.title, panel.unit, lines, 10 + column * (_WIDTH + 10), y)
            y += _HEIGHT + 10
    width, height = 10 + _COLUMNS * (_WIDTH + 10), y + 10
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="11">'
    ground = f'<rect width="{width}" height="{height}" fill="#f4f5f8"/><text x="10" y="26" font-size="18">{board.title}</text>'
    return "\n".join([head, ground, *parts, "</svg>"]) + "\n"


def _rows(panels: tuple[Panel, ...]) -> Iterator[tuple[Panel, ...]]:
    return (panels[start : start + _COLUMNS] for start in range(0, len(panels), _COLUMNS))


async def main(out: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="trunkline-pictures-") as name:
        directory = Path(name)
        async with stage(directory) as up:
            for _ in range(2):
                await up.load(directory / "work")
                await up.settled(3)
            for board in BOARDS:
                drawn = await picture(up.metrics, board)
                await asyncio.to_thread((out / f"{board.uid}.svg").write_text, drawn)
    sys.stdout.write(f"{len(BOARDS)} pictures in {out}\n")


if __name__ == "__main__":
    place = Path(sys.argv[1] if len(sys.argv) > 1 else "deploy/grafana/pictures")
    place.mkdir(parents=True, exist_ok=True)
    asyncio.run(main(place))

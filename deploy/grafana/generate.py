"""`python -m deploy.grafana.generate` writes the dashboards as Grafana's JSON, and the alerts as a PrometheusRule."""

import json
from pathlib import Path
from typing import Any, Final

import yaml
from deploy.grafana.boards import BOARDS
from deploy.grafana.spec import Board, Panel
from grafana_foundation_sdk.builders import dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import DashboardCursorSync, DataSourceRef

DASHBOARDS: Final = Path(__file__).parent / "dashboards"
PROMETHEUS: Final = Path(__file__).parents[1] / "prometheus"
_SOURCE: Final = DataSourceRef(type_val="prometheus", uid="${datasource}")
_COLUMNS: Final = 24


def render(board: Board) -> str:
    """The dashboard as Grafana reads it."""
    made = (
        dashboard.Dashboard(board.title)
        .uid(board.uid)
        .tags(["trunkline"])
        .timezone("browser")
        .refresh("30s")
        .time("now-1h", "now")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .readonly()
        .with_variable(dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
        .link(
            dashboard.DashboardLink("Trunkline")
            .tags(["trunkline"])
            .as_dropdown(True)
            .include_vars(True)
            .keep_time(True)
        )
    )
    for title, panels in board.rows:
        made = made.with_row(dashboard.Row(title))
        for one in panels:
            made = made.with_panel(_panel(one, width=_COLUMNS // 6 if one.kind == "stat" else _COLUMNS // 3))
    return json.dumps(made.build(), cls=JSONEncoder, indent=2, sort_keys=True) + "\n"


def _panel(one: Panel, width: int) -> stat.Panel | timeseries.Panel:
    made: stat.Panel | timeseries.Panel
    made = stat.Panel() if one.kind == "stat" else timeseries.Panel().fill_opacity(10).min(0)
    made = made.title(one.title).description(one.says).unit(one.unit).datasource(_SOURCE).height(8).span(width)
    for number, query in enumerate(one.queries):
        question = prometheus.Dataquery().expr(query.expr).legend_format(query.legend).ref_id(chr(ord("A") + number))
        made = made.with_target(question.instant() if one.kind == "stat" else question.range().exemplar(True))
    return made


def prometheus_rule() -> str:
    """The alerts of `deploy/prometheus/rules/` for the Prometheus operator."""
    groups: list[Any] = []
    for file in sorted((PROMETHEUS / "rules").glob("*.yml")):
        groups += yaml.safe_load(file.read_text())["groups"]
    rule = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "trunkline"},
        "spec": {"groups": groups},
    }
    return "# Written by `just dashboards` from rules/.\n" + yaml.safe_dump(rule, sort_keys=False, width=120)


def files() -> dict[Path, str]:
    """All that is generated, by its place."""
    made = {DASHBOARDS / f"{board.uid}.json": render(board) for board in BOARDS}
    return {**made, PROMETHEUS / "prometheusrule.yaml": prometheus_rule()}


def main() -> None:
    DASHBOARDS.mkdir(exist_ok=True)
    for path, text in files().items():
        path.write_text(text)


if __name__ == "__main__":
    main()

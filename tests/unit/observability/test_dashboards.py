"""Dashboards, alerts and runbooks against the registry of metrics and against each other."""

import re
from pathlib import Path
from typing import Any, Final

import click
import pytest
import yaml
from deploy.grafana.boards import BOARDS
from deploy.grafana.generate import files

from trunkline_bus.metrics import catalogue
from trunkline_cli.root import cli

DEPLOY: Final = Path(__file__).parents[3] / "deploy"
OF_OTHERS: Final = {
    "up": ("job", "instance"),
    "process_cpu_seconds_total": (),
    "process_resident_memory_bytes": (),
    "process_open_fds": (),
    "trunkline:budget_usd_per_day": (),
}
"""What Prometheus itself, its client library and our own rules add."""
OF_TARGETS: Final = {"job", "instance", "le", "whole"}
UNSHOWN: Final = {
    "trunkline_service_info": "names versions, for those who look",
}
_NAME: Final = re.compile(r"\b(?:trunkline|process)[a-z0-9_:]*\b|\bup\b")
_LABELS: Final = re.compile(r"\b(?:by|on|without) \(([^)]*)\)")
_MATCHED: Final = re.compile(r"([a-z_]+)=~?\"")


def rules() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for file in sorted((DEPLOY / "prometheus" / "rules").glob("*.yml")):
        for group in yaml.safe_load(file.read_text())["groups"]:
            found += group["rules"]
    return found


def scaling() -> list[tuple[str, str]]:
    """What autoscalers ask."""
    found: list[tuple[str, str]] = []
    for file in sorted((DEPLOY / "kubernetes").rglob("*.yaml")):
        for one in yaml.safe_load_all(file.read_text()):
            for trigger in ((one or {}).get("spec") or {}).get("triggers") or []:
                found.append((file.name, trigger["metadata"]["query"]))  # noqa: PERF401  # three loops read better
    return found


ALERTS: Final = [rule for rule in rules() if "alert" in rule]
EXPRESSIONS: Final = [
    *(
        (f"{board.uid}: {panel.title}", query.expr)
        for board in BOARDS
        for panel in board.panels
        for query in panel.queries
    ),
    *((rule["alert"], rule["expr"]) for rule in ALERTS),
    *scaling(),
]


def known() -> dict[str, tuple[str, ...]]:
    """Every series' name with its labels."""
    ours = {sample: metric.labels for metric in catalogue().values() for sample in metric.samples}
    return {**ours, **OF_OTHERS}


def test_every_expression_asks_for_metrics_and_labels_that_exist() -> None:
    series = known()
    for where, expr in EXPRESSIONS:
        names = set(_NAME.findall(expr))
        assert names, where
        assert names <= set(series), (where, names - set(series))
        labels = {label.strip() for part in _LABELS.findall(expr) for label in part.split(",") if label.strip()}
        labels |= set(_MATCHED.findall(expr))
        assert labels <= OF_TARGETS.union(*(series[name] for name in names)), (where, expr)


def test_every_metric_is_on_a_dashboard() -> None:
    shown = {name for _, expr in EXPRESSIONS for name in _NAME.findall(expr)}
    missing = {metric.name for metric in catalogue().values() if not shown.intersection(metric.samples)}
    assert missing <= set(UNSHOWN), missing - set(UNSHOWN)


def test_no_label_of_the_registry_names_a_session_or_a_person() -> None:
    labels = {label for metric in catalogue().values() for label in metric.labels}
    assert not labels & {"session", "turn", "item", "ask", "user", "actor", "cwd", "command"}


def test_the_registry_says_what_each_metric_is() -> None:
    for metric in catalogue().values():
        assert metric.name.startswith("trunkline_"), metric
        assert metric.help.endswith("."), metric
        assert (metric.kind == "counter") == metric.name.endswith("_total"), metric


def test_titles_are_unique_on_a_board() -> None:
    for board in BOARDS:
        for title, panels in board.rows:
            titles = [panel.title for panel in panels]
            assert len(set(titles)) == len(titles), (board.uid, title)


def test_what_is_generated_is_current() -> None:
    for path, text in files().items():
        assert path.read_text() == text, f"{path.name} is old: run `just dashboards`"
    there = {path.name for path in (DEPLOY / "grafana" / "dashboards").iterdir()}
    assert there == {path.name for path in files() if path.suffix == ".json"}
    listed = yaml.safe_load((DEPLOY / "grafana" / "kustomization.yaml").read_text())["configMapGenerator"][0]["files"]
    assert {Path(name).name for name in listed} == there


def test_each_alert_has_a_runbook_and_each_runbook_an_alert() -> None:
    named = {DEPLOY.parent / rule["annotations"]["runbook_url"]: rule["alert"] for rule in ALERTS}
    assert set(named) == set((DEPLOY / "runbooks").glob("*.md"))
    for path, alert in named.items():
        assert path.read_text().startswith(f"# {alert}\n"), path
    for rule in ALERTS:
        assert {"summary", "description"} <= set(rule["annotations"]), rule["alert"]
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}, rule["alert"]


def commands_in(text: str) -> list[list[str]]:
    return [found.split() for found in re.findall(r"`trunkline ([^`]*)`", text)]


@pytest.mark.parametrize("path", sorted((DEPLOY / "runbooks").glob("*.md")), ids=lambda path: path.stem)
def test_runbooks_name_commands_and_files_that_exist(path: Path) -> None:
    for words in commands_in(path.read_text()):
        command: click.Command = cli
        for number, word in enumerate(words):
            if not isinstance(command, click.Group):
                options = {name for one in command.params for name in one.opts}
                assert {word for word in words[number:] if word.startswith("--")} <= options, words
                break
            found = command.get_command(click.Context(command), word)
            assert found is not None, (path.name, words)
            command = found
    for name in re.findall(r"`([a-z-]+\.md)`", path.read_text()):
        assert (path.parent / name).exists(), name

"""Prometheus' own tools on what it is given: syntax, and which alert fires when."""

import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

DEPLOY: Final = Path(__file__).parents[3] / "deploy"
CASES: Final = Path(__file__).with_name("alerts.yml")

needs_promtool: Final = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="needs promtool: apt-get install --no-install-recommends prometheus"
)


def run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_the_configuration_and_its_rules_are_valid() -> None:
    run("promtool", "check", "config", str(DEPLOY / "prometheus" / "prometheus.yml"))


@needs_promtool
def test_each_alert_fires_when_it_should_and_not_before(tmp_path: Path) -> None:
    groups: list[Any] = []
    for file in sorted((DEPLOY / "prometheus" / "rules").glob("*.yml")):
        groups += yaml.safe_load(file.read_text())["groups"]
    for group in groups:
        for rule in group["rules"]:
            rule.pop("annotations", None)  # the words, which the cases do not repeat
    (tmp_path / "rules.yml").write_text(yaml.safe_dump({"groups": groups}))
    shutil.copy(CASES, tmp_path)
    run("promtool", "test", "rules", str(tmp_path / CASES.name))


@pytest.mark.skipif(shutil.which("amtool") is None, reason="needs amtool: apt-get install prometheus-alertmanager")
def test_alertmanager_takes_its_configuration() -> None:
    run("amtool", "check-config", str(DEPLOY / "alertmanager" / "alertmanager.yml"))


def test_every_alert_has_a_case() -> None:
    text = CASES.read_text()
    for line in (DEPLOY / "prometheus" / "rules" / "trunkline.yml").read_text().splitlines():
        if "- alert: " in line:
            name = line.partition("- alert: ")[2]
            assert f"alertname: {name}\n" in text, f"alerts.yml has no case of {name}"

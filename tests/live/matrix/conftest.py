"""Writes what came of each test into the file that TRUNKLINE_MATRIX names, a line of JSON each; marks what `just smoke` runs."""

import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from tests.live.matrix.columns import COLUMNS, SMOKE

_SMOKE = {f"test_{test}" for column in SMOKE for test in COLUMNS[column]}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.Function) and getattr(item.cls, "smoke", False) and item.name in _SMOKE:
            item.add_marker("smoke")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    target = os.environ.get("TRUNKLINE_MATRIX")
    over = report.when == "call" or (report.when == "setup" and not report.passed) or report.failed
    if target and over:
        with Path(target).open("a") as file:
            file.write(json.dumps(_line(item, report)) + "\n")
    return report


def _line(item: pytest.Item, report: pytest.TestReport) -> dict[str, Any]:
    detail = ""
    if report.skipped and isinstance(report.longrepr, tuple):
        detail = report.longrepr[2].removeprefix("Skipped: ")
    elif report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        detail = crash.message if crash is not None else str(report.longrepr)
    return {
        "test": item.name.removeprefix("test_"),
        "outcome": report.outcome,
        "detail": detail,
        "how": dict(report.user_properties).get("how"),
        "seconds": round(report.duration, 1),
    }

"""`python -m tests.live.matrix [agents]`: installs the agents, runs their rows, and writes `tests/live/MATRIX.md` anew.

Rows that were not run stay as their last run left them (`results/`). What agents said in a run, and their homes, stay in
`trunkline-matrix/<agent>` of the temporary directory until the next. As root the run has no network but loopback.
"""

import argparse
import datetime as dt
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
from tests.live.matrix import (
    test_a2a,
    test_claude,
    test_headless,
    test_others,
    test_serve,
    test_terminal,
    test_trunkline,
)
from tests.live.matrix.columns import COLUMNS
from tests.live.matrix.report import MISSING, RowResult, cells_of, render
from tests.live.matrix.rows import Row

from trunkline_testkit.agents import InstallError, install

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PAGE = HERE.parent / "MATRIX.md"

ROWS: dict[str, type[Row]] = {
    row.title(): row
    for module in (test_claude, test_others, test_headless, test_serve, test_a2a, test_terminal, test_trunkline)
    for row in vars(module).values()
    if isinstance(row, type) and issubclass(row, Row) and hasattr(row, "agent")
}


def main() -> int:
    """Returns 1 if a row has a failure, 2 if an agent can't be installed."""
    parser = argparse.ArgumentParser(prog="just matrix", description=__doc__)
    parser.add_argument("agents", nargs="*", choices=[*ROWS, []], metavar="agent", help=", ".join(ROWS))
    parser.add_argument("--again", action="store_true", help="only what failed, or was not run, the last time")
    options = parser.parse_args()
    names: list[str] = options.agents or list(ROWS)
    try:
        for name in names:
            install(ROWS[name].agent)
    except InstallError as error:
        print(error, file=sys.stderr)  # noqa: T201 - a command line
        return 2
    failed = [name for name in names if not run(name, ROWS[name], again=options.again)]
    write_page()
    return 1 if failed else 0


def run(name: str, row: type[Row], *, again: bool = False) -> bool:
    """Runs one row, or what is left of it, and keeps its result. Whether all that was run passed."""
    last = _result(RESULTS / f"{name}.json") if again else None
    before = last.cells if last is not None else {}
    chosen = [column for column in COLUMNS if before.get(column, MISSING).mark in {"fail", "missing"}]
    if not chosen:
        return True
    where = f"{sys.modules[row.__module__].__file__}::{row.__name__}"
    tests = [f"{where}::test_{test}" for column in chosen for test in COLUMNS[column]] if again else [where]
    kept = Path(tempfile.gettempdir()) / "trunkline-matrix" / name
    kept.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "lines"
        lines.touch()
        command = [sys.executable, "-m", "pytest", "-q", "-m", "live", f"--basetemp={kept}", *tests]
        if os.geteuid() == 0:
            command = ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "matrix", *command]
        began = time.monotonic()
        done = subprocess.run(command, env={**os.environ, "TRUNKLINE_MATRIX": str(lines)}, check=False)
        seconds = round(time.monotonic() - began, 1)
        cells = cells_of(json.loads(line) for line in lines.read_text().splitlines())
    for column, reason in row.known.items():
        if cells[column].mark == "fail":
            cells[column] = msgspec.structs.replace(cells[column], note=f"{reason} ({cells[column].note})")
    today = dt.datetime.now(tz=dt.UTC).date().isoformat()
    result = RowResult(
        agent=name,
        version=row.version(),
        adapter=row.adapter_name,
        day=today,
        seconds=seconds if last is None else last.seconds,
        cells=before | {column: cells[column] for column in chosen},
    )
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n")
    return done.returncode == 0


def _result(path: Path) -> RowResult:
    return msgspec.json.decode(path.read_bytes(), type=RowResult)


def write_page() -> None:
    """The page from all kept results."""
    PAGE.write_text(render(map(_result, sorted(RESULTS.glob("*.json")))))


if __name__ == "__main__":
    sys.exit(main())

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
from pathlib import Path

import msgspec
from tests.live.matrix import test_claude, test_others
from tests.live.matrix.report import RowResult, cells_of, render
from tests.live.matrix.rows import Row

from trunkline_testkit.agents import InstallError, install

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PAGE = HERE.parent / "MATRIX.md"

ROWS: dict[str, type[Row]] = {
    row.agent: row
    for module in (test_claude, test_others)
    for row in vars(module).values()
    if isinstance(row, type) and issubclass(row, Row) and hasattr(row, "agent")
}


def main() -> int:
    """Returns 1 if a row has a failure, 2 if an agent can't be installed."""
    parser = argparse.ArgumentParser(prog="just matrix", description=__doc__)
    parser.add_argument("agents", nargs="*", choices=[*ROWS, []], metavar="agent", help=", ".join(ROWS))
    names = parser.parse_args().agents or list(ROWS)
    try:
        for name in names:
            install(name)
    except InstallError as error:
        print(error, file=sys.stderr)  # noqa: T201 - a command line
        return 2
    failed = [name for name in names if not run(name, ROWS[name])]
    write_page()
    return 1 if failed else 0


def run(name: str, row: type[Row]) -> bool:
    """Runs one row and keeps its result. Whether everything passed."""
    module = sys.modules[row.__module__].__file__
    kept = Path(tempfile.gettempdir()) / "trunkline-matrix" / name
    kept.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "lines"
        lines.touch()
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-m",
            "live",
            f"--basetemp={kept}",
            f"{module}::{row.__name__}",
        ]
        if os.geteuid() == 0:
            command = ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "matrix", *command]
        done = subprocess.run(command, env={**os.environ, "TRUNKLINE_MATRIX": str(lines)}, check=False)
        cells = cells_of(json.loads(line) for line in lines.read_text().splitlines())
    for column, reason in row.known.items():
        if cells[column].mark == "fail":
            cells[column] = msgspec.structs.replace(cells[column], note=f"{reason} ({cells[column].note})")
    today = dt.datetime.now(tz=dt.UTC).date().isoformat()
    result = RowResult(agent=name, version=row.version(), adapter=row.adapter_name, day=today, cells=cells)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n")
    return done.returncode == 0


def write_page() -> None:
    """The page from all kept results."""
    rows = [msgspec.json.decode(path.read_bytes(), type=RowResult) for path in sorted(RESULTS.glob("*.json"))]
    PAGE.write_text(render(rows))


if __name__ == "__main__":
    sys.exit(main())

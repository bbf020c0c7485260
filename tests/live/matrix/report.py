"""From what came of the tests to `tests/live/MATRIX.md`. Pure: results in, text out."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec
from tests.live.matrix.columns import COLUMNS

Mark = Literal["pass", "unsupported", "fail", "missing"]
_SIGNS: dict[Mark, str] = {"pass": "✓", "unsupported": "-", "fail": "✗", "missing": "?"}
_DETAIL = 300


class Cell(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    mark: Mark
    note: str = ""
    """How it passed, why it is not supported, or what failed."""


MISSING = Cell(mark="missing")


class RowResult(msgspec.Struct, frozen=True, kw_only=True):
    """What `results/<agent>.json` holds."""

    agent: str
    version: str
    adapter: str
    day: str
    cells: dict[str, Cell]
    seconds: float | None = None
    """How long the last run of the whole row took."""


def cells_of(lines: Iterable[Mapping[str, Any]]) -> dict[str, Cell]:
    """A cell for each column from the lines of a run; of several tests in one column the worst counts."""
    by_test: dict[str, Mapping[str, Any]] = {}
    for line in lines:
        # A test can fail twice, in its body and when it is cleaned up: the first is the cause.
        if by_test.get(line["test"], {}).get("outcome") != "failed":
            by_test[line["test"]] = line
    return {column: _cell([by_test[test] for test in tests if test in by_test]) for column, tests in COLUMNS.items()}


def render(rows: Iterable[RowResult]) -> str:
    """The page: a table of signs, then what each agent's cells have to say."""
    ordered = sorted(rows, key=lambda row: (row.agent != "claude", row.agent != "codex", row.agent))
    names = [row.agent for row in ordered]
    lines = [
        "# The real agents, proved",
        "",
        "Written by `just matrix`: the contract suite against each agent's own program, without a network, on a scripted model.",
        "✓ it passed, - the agent can't (below stands why), ✗ it failed (below stands how), ? it was not run.",
        "",
        f"| behaviour | {' | '.join(names)} |",
        f"|---|{'---|' * len(names)}",
        *(
            f"| {column} | {' | '.join(_SIGNS[row.cells.get(column, MISSING).mark] for row in ordered)} |"
            for column in COLUMNS
        ),
    ]
    for row in ordered:
        lines += [
            "",
            f"## {row.agent} {row.version}",
            "",
            f"Adapter `{row.adapter}`, run on {row.day}{_took(row)}.",
            "",
        ]
        noted = [(column, row.cells[column]) for column in COLUMNS if row.cells.get(column, MISSING).note]
        lines += [f"- {_SIGNS[cell.mark]} **{column}**: {cell.note}" for column, cell in noted] or ["Nothing to add."]
    return "\n".join(lines) + "\n"


def _took(row: RowResult) -> str:
    return "" if row.seconds is None else f" in {row.seconds:.0f} s"


def _cell(lines: list[Mapping[str, Any]]) -> Cell:
    if not lines:
        return MISSING
    for line in lines:
        if line["outcome"] == "failed":
            return Cell(mark="fail", note=_in_line(_first_words(line["detail"])))
    for line in lines:
        if line["outcome"] == "skipped":
            reason = _in_line(line["detail"].removeprefix("exempt: "))
            return Cell(mark="unsupported" if line["detail"].startswith("exempt: ") else "missing", note=reason)
    return Cell(mark="pass", note=next((line["how"] for line in lines if line.get("how")), ""))


def _first_words(detail: str) -> str:
    """What an error says: without the path of its class, and without pytest's account of the values compared."""
    return re.sub(r"^[\w.]*\.(?=\w+(Error|Exception|Failed): )", "", detail).split("\nassert ")[0]


def _in_line(text: str) -> str:
    """The text as one line of Markdown, cut where it goes on and on."""
    one = " ".join(text.split()).replace("|", "\\|")
    return one if len(one) <= _DETAIL else f"{one[:_DETAIL]}…"

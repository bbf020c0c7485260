"""From the lines of a run to the page of the matrix."""

from tests.live.matrix.columns import COLUMNS
from tests.live.matrix.report import Cell, RowResult, cells_of, render
from tests.live.matrix.rows import Row


def line(test: str, outcome: str = "passed", detail: str = "", how: str | None = None) -> dict[str, str | None]:
    return {"test": test, "outcome": outcome, "detail": detail, "how": how}


def test_a_cell_is_a_pass_a_lack_a_failure_or_missing() -> None:
    cells = cells_of(
        [
            line("a_prompt_becomes_one_turn"),
            line(
                "a_decision_reaches_the_agent[allow]",
                "failed",
                "trunkline_wire.errors.TrunklineError: no\n  tool | ended\nassert 1 == 2",
            ),
            line("a_decision_reaches_the_agent[allow]", "failed", "processes outlive it"),
            line("an_answer_reaches_the_agent", "skipped", "exempt: it never asks"),
            line("a_huge_answer_comes_whole", "skipped", "no prompt for 'huge'"),
            line("trouble_with_the_model_ends_the_turn_and_not_the_session[err400]", how="error agent_failed"),
        ]
    )
    assert cells["prompt"] == Cell(mark="pass")
    assert cells["approve"] == Cell(mark="fail", note="TrunklineError: no tool \\| ended")
    assert cells["question"] == Cell(mark="unsupported", note="it never asks")
    assert cells["huge message"] == Cell(mark="missing", note="no prompt for 'huge'")
    assert cells["API 400"] == Cell(mark="pass", note="error agent_failed")
    assert cells["deny"].mark == "missing"


def test_of_several_tests_in_a_column_the_worst_counts() -> None:
    first, second = COLUMNS["unknown message"]
    assert cells_of([line(first), line(second, "failed", "x")])["unknown message"] == Cell(mark="fail", note="x")


def test_the_page_has_a_column_for_each_agent_and_says_what_is_not_a_plain_pass() -> None:
    cells = {"prompt": Cell(mark="pass"), "deny": Cell(mark="fail", note="it ran all the same")}
    page = render(
        [
            RowResult(agent="aaa", version="1", adapter="acp", day="2026-01-02", cells={}, seconds=91.6),
            RowResult(agent="claude", version="2", adapter="claude", day="2026-01-01", cells=cells),
        ]
    )
    assert "| behaviour | claude | aaa |" in page
    assert "| prompt | ✓ | ? |" in page
    assert "| deny | ✗ | ? |" in page
    assert "Adapter `acp`, run on 2026-01-02 in 92 s." in page
    assert "## claude 2\n\nAdapter `claude`, run on 2026-01-01.\n\n- ✗ **deny**: it ran all the same\n" in page


def test_every_column_is_proved_by_tests_that_there_are() -> None:
    named = {test.partition("[")[0] for tests in COLUMNS.values() for test in tests}
    assert {name for name in named if not hasattr(Row, f"test_{name}")} == set()

"""What the last message at the leader says about an append: by hand from section 4 of the architecture."""

import pytest

from trunkline_bus.outcome import Verdict, judge
from trunkline_bus.stored import Stored


def at(sequence: int, id: str) -> Stored:
    return Stored("EVENTS", sequence, "trunk.ev.1.ses_x.agent.fact", "error", id, None, b"", 0)


@pytest.mark.parametrize(
    ("last", "expected", "expected_id", "verdict"),
    [
        (None, 0, None, "retry"),  # nothing there, nothing expected
        (at(9, "mine"), 0, None, "stored"),
        (at(9, "mine"), 7, "before", "stored"),
        (at(7, "before"), 7, "before", "retry"),
        (at(7, "before"), 7, None, "retry"),
        (at(9, "foreign"), 7, "before", "fenced"),
        (at(9, "foreign"), 0, None, "fenced"),
        (at(5, "older"), 7, "before", "regressed"),
        (None, 7, "before", "regressed"),
        (at(7, "another"), 7, "before", "regressed"),  # cut off below 7 and written anew
    ],
)
def test_judge(last: Stored | None, expected: int, expected_id: str | None, verdict: Verdict) -> None:
    assert judge(last, id="mine", expected=expected, expected_id=expected_id) == verdict

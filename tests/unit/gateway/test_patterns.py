import pytest

from trunkline_gateway.patterns import Patterns
from trunkline_wire import TrunklineError

TYPES = ["session.created", "message.delta", "tool.started", "permission.requested", "ask.decided", "team.created"]


@pytest.mark.parametrize(
    ("patterns", "wanted"),
    [
        (["*"], TYPES),
        (["session.*"], TYPES),
        (["tool.*"], ["tool.started"]),
        (["session.tool.*"], ["tool.started"]),
        (["permission.*", "ask.*"], ["permission.requested", "ask.decided"]),
        (["team.*"], ["team.created"]),
        (["session.created"], ["session.created"]),
        (["session.tool.started"], ["tool.started"]),
        (["tool"], []),
        (["too.*"], []),
    ],
)
def test_which_types_a_pattern_wants(patterns: list[str], wanted: list[str]) -> None:
    found = Patterns(patterns)
    for _ in range(2):
        assert [type_ for type_ in TYPES if found.matches(type_)] == wanted


@pytest.mark.parametrize("pattern", ["", "a b", "*.tool", "tool.*.x", "tool.**", "TOOL.*", "tool.", ">"])
def test_what_is_no_pattern(pattern: str) -> None:
    with pytest.raises(TrunklineError) as refused:
        Patterns([pattern])
    assert (refused.value.code, refused.value.details["field"]) == ("bad_params", "patterns")

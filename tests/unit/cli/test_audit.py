"""Stories of asks in words, and as rows of a file; times as people write them."""

import datetime as dt
from typing import Any

import pytest

from trunkline_cli.audit import COLUMNS, decider, row, steps
from trunkline_cli.policies import difference, rule_lines, verdict
from trunkline_cli.since import since
from trunkline_wire import TrunklineError

STORY: dict[str, Any] = {
    "ask": "ask_" + "0" * 32,
    "session": "ses_" + "1" * 32,
    "kind": "permission",
    "status": "decided",
    "sequence": 7,
    "asked": "2026-11-27T10:00:00.000000Z",
    "requested": {"ask": "ask_0", "name": "Bash", "incarnation": "i", "input": {"command": "=cmd|' /C calc'!A0"}},
    "routed": {"time": "2026-11-27T10:00:00.100000Z", "policy": "p", "rule": "two", "quorum": 2, "role": "owner"},
    "votes": [{"time": "2026-11-27T10:00:05.000000Z", "answer": "cmd_1", "by": "ann", "behaviour": "allow"}],
    "rejected": [
        {"time": "2026-11-27T10:00:03.000000Z", "answer": "cmd_0", "by": "eve", "code": "forbidden", "message": "no"}
    ],
    "ended": "2026-11-27T10:00:09.500000Z",
    "took_s": 9.5,
    "behaviour": "allow",
    "by": "bob",
    "role": "owner",
    "message": "-1+1",
    "delivered": "2026-11-27T10:00:09.600000Z",
    "delivered_s": 0.1,
}


def test_the_steps_come_in_their_order_and_say_who() -> None:
    assert [text for _, text in steps(STORY)] == [
        "asked",
        "routed: rule two, 2 people, role owner",
        "eve was refused: forbidden: no",
        "ann allowed it: more people have to",
        "decided: allow bob; role owner, after 9.5 s: -1+1",
        "delivered to the agent after 0.1 s",
    ]
    assert decider({"behaviour": "deny", "by": "policy", "rule": "secrets"}) == "deny policy (secrets)"
    assert decider({"by": "agent"}) == "agent"


def test_a_row_has_every_column_and_no_formula() -> None:
    cells = dict(zip(COLUMNS, row(STORY), strict=True))
    assert (cells["tool"], cells["by"], cells["took_s"], cells["votes"], cells["rejected"]) == (
        "Bash",
        "bob",
        "9.5",
        "ann",
        "eve:forbidden",
    )
    assert cells["message"] == "'-1+1"
    assert cells["wants"].startswith("Bash: =cmd")
    assert cells["device"] == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7d", "2026-11-20T10:00:00.000000Z"),
        ("90s", "2026-11-27T09:58:30.000000Z"),
        ("2026-11-01", "2026-11-01T00:00:00.000000Z"),
        ("2026-11-01T12:00:00+02:00", "2026-11-01T10:00:00.000000Z"),
    ],
)
def test_times(text: str, expected: str) -> None:
    assert since(text, dt.datetime(2026, 11, 27, 10, tzinfo=dt.UTC)) == expected


@pytest.mark.parametrize("text", ["", "7", "yesterday", "7 years"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(TrunklineError) as refused:
        since(text)
    assert refused.value.code == "bad_params"


def test_a_rule_and_a_ruling_in_words() -> None:
    rule = {
        "name": "night",
        "action": "ask",
        "quorum": 2,
        "hours": [[1320, 360]],
        "weekdays": [0, 4],
        "zone": "Europe/Berlin",
        "cost_at_least": 5.0,
        "command": ["make*"],
        "role": "owner",
    }
    assert [line.strip() for line in rule_lines(4, rule)] == [
        "4. ask-two: night",
        "command = make*",
        "cost_at_least = 5 USD",
        "22:00-06:00 on mon, fri, Europe/Berlin",
        "role = owner",
    ]
    ruling = {"action": "ask", "rule": "night", "quorum": 2, "expires_after": 60.0}
    assert verdict({"ruling": ruling}) == "ask by rule 'night' (2 people, deny after 60 s)"
    assert verdict({"ruling": {"action": "deny"}}) == "deny by default: no rule matches"


def test_a_difference_is_its_lines() -> None:
    assert difference("a\nb\n", "a\nc\n") == ["-b", "+c"]

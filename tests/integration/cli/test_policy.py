"""Policies, histories and many decisions from the command line, on a running instance."""

import csv
import json
from pathlib import Path

import pytest
from tests.integration.cli.test_asks import asking, tool_end
from tests.integration.supervisor.running import Up

from trunkline_testkit import eventually_sync

TWO = '[[rule]]\nname = "deploys"\naction = "ask-two"\ncommand = "deploy*"\n'


@pytest.fixture
def policy_file(up: Up) -> Path:
    return up.home / "policy.toml"


def in_force(up: Up, words: str) -> None:
    eventually_sync(lambda: words in up.ok("policy", "show", "--text"), 20)


def test_a_policy_is_checked_tried_and_then_in_force(up: Up, policy_file: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.toml"
    wrong.write_text('[[rule]]\nname = "a"\naction = "alow"\n')
    checked = up.cli("policy", "check", str(wrong))
    assert checked.returncode == 1
    assert checked.stderr == f"{wrong}:3: rule 'a': 'action' is 'alow'; it can be allow, deny, ask, ask-two\n"
    new = tmp_path / "new.toml"
    new.write_text(TWO)
    assert "1 rules, default ask" in up.ok("policy", "check", str(new))

    explained = up.ok("policy", "test", "--command", "deploy now", "--policy", str(new))
    assert "ask by default: no rule matches" in explained
    assert "by the other policy ask by rule 'deploys' (2 people)" in explained
    denied = up.ok("policy", "test", "--tool", "Bash", "--command", "sudo trunkline approve last")
    assert "deny by rule 'trunkline-command'" in denied
    assert "trunkline-state (deny): path does not" in denied

    session, ask = asking(up, "ask deploy it")
    tried = json.loads(up.ok("policy", "test", "--session", session, "--policy", str(new), "--changed", "--json"))
    assert ([result["ask"] for result in tried["results"]], tried["changed"]) == ([ask], 1)
    up.ok("deny", ask)

    policy_file.write_text(TWO)
    in_force(up, "ask-two")
    shown = up.ok("policy", "show")
    assert "ask-two: deploys" in shown
    assert f"from {policy_file}" in shown
    session, ask = asking(up, "ask deploy again")
    assert up.ok("approve", ask) == f"1 of 2 allow it: {ask} of {session}\n"
    twice = up.cli("approve", ask)
    assert twice.stderr.startswith("error: already_voted:")
    up.ok("deny", ask)

    policy_file.write_text("")
    eventually_sync(lambda: not up.ok("policy", "show", "--text"), 20)
    history = up.ok("policy", "history", "--diff")
    assert '+action = "ask-two"' in history
    assert '-action = "ask-two"' in history


def test_many_are_approved_after_a_yes_and_stand_in_the_history(up: Up, tmp_path: Path) -> None:
    session, ask = asking(up, "ask pytest -q")
    other, kept = asking(up, "ask pytest && rm x")
    unasked = up.cli("approve", "--all", "--command", "pytest*")
    assert unasked.stderr.splitlines()[-1].startswith("error: bad_params: there is no terminal")
    done = up.cli("approve", "--all", "--command", "pytest*", "--yes")
    assert (done.returncode, done.stdout) == (0, f"allow: {ask} of {session}\n")
    assert "pytest -q" in done.stderr
    assert tool_end(up, session) == ("completed", "ran: pytest -q")
    assert up.ok("deny", "--all", "--command", "rm *", "--yes") == f"deny: {kept} of {other}\n"
    assert up.cli("approve", "--command", "x").returncode == 2
    assert up.cli("approve", "--all", "ask_0").returncode == 2

    found = eventually_sync(
        lambda: [
            story
            for line in up.ok("asks", "--history", "--session", session, "--json").splitlines()
            if "delivered" in (story := json.loads(line))
        ],
        20,
    )
    assert [(story["ask"], story["behaviour"], story["role"]) for story in found] == [(ask, "allow", "owner")]
    assert "delivered to the agent" in up.ok("asks", "--history", "--session", session, "-v")

    lines, rows = tmp_path / "audit.jsonl", tmp_path / "audit.csv"
    for target in (lines, rows):
        up.ok("asks", "--history", "--since", "1h", "--export", str(target))
    exported = {json.loads(line)["ask"]: json.loads(line) for line in lines.read_text().splitlines()}
    assert exported[kept]["requested"]["input"] == {"command": "pytest && rm x"}
    with rows.open(newline="") as file:
        table = {row["ask"]: row for row in csv.DictReader(file)}
    assert table.keys() == exported.keys()
    assert (table[kept]["behaviour"], table[kept]["tool"]) == ("deny", exported[kept]["requested"]["name"])
    assert up.ok("asks", "rules", session) == ""
    assert up.cli("asks", "revoke", session, "x").stderr.startswith("error: unknown_rule:")

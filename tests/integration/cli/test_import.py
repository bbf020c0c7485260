"""`trunkline import` against a running instance: what it lists, what it says, and that nothing happens twice."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.integration.agentkit import claude_history
from tests.integration.supervisor.running import Up

NATIVE = "11111111-2222-4333-8444-555555555555"
OTHER = "66666666-7777-4888-8999-000000000000"
MARK = "SCENARIO=write FILE=one.txt TEXT=one"


@pytest.fixture
def histories(up: Up, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A home with two histories, in which the command looks."""
    monkeypatch.setitem(up.environment, "HOME", str(tmp_path))
    claude_history.write(tmp_path, 2, NATIVE)
    moved = claude_history.write(tmp_path, 1, OTHER, cwd="-home-dev-other")
    moved.write_text(moved.read_text().replace("/home/dev/project", "/home/dev/other"))
    return tmp_path


def values(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_histories_are_listed_by_directory_imported_and_then_known(up: Up, histories: Path) -> None:
    listed = up.cli("import")
    assert listed.returncode == 0, listed.stderr
    rows = [line.split("\t") for line in listed.stdout.splitlines()]
    assert rows == [
        ["/home/dev/other", "claude", OTHER, "2026-01-02 00:00", "3", "no", MARK],
        ["/home/dev/project", "claude", NATIVE, "2026-01-02 00:01", "6", "no", MARK],
    ]

    first = up.cli("import", "claude", NATIVE[:6])
    assert first.returncode == 0, first.stderr
    assert first.stdout.startswith(f"{NATIVE}: imported as ses_")
    assert first.stdout.endswith(", 6 messages, 19 events\n")
    rest = up.cli("import", "claude", "--all", "--json")
    other, same = values(rest.stdout)
    assert [(one["id"], one["outcome"]) for one in (other, same)] == [(OTHER, "imported"), (NATIVE, "already_imported")]
    assert up.cli("import", "claude", NATIVE).stdout == f"{NATIVE}: already imported as {same['session']}\n"

    known = {one["id"]: one["session"] for one in values(up.cli("import", "--json").stdout)}
    assert known == {NATIVE: same["session"], OTHER: other["session"]}
    states = {state["session"]: state for state in values(up.cli("ls", "--all", "--json").stdout)}
    assert (states[same["session"]]["status"], states[same["session"]]["native_session"]) == ("closed", NATIVE)
    assert up.cli("verify", same["session"]).returncode == 0
    assert histories.is_dir()


def test_one_directory_and_lines_that_cannot_be_read(up: Up, histories: Path) -> None:
    path = claude_history.write(histories, 1, "99999999-7777-4888-8999-000000000000", cwd="-home-dev-third")
    text = path.read_text().replace("/home/dev/project", "/home/dev/third")
    path.write_text(text + '{"type": "assistant", "mess')
    done = up.cli("import", "claude", "--all", "--cwd", "/home/dev/third")
    assert done.returncode == 0
    assert done.stdout.count("imported as") == 1
    last = len(text.splitlines()) + 1
    assert f"{path.stem}: 1 line malformed, left out: {last}" in done.stderr


def test_what_cannot_be_imported_says_why(up: Up, histories: Path) -> None:
    assert histories.is_dir()
    none = up.cli("import", "claude", "abc")
    assert (none.returncode, none.stderr.split(":")[1].strip()) == (1, "unknown_session")
    demo = up.cli("import", "demo")
    assert (demo.returncode, demo.stderr.split(":")[1].strip()) == (1, "unsupported")
    assert up.cli("import", "nobody").stderr.split(":")[1].strip() == "unknown_adapter"
    assert up.cli("import", "claude", "abc", "--all").returncode == 2

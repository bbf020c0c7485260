"""`trunkline agents` on machines with all, some and none of the agents."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

VERSIONS = {"claude": "2.1.332 (Claude Code)", "codex": "codex-cli 0.171.0", "gemini": "0.61.0", "goose": "goose 1.2"}


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A home with a directory for programs."""
    (tmp_path / "bin").mkdir()
    return tmp_path


def install(machine: Path, *names: str) -> None:
    for name in names:
        path = machine / "bin" / name
        path.write_text(f"#!/bin/sh\necho '{VERSIONS.get(name, '1.0')}'\n")
        path.chmod(0o755)


def agents(machine: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {"HOME": str(machine), "PATH": f"{machine / 'bin'}:/bin:/usr/bin", "LANG": "C.UTF-8", **more}
    if "COVERAGE_PROCESS_START" in os.environ:
        environment["COVERAGE_PROCESS_START"] = os.environ["COVERAGE_PROCESS_START"]
    command = [sys.executable, "-m", "trunkline_cli", "agents", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)


TERMINAL = "a pseudo-terminal: what the screen shows"


def rows(done: subprocess.CompletedProcess[str]) -> list[list[str]]:
    return [line.split("\t") for line in done.stdout.splitlines()]


def test_none(machine: Path) -> None:
    done = agents(machine)
    assert [row[0] for row in rows(done)] == ["demo", "shell"]
    assert done.stderr.startswith("not installed: aider, amp, auggie, claude, claude-sdk, cline, ")


def test_some(machine: Path) -> None:
    install(machine, "claude", "gemini")
    (machine / ".gemini").mkdir()
    (machine / ".gemini" / "oauth_creds.json").touch()
    shown = rows(agents(machine))
    # Further ways, behind the best one, have no name of their own.
    assert [row[0] for row in shown] == ["claude", "", "demo", "gemini", "", "", "shell"]
    assert [shown[n][2] for n in (1, 4, 5)] == [TERMINAL, "JSON lines on stdout, one process a turn", TERMINAL]
    found = {row[0]: row[1:] for row in shown}
    path = str(machine / "bin" / "claude")
    assert found["claude"] == ["2.1.332", "stream-json over stdio", "not seen; claude /login", path]
    assert found["gemini"][0] == "0.61.0"
    assert found["gemini"][2] == "yes"


def test_an_agent_with_two_ways_has_the_best_first(machine: Path) -> None:
    install(machine, "codex", "codex-acp")
    codex = [row for row in rows(agents(machine)) if row[0] in ("codex", "")]
    assert [row[2] for row in codex] == [
        "app-server (JSON-RPC over stdio or WebSocket)",
        "Agent Client Protocol, version 1, over stdio",
        TERMINAL,
    ]


def test_what_is_missing_says_how_to_install_it(machine: Path) -> None:
    shown = {row[0]: row for row in rows(agents(machine, "--all"))}
    assert "npm install -g @google/gemini-cli" in shown["gemini"][4]


def test_an_adapter_that_cannot_be_loaded_hides_no_other(machine: Path) -> None:
    broken = machine / "lib" / "broken-1.dist-info"
    broken.mkdir(parents=True)
    (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (broken / "entry_points.txt").write_text("[trunkline.adapters]\nbroken = no.such.module:Adapter\n")
    done = agents(machine, PYTHONPATH=str(broken.parent))
    assert [row[0] for row in rows(done)] == ["demo", "shell"]
    assert "left out: unknown_adapter: adapter 'broken' (no.such.module:Adapter) can't be loaded" in done.stderr


def test_as_json_every_way_has_its_capabilities(machine: Path) -> None:
    install(machine, "goose")
    found = [json.loads(line) for line in agents(machine, "--json").stdout.splitlines()]
    goose = next(one for one in found if one["agent"] == "goose")
    assert (goose["adapter"], goose["profile"], goose["way"], goose["version"]) == ("acp", "goose", "acp", "1.2")
    assert goose["capabilities"]["resume"] is True
    assert next(one for one in found if one["agent"] == "claude")["error"]["code"] == "agent_not_found"

"""`trunkline daemon`: in the background like `up`, one a state directory, and gone without a trace."""

import json
import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from trunkline_testkit import eventually_sync
from trunkline_testkit.forbidden import TRUST_NOBODY
from trunkline_testkit.processes import kill, kill_all, marked, wait_gone_sync


class Daemon:
    """The command line, as a program, against one state directory."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environment = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}",
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "TRUNKLINE_HOME": str(home),
            **TRUST_NOBODY,
        }

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "trunkline_cli", "daemon", *arguments],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    def status(self) -> dict[str, object]:
        return json.loads(self.run("status", "--json").stdout)


@pytest.fixture
def daemon(home: Path) -> Generator[Daemon]:
    yield Daemon(home)
    kill_all(marked("TRUNKLINE_HOME", str(home)))


def test_it_starts_apart_is_alone_restarts_as_it_was_and_stops_without_a_trace(daemon: Daemon) -> None:
    assert daemon.run("status").returncode == 3
    started = daemon.run("start", "--port", "0", "--log-level", "warning", "--services", "gateway,adapters")
    assert started.returncode == 0, started.stdout + started.stderr
    state = json.loads((daemon.home / "state.json").read_text())
    assert f"Ready at {state['gateway']}" in started.stdout
    assert "Ctrl-C" not in started.stdout, "there is nobody to press it"
    assert os.getsid(state["pid"]) == state["pid"], "the terminal's end is not its end"
    assert daemon.run("status").returncode == 0
    assert set(state["services"]) == {"gateway", "adapters"}

    second = daemon.run("start")
    assert second.returncode == 1
    assert second.stderr.startswith("error: already_running:")
    assert state["gateway"] in second.stderr
    assert str(state["pid"]) in second.stderr

    kill(state["children"]["adapters"]["pid"])
    console = daemon.home / "logs" / "daemon.log"
    eventually_sync(lambda: "adapters      ready again" in console.read_text(), 20)
    assert "adapters      ready again" in daemon.run("logs", "daemon").stdout
    shown = daemon.run("status").stdout
    assert "adapters      ready, started 2 times" in shown

    before = marked("TRUNKLINE_HOME", str(daemon.home))
    again = daemon.run("restart")
    assert again.returncode == 0, again.stdout + again.stderr
    wait_gone_sync(before, 1)
    now = daemon.status()
    assert now["pid"] != state["pid"]
    assert now["flags"] == [f"--home={daemon.home}", "--port=0", "--log-level=warning", "--services=gateway,adapters"]

    left = marked("TRUNKLINE_HOME", str(daemon.home))
    assert daemon.run("stop").returncode == 0
    wait_gone_sync(left, 1)
    assert not (daemon.home / "state.json").exists()
    assert daemon.run("stop").stderr.startswith("error: not_running:")


def test_a_killed_daemon_leaves_a_stale_lock_that_stops_nobody(daemon: Daemon) -> None:
    assert daemon.run("start", "--port", "0", "--services", "gateway").returncode == 0
    left = marked("TRUNKLINE_HOME", str(daemon.home))
    kill(json.loads((daemon.home / "state.json").read_text())["pid"])
    wait_gone_sync(left, 10)
    assert daemon.run("status").returncode == 3
    assert daemon.run("start", "--port", "0", "--services", "gateway").returncode == 0
    assert daemon.run("stop").returncode == 0


def test_one_that_cannot_start_says_why(daemon: Daemon) -> None:
    (daemon.home / "trunkline.toml").write_text("colour = 'red'\n")
    refused = daemon.run("start")
    assert refused.returncode == 1
    assert "colour" in refused.stdout
    assert refused.stderr.startswith("error: not_running: it ended with status 2")
    assert daemon.run("logs", "nobody").stderr.startswith("error: bad_params:")

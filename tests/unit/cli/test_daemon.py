"""What `trunkline daemon` says of a state file and of log files, and what it writes for systemd and launchd."""

import plistlib
import threading
from pathlib import Path

import pytest

from trunkline_cli import daemon
from trunkline_cli.commands.up import up_flags
from trunkline_cli.daemon import DaemonState, ServiceState
from trunkline_cli.units import launchd_plist, systemd_unit

NOW = 1_000_000.0


def state(**fields: object) -> DaemonState:
    about = {"pid": 1, "version": "1.0", "gateway": "http://127.0.0.1:1", "ready": True, **fields}
    return DaemonState(**about)  # pyright: ignore[reportArgumentType] - test values


@pytest.mark.parametrize(
    ("fields", "trouble"),
    [
        ({}, None),
        ({"services": {"gateway": ServiceState(ready=True, starts=3)}}, None),
        ({"beat": NOW - 60, "installed": "1.0"}, None),
        ({"ready": False}, "it is still starting"),
        ({"services": {"gateway": ServiceState(ready=False, starts=2)}}, "gateway is not ready, started 2 times"),
        (
            {"services": {"adapters": ServiceState(ready=False, starts=20, deaths=20, given_up=True)}},
            "adapters died 20 times in a row and is not started again: see `trunkline daemon logs adapters`",
        ),
        ({"beat": NOW - 3600}, "it has not said for 3600 s that it lives: it hangs, or the machine slept"),
        ({"installed": "1.1"}, "version 1.1 is installed: `trunkline daemon restart` runs it"),
    ],
)
def test_what_is_not_well_is_said(fields: dict[str, object], trouble: str | None) -> None:
    assert state(**fields).troubles(NOW) == ([] if trouble is None else [trouble])


def test_logs_are_read_from_their_end_and_followed_also_when_they_are_emptied(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "gateway.log"
    path.parent.mkdir()
    path.write_text("".join(f"line {number}\n" for number in range(100)))
    assert daemon.last_lines(path, 2) == ["line 98", "line 99"]
    assert daemon.last_lines(path, 0) == []
    assert daemon.log_files(tmp_path) == {"gateway": path}
    coming = daemon.follow(daemon.log_files(tmp_path))
    timer = threading.Timer(0.05, path.write_text, ["anew\nhalf "])  # shorter than it was: emptied
    timer.start()
    assert next(coming) == ("gateway", "anew")
    with path.open("a") as file:
        file.write("whole\n")
    assert next(coming) == ("gateway", "half whole")
    timer.join()


def test_flags_are_whole_wherever_it_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    given = {"port": 0, "demo": False, "nats_seed": Path("seed"), "services": None, "log_level": "debug"}
    assert up_flags(given) == ["--port=0", f"--nats-seed={tmp_path / 'seed'}", "--log-level=debug"]
    assert up_flags({"demo": True}) == ["--demo"]


def test_a_unit_means_its_words_as_they_are() -> None:
    unit = systemd_unit(["/opt/py thon", "--home=/a%b$c"], {"PATH": '/x:"y"$z'}, Path("/c"))
    assert unit.path == Path("/c/systemd/user/trunkline.service")
    lines = unit.text.splitlines()
    assert 'ExecStart="/opt/py thon" "--home=/a%%b$$c"' in lines
    assert 'Environment="PATH=/x:\\"y\\"$z"' in lines
    assert "KillMode=mixed" in lines
    assert unit.enable[-1] == ("systemctl", "--user", "enable", "--now", "trunkline.service")


def test_a_launch_agent_is_kept_alive_unless_it_was_stopped() -> None:
    unit = launchd_plist(["/opt/python", "-m", "x"], {"PATH": "/bin"}, Path("/Users/me"), Path("/Users/me/d.log"))
    assert unit.path == Path("/Users/me/Library/LaunchAgents/dev.trunkline.daemon.plist")
    said = plistlib.loads(unit.text.encode())
    assert said["ProgramArguments"] == ["/opt/python", "-m", "x"]
    assert said["EnvironmentVariables"] == {"PATH": "/bin"}
    assert said["KeepAlive"] == {"SuccessfulExit": False}

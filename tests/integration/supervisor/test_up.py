"""`trunkline up`: what dies comes back, what ends leaves nothing, and there is one a home."""

import json
import signal
import socket
import stat
import subprocess
import sys
import urllib.request
from pathlib import Path

from tests.integration.supervisor.running import SERVICES, Up, running

from trunkline_supervisor.state import Process
from trunkline_testkit import eventually_sync
from trunkline_testkit.nats import NatsServer
from trunkline_testkit.processes import kill, stop, wait_gone_sync


def test_it_is_ready_is_alone_in_its_home_and_ctrl_c_leaves_nothing(home: Path) -> None:
    with running(home) as up:
        state = up.state
        assert set(up.children()) == {"nats-server", *SERVICES}
        assert state["pid"] == up.process.pid
        assert state["host"].startswith("hst_")
        eventually_sync(lambda: f"Ready at {state['gateway']}" in up.output)
        with urllib.request.urlopen(f"{state['gateway']}/health", timeout=5) as answer:
            assert answer.status == 200
        modes = {name: stat.S_IMODE((home / name).stat().st_mode) for name in ("state.json", "host.json", "token")}
        assert modes == dict.fromkeys(modes, 0o600)
        second = up.spawn("up", "--port", "0")
        assert second.returncode == 1
        assert second.stderr.startswith("error: already_running:")
        assert str(up.process.pid) in second.stderr
        assert state["gateway"] in second.stderr
        assert up.stop() == 0
        assert "stopped; nothing runs any more" in up.output
        assert not (home / "state.json").exists()
        assert not (home / "gateway.sock").exists()


def test_every_child_that_is_killed_comes_back_and_the_log_is_what_it_was(home: Path) -> None:
    with running(home, "--services", "gateway,permissions") as up:
        before = up.state
        session = "ses_" + "0" * 32
        for name in ("nats-server", "gateway", "permissions"):
            old = up.children()[name]
            kill(old.pid)

            def back(name: str = name, pid: int = old.pid) -> bool:
                child = up.children().get(name)
                return child is not None and child.pid != pid

            eventually_sync(back, 20, ignore=(OSError, ValueError))
        eventually_sync(lambda: up.output.count("gateway       ready again") >= 1, 20)
        after = up.state
        assert (after["nats"], after["gateway"]) == (before["nats"], before["gateway"])
        done = eventually_sync(lambda: _settled(up, session), 20)
        assert "unknown_session" in done


def _settled(up: Up, session: str) -> str | None:
    """What the gateway says about a session that never was, once it says anything about it."""
    said = up.cli("events", session).stderr
    return said if "unknown_session" in said else None


def test_killed_with_sigkill_it_takes_all_along_and_the_next_start_is_clean(home: Path) -> None:
    first = Up(home)
    first.wait_ready()
    left = first.all()
    assert len(left) >= 6
    kill(first.process.pid)
    first.process.wait()
    wait_gone_sync(left, 10)
    host = json.loads((home / "state.json").read_text())["host"]
    with running(home, "--services", "permissions") as again:
        assert f"after process {first.process.pid}, which was killed" in again.output
        assert again.state["host"] == host
        assert again.state["nats"] == first.state["nats"]


def test_a_leftover_of_a_killed_instance_is_ended_by_the_next_start(home: Path) -> None:
    """What the kernel does not kill (it can't everywhere), the state file's own list does."""
    stray = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True, env={})
    info = Process.of(stray.pid)
    assert info is not None
    dead = {"pid": 2**22 - 1, "start": 1.0, "version": "0", "host": "h", "gateway": "g", "nats": "n", "socket": "s"}
    children = {"gateway": {"pid": info.pid, "start": info.start}, "other": {"pid": info.pid, "start": 1.0}}
    (home / "state.json").write_text(json.dumps({**dead, "children": children}))
    with running(home, "--services", "permissions"):
        assert stray.wait(10) == -signal.SIGTERM


def test_a_port_that_is_taken_is_refused_by_name(home: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        up = Up(home, "--port", str(port))
        assert up.process.wait(20) == 1
    assert f"error: already_running: port {port} is taken" in up.output
    assert up.all() == []


def test_a_service_that_refuses_its_settings_ends_the_start_with_the_reason(home: Path) -> None:
    (home / "trunkline.toml").write_text("[gateway]\nportt = 1\n")
    up = Up(home, "--services", "gateway")
    assert up.process.wait(40) == 1
    assert "error: bad_settings: gateway refuses its settings" in up.output
    assert "did you mean 'port'?" in up.output
    assert up.all() == []


def test_a_hanging_service_is_killed_by_a_second_ctrl_c(home: Path) -> None:
    with running(home, "--services", "permissions") as up:
        child = up.children()["permissions"]
        stop(child.pid)
        up.process.send_signal(signal.SIGINT)
        eventually_sync(lambda: "stopping permissions" in up.output)
        up.process.send_signal(signal.SIGINT)
        assert up.process.wait(5) == 0
        assert not child.alive()


def test_unknown_services_and_settings_are_named(home: Path) -> None:
    up = Up(home, "--services", "nonsense")
    assert up.process.wait(20) == 1
    assert "there is no service 'nonsense'" in up.output


def test_it_runs_on_a_server_of_somebody_else_with_a_demo_and_leaves_that_server_alone(
    fresh_nats: NatsServer, home: Path
) -> None:
    with running(home, "--nats-url", fresh_nats.url, "--demo") as up:
        assert set(up.children()) == set(SERVICES)
        assert up.state["nats"] == fresh_nats.url
        eventually_sync(lambda: "demo: trunkline attach ses_" in up.output, 30)
        eventually_sync(lambda: up.ok("asks", "--json").strip(), 20)
        up.ok("approve", "last")
        eventually_sync(lambda: "turn.completed" in up.ok("events", "last"), 20)
        assert up.ok("verify").endswith("all is well\n")
    assert fresh_nats.running
    assert not (home / "nats" / "store").exists()

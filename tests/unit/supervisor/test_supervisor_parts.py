"""Back-off, state, lock, ports and home, each by itself."""

import os
import socket
import stat
from pathlib import Path

import pytest

from trunkline_supervisor import state
from trunkline_supervisor.backoff import Restarts
from trunkline_supervisor.home import Home, host_id
from trunkline_supervisor.lock import HomeLock
from trunkline_supervisor.ports import gateway_port
from trunkline_supervisor.services import SERVICES, Endpoint, child_spec, chosen
from trunkline_wire import TrunklineError


def current(**fields: object) -> state.State:
    own = state.Process.of(os.getpid())
    assert own is not None
    about = {"version": "1", "host": "h", "gateway": "http://127.0.0.1:1", "nats": "n", "socket": "s", **fields}
    return state.State(pid=own.pid, start=own.start, **about)  # pyright: ignore[reportArgumentType] - test values


def test_the_back_off_doubles_up_to_its_limit_and_a_healthy_run_resets_it() -> None:
    restarts = Restarts()
    delays: list[float] = []
    for _ in range(9):
        restarts = restarts.died(1.0)
        delays.append(restarts.delay)
    assert delays == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0, 5.0]
    assert restarts.looping
    assert restarts.died(10.0) == Restarts(1)
    assert [Restarts(n).looping for n in (0, 4, 5)] == [False, False, True]


def test_a_home_is_private_also_one_that_was_not(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    home = Home(tmp_path)
    home.prepare()
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700
    assert home.log("gateway").parent.is_dir()


def test_a_home_that_cannot_be_made_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TrunklineError, match="choose another with --home"):
        Home(tmp_path / "file" / "home").prepare()


def test_a_host_keeps_its_id_and_a_damaged_one_is_not_replaced(tmp_path: Path) -> None:
    home = Home(tmp_path)
    first = host_id(home)
    assert host_id(home) == first
    assert first.startswith("hst_")
    for damaged in ("{}", '{"id": "me"}', ""):
        home.host_file.write_text(damaged)
        with pytest.raises(TrunklineError, match=r"host\.json"):
            host_id(home)


def test_the_lock_excludes_and_names_who_holds_it(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with HomeLock(home):
        with pytest.raises(TrunklineError, match="just starting"), HomeLock(home):
            pass
        state.write(home, current())
        with (
            pytest.raises(TrunklineError, match=f"process {os.getpid()} at http://127.0.0.1:1") as caught,
            HomeLock(home),
        ):
            pass
        assert caught.value.details == {"home": str(tmp_path), "pid": os.getpid(), "gateway": "http://127.0.0.1:1"}
    with HomeLock(home):
        pass


def test_the_state_is_private_read_back_and_removed_only_by_its_owner(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert state.read(home) is None
    written = current(children={"gateway": state.Process(pid=7, start=1.5)})
    state.write(home, written)
    assert state.read(home) == written
    assert stat.S_IMODE(home.state.stat().st_mode) == 0o600
    assert written.alive()
    assert list(tmp_path.iterdir()) == [home.state]
    home.state.write_bytes(home.state.read_bytes().replace(str(os.getpid()).encode(), b"1", 1))
    state.remove(home)
    assert home.state.exists()
    home.state.write_text("{")
    assert state.read(home) is None
    state.remove(home)
    assert not home.state.exists()


def test_a_pid_that_now_is_another_process_does_not_count_as_alive() -> None:
    own = state.Process.of(os.getpid())
    assert own is not None
    assert own.alive()
    assert not state.Process(pid=own.pid, start=own.start - 5).alive()


def test_a_wanted_port_must_be_free_and_none_takes_the_next() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        taken = holder.getsockname()[1]
        with pytest.raises(TrunklineError, match=f"port {taken} is taken"):
            gateway_port(taken)
    assert gateway_port(taken) == taken
    assert gateway_port(0) > 0
    assert gateway_port(None) >= 30086


def test_each_service_gets_its_own_key_and_the_gateway_its_port(tmp_path: Path) -> None:
    seeds = {user: tmp_path / f"{user}.nk" for user in ("worker", "gateway")}
    endpoint = Endpoint(nats_url="nats://n:1", seeds=seeds, gateway_port=99, drain_s=7)
    outer = {"PATH": "/bin", "ANTHROPIC_API_KEY": "k", "TRUNKLINE_NATS_SEED": "admin.nk"}
    specs = {service.name: child_spec(service, Home(tmp_path), endpoint, outer) for service in SERVICES}
    worker, gateway, projector = specs["adapters"], specs["gateway"], specs["projector"]
    assert worker.environment["TRUNKLINE_NATS_SEED"] == str(tmp_path / "worker.nk")
    assert worker.environment["ANTHROPIC_API_KEY"] == "k"
    assert gateway.environment["TRUNKLINE_GATEWAY_PORT"] == "99"
    assert "TRUNKLINE_GATEWAY_PORT" not in worker.environment
    assert "TRUNKLINE_NATS_SEED" not in projector.environment
    assert projector.argv[1:] == ["-m", "trunkline_projector"]
    assert projector.log == tmp_path / "logs" / "projector.log"


def test_services_are_chosen_by_name() -> None:
    assert chosen([]) == list(SERVICES)
    assert [service.user for service in chosen(["adapters"])] == ["worker"]
    with pytest.raises(TrunklineError, match="known are projector, permissions, teams, gateway, adapters"):
        chosen(["adapter"])


def test_the_gateway_s_own_word_of_its_address_counts_if_it_is_its_own(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert state.gateway_url(home, 7) is None
    home.gateway.write_text('{"url": "http://127.0.0.1:30087", "socket": "s", "pid": 7, "start": 1.0}')
    assert state.gateway_url(home, 7) == "http://127.0.0.1:30087"
    assert state.gateway_url(home, 8) is None
    home.gateway.write_text("{")
    assert state.gateway_url(home, 7) is None

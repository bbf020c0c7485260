import asyncio
import os
import subprocess
import sys

import nats
import nats.errors
import pytest

from trunkline_testkit import eventually, eventually_sync, processes
from trunkline_testkit.nats import NatsError, NatsLike, NatsServer
from trunkline_testkit.nats_cluster import NatsCluster
from trunkline_testkit.nats_sources import ExternalNats, shared_nats


async def test_the_shared_server_takes_messages(nats_server: NatsLike, nats_url: str) -> None:
    assert nats_url == nats_server.url
    connection = await nats.connect(nats_url)
    try:
        assert connection.max_payload == 1024 * 1024
        await connection.jetstream().account_info()
    finally:
        await connection.close()


async def test_a_killed_server_comes_back_with_its_store_on_its_port(fresh_nats: NatsServer) -> None:
    url = fresh_nats.url
    connection = await nats.connect(url, max_reconnect_attempts=-1, reconnect_time_wait=0.02, error_cb=quiet)
    try:
        stream = connection.jetstream()
        await stream.add_stream(name="KEPT", subjects=["kept.>"])
        await stream.publish("kept.one", b"1")

        fresh_nats.kill()
        assert not fresh_nats.running
        await asyncio.to_thread(fresh_nats.restart)

        assert fresh_nats.url == url
        await eventually(lambda: connection.is_connected)
        assert (await stream.stream_info("KEPT")).state.messages == 1
    finally:
        await connection.close()


async def test_a_paused_server_keeps_connections_and_answers_nothing(fresh_nats: NatsServer) -> None:
    connection = await nats.connect(fresh_nats.url, error_cb=quiet)
    try:
        fresh_nats.pause()
        with pytest.raises(nats.errors.TimeoutError):
            await connection.jetstream(timeout=0.3).account_info()
        assert connection.is_connected
        fresh_nats.resume()
        await connection.jetstream(timeout=5).account_info()
    finally:
        await connection.close()


def test_stop_leaves_no_process_and_no_files() -> None:
    server = NatsServer(sync_interval="always")
    server.start()
    home, pid = server.home, server.pid
    assert (home / "store" / "jetstream").is_dir()
    assert server.monitor("/jsz")["config"]["sync_always"] is True
    server.stop()
    server.stop()
    assert not home.exists()
    assert processes.snapshot(pid) is None
    with pytest.raises(NatsError, match="not running"):
        _ = server.pid


def test_terminate_keeps_the_store_even_of_a_paused_server() -> None:
    with NatsServer() as server:
        server.pause()
        server.terminate()
        assert "Server Exiting" in server.log_text()
        assert server.store.is_dir()


def test_a_broken_configuration_is_named() -> None:
    with pytest.raises(NatsError, match=r"ended at start: .*Parse error"):
        NatsServer(config="no_such_option: {").start()


def test_a_taken_port_makes_an_unknown_server_move_and_a_known_one_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    with NatsServer() as first:
        with monkeypatch.context() as once:
            once.setattr("trunkline_testkit.nats.free_port", lambda: first.port)
            second = NatsServer()
        assert second.port == first.port
        with second:
            assert second.port != first.port
        with pytest.raises(NatsError, match="address already in use"), NatsServer(port=first.port):
            pass


def test_a_server_does_not_outlive_a_killed_test_run() -> None:
    program = (
        "import sys; from trunkline_testkit.nats import NatsServer\n"
        "server = NatsServer(); server.start(); print(server.pid, server.home, flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        pid, home = owner.stdout.readline().decode().split()
        info = processes.snapshot(int(pid))
        assert info is not None
        owner.kill()
    processes.wait_gone_sync([info])
    subprocess.run(["rm", "-r", home], check=True)


@pytest.mark.slow
async def test_a_cluster_elects_another_leader_and_keeps_what_it_acknowledged() -> None:
    cluster = NatsCluster()
    await asyncio.to_thread(cluster.start)
    try:
        connection = await nats.connect(
            cluster.urls, max_reconnect_attempts=-1, reconnect_time_wait=0.05, error_cb=quiet
        )
        stream = connection.jetstream(timeout=10)
        await stream.add_stream(name="THREE", subjects=["three.>"], num_replicas=3)
        await stream.publish("three.one", b"1")

        leader = await asyncio.to_thread(cluster.stream_leader, "THREE")
        leader.kill()
        await asyncio.to_thread(leader.restart)
        await asyncio.to_thread(cluster.wait_ready)

        async def kept() -> bool:
            return (await stream.stream_info("THREE")).state.messages == 1

        assert await eventually(kept, 30, ignore=(nats.errors.Error,))
        await connection.close()
    finally:
        await asyncio.to_thread(cluster.stop)


def test_the_environment_names_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRUNKLINE_TEST_NATS", raising=False)
    assert isinstance(shared_nats(), NatsServer)
    monkeypatch.setenv("TRUNKLINE_TEST_NATS", "nats://127.0.0.1:4222")
    assert isinstance(server := shared_nats(), ExternalNats)
    assert server.url == "nats://127.0.0.1:4222"
    with pytest.raises(NatsError, match="use wheel, docker or a URL"):
        shared_nats("podman")


def test_the_server_sees_nothing_of_our_environment(fresh_nats: NatsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_MACHINE", "x")
    fresh_nats.restart()
    mine = eventually_sync(lambda: processes.marked("HOME", str(fresh_nats.home)))
    assert [info.pid for info in mine] == [fresh_nats.pid]
    environment = os.fsdecode(open(f"/proc/{fresh_nats.pid}/environ", "rb").read())  # noqa: PTH123, SIM115
    assert "SECRET_OF_THE_MACHINE" not in environment


async def quiet(error: Exception) -> None:
    """Lost connections are what these tests are about."""

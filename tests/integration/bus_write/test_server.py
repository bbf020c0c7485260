"""The embedded server: one owner, one store, one port."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from trunkline_bus import topology
from trunkline_bus.connection import Bus, BusSettings
from trunkline_bus.server import EmbeddedServer, ServerSettings
from trunkline_bus.store import is_full, store_limit, takes_writes
from trunkline_testkit import eventually
from trunkline_testkit.nats import NatsServer
from trunkline_testkit.ports import free_port
from trunkline_wire import TrunklineError


@pytest.fixture
def settings(tmp_path: Path) -> ServerSettings:
    return ServerSettings(directory=tmp_path / "nats", port=free_port())


async def test_a_restart_keeps_port_store_and_log(settings: ServerSettings) -> None:
    async with EmbeddedServer(settings) as server:
        async with Bus.open(BusSettings(url=server.url)) as bus:
            await topology.apply(bus.js)
            log_id = await bus.read_log_id()
        url = server.url
    # Another owner prefers another port: the one that clients know is kept.
    again = EmbeddedServer(ServerSettings(directory=settings.directory, port=free_port()))
    async with again, Bus.open(BusSettings(url=again.url)) as bus:
        assert again.url == url
        assert bus.log_id == log_id


async def test_a_port_that_is_taken_gives_the_next(settings: ServerSettings) -> None:
    with socket.create_server(("127.0.0.1", settings.port)):
        async with EmbeddedServer(settings) as server:
            assert server.port > settings.port


async def test_two_servers_never_share_a_store(settings: ServerSettings) -> None:
    async with EmbeddedServer(settings) as server:
        with pytest.raises(TrunklineError) as caught:
            await EmbeddedServer(settings).start()
        assert caught.value.code == "already_running"
        assert caught.value.details["pid"] == server.pid
    async with EmbeddedServer(settings):
        pass  # once the first has ended, the store is free


async def test_the_server_itself_holds_the_lock(settings: ServerSettings) -> None:
    """Even where the owner has let go of everything but the process."""
    server = EmbeddedServer(settings)
    await server.start()
    try:
        server._release_lock()  # pyright: ignore[reportPrivateUsage] - what the owner's death does
        with pytest.raises(TrunklineError, match="already_running"):
            await EmbeddedServer(settings).start()
    finally:
        await server.kill()
    async with EmbeddedServer(settings):
        pass


async def test_it_has_a_group_of_its_own_and_ends_on_request(settings: ServerSettings) -> None:
    server = EmbeddedServer(settings)
    await server.start()
    assert os.getpgid(server.pid) == server.pid != os.getpgid(0)
    waiting = asyncio.ensure_future(server.wait())
    assert await server.stop() in (0, 1)
    assert await waiting in (0, 1)
    assert not server.running
    with pytest.raises(TrunklineError, match="not_running"):
        assert server.pid


async def test_a_hung_server_is_killed(settings: ServerSettings) -> None:
    server = EmbeddedServer(settings)
    await server.start()
    os.kill(server.pid, signal.SIGSTOP)
    assert await server.stop(grace=0.2) == -signal.SIGKILL


OWNER = """
import asyncio, sys
from pathlib import Path
from trunkline_bus.server import EmbeddedServer, ServerSettings
async def main():
    server = EmbeddedServer(ServerSettings(directory=Path(sys.argv[1]), port=int(sys.argv[2])))
    await server.start()
    print(server.pid, flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


@pytest.fixture
def owner(settings: ServerSettings) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(settings.directory), str(settings.port)], stdout=subprocess.PIPE
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's death")
async def test_it_dies_with_its_owner(owner: subprocess.Popen[bytes], settings: ServerSettings) -> None:
    assert owner.stdout is not None
    pid = int(await asyncio.to_thread(owner.stdout.readline))
    process = psutil.Process(pid)
    assert process.is_running()
    owner.kill()
    await eventually(lambda: not process.is_running())
    async with EmbeddedServer(settings):
        pass


async def test_a_server_that_can_not_start_says_why(settings: ServerSettings, tmp_path: Path) -> None:
    broken = ServerSettings(directory=tmp_path / "broken", port=settings.port, authorization="nonsense {")
    with pytest.raises(TrunklineError, match="Parse error on line"):
        await EmbeddedServer(broken).start()


async def test_the_store_leaves_a_tenth_of_the_disk(tmp_path: Path) -> None:
    usage = psutil.disk_usage(str(tmp_path))
    total = os.statvfs(tmp_path).f_blocks * os.statvfs(tmp_path).f_frsize
    limit = store_limit(tmp_path)
    assert limit <= max(usage.free - total // 10, 0) + 64 * 1024 * 1024


async def test_a_failed_write_is_found_in_the_log_and_forgotten_with_a_restart(settings: ServerSettings) -> None:
    async with EmbeddedServer(settings) as server:
        assert not server.gave_up_writing()
        with server.log_path.open("a") as file:
            file.write("[1] [ERR] JetStream failed to store a msg on stream 'EVENTS': Critical wri")
            file.flush()
            assert not server.gave_up_writing()  # a line that is not whole yet
            file.write("te error: no space left on device\n")
        assert server.gave_up_writing()
        assert server.gave_up_writing()  # until it starts anew
        await server.restart()
        assert not server.gave_up_writing()


def test_room_is_found_by_writing_and_leaves_nothing(tmp_path: Path) -> None:
    assert takes_writes(tmp_path, size=1024)
    assert not is_full(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert not takes_writes(tmp_path / "gone")
    assert not is_full(tmp_path / "gone")


async def test_a_limit_below_what_the_streams_reserve_still_starts(settings: ServerSettings) -> None:
    """The disk got fuller: the store must come back with everything in it."""
    async with EmbeddedServer(settings) as server, Bus.open(BusSettings(url=server.url)) as bus:
        await topology.apply(bus.js, max_bytes=400_000_000)
        await bus.js.publish("trunk.ev.1.ses_x.agent.fact", b"kept")
    smaller = ServerSettings(directory=settings.directory, port=settings.port, max_file_store=100_000_000)
    async with EmbeddedServer(smaller) as server, Bus.open(BusSettings(url=server.url)) as bus:
        assert (await bus.js.get_msg("EVENTS", 1)).data == b"kept"
        await bus.js.publish("trunk.ev.1.ses_x.agent.fact", b"more")


async def test_no_server_is_told_in_words() -> None:
    with pytest.raises(TrunklineError) as caught:
        await Bus.open(BusSettings(url=f"nats://127.0.0.1:{free_port()}", connect_within=0.3))
    assert caught.value.code == "log_unavailable"
    assert "trunkline up" in caught.value.message


@pytest.mark.parametrize("steps", [*range(12), 20, 40, 80])
async def test_a_bus_that_is_cancelled_leaves_nothing_behind(fresh_nats: NatsServer, steps: int) -> None:
    """Cancelled after so many turns of the loop, while it opens, while it is open or while it closes: the trip-wires look."""

    async def use() -> None:
        async with Bus.open(BusSettings(url=fresh_nats.url)) as bus:
            await bus.writing.flush()

    task = asyncio.ensure_future(use())
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task

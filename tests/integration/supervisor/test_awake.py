"""The machine is kept awake while a worker of this host has a turn, and no longer. The program that does it is a stand-in."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from trunkline_bus import kv, topology
from trunkline_bus.connection import Bus, BusSettings
from trunkline_supervisor.awake import Awake
from trunkline_testkit import eventually
from trunkline_testkit.nats import NatsServer
from trunkline_testkit.processes import snapshot
from trunkline_wire import encode
from trunkline_wire.subjects import KV_WORKERS

SLEEPER = ("sh", "-c", "sleep 600 & wait")


@pytest_asyncio.fixture
async def bus(fresh_nats: NatsServer) -> AsyncIterator[Bus]:
    async with Bus.open(BusSettings(url=fresh_nats.url)) as opened:
        await topology.apply(opened.js)
        yield opened


async def announce(bus: Bus, worker: str, host: str, busy: int) -> None:
    await kv.put(bus, KV_WORKERS, worker, encode({"worker": worker, "host": host, "pid": 1, "busy": busy}))


async def test_sleep_is_inhibited_while_a_turn_runs_here(bus: Bus, tmp_path: Path) -> None:
    awake = Awake("hst_here", tmp_path / "log", lambda _: None, SLEEPER)
    running = asyncio.create_task(awake.run(bus))
    await announce(bus, "wrk_1", "hst_there", 3)
    await announce(bus, "wrk_2", "hst_here", 1)
    (first,) = await eventually(lambda: awake.pids)
    await announce(bus, "wrk_3", "hst_here", 1)
    await announce(bus, "wrk_2", "hst_here", 0)
    await kv.delete(bus, KV_WORKERS, "wrk_3")
    await eventually(lambda: not awake.pids)
    assert snapshot(first) is None
    await announce(bus, "wrk_2", "hst_here", 2)
    (second,) = await eventually(lambda: awake.pids)
    running.cancel()
    await asyncio.wait({running})
    assert snapshot(second) is None
    assert awake.pids == []


@pytest.mark.parametrize("argv", [(), ("no-such-program",)])
async def test_where_nothing_can_it_says_so(bus: Bus, tmp_path: Path, argv: tuple[str, ...]) -> None:
    told: list[str] = []
    await Awake("hst_here", tmp_path / "log", told.append, argv).run(bus)
    assert "can't be kept awake" in told[0]

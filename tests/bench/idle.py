"""Memory of the services that an idle session costs: private memory added by many sessions, per session."""

import asyncio
import os
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import psutil
from tests.bench.child import module
from tests.bench.projecting import session_events, store
from tests.bench.report import Figure

from trunkline_bus import kv, topology
from trunkline_bus.connection import Bus, BusSettings
from trunkline_testkit import eventually
from trunkline_testkit.nats import NatsServer
from trunkline_wire import subjects

SESSIONS: Final = 1000
TURNS: Final = 3
LIMIT_KB: Final = 100.0
SERVICES: Final = ("projector", "permissions", "gateway")


async def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as home, NatsServer() as server:
        async with AsyncExitStack() as stack:
            bus = await stack.enter_async_context(Bus.open(BusSettings(url=server.url, name="bench")))
            await topology.apply(bus.js)
            await bus.read_log_id()
            environment = {
                "PATH": os.environ["PATH"],
                "TRUNKLINE_HOME": home,
                "TRUNKLINE_NATS_URL": server.url,
                "TRUNKLINE_LOG_LEVEL": "error",
            }
            processes: dict[str, psutil.Process] = {}
            for name in SERVICES:
                arguments = ("--port", "0") if name == "gateway" else ()
                process = await stack.enter_async_context(
                    module(f"trunkline_{name}", *arguments, environment=environment)
                )
                processes[name] = psutil.Process(process.pid)
            await eventually((Path(home) / "gateway.json").exists, 60)
            # What the first sessions bring with them, caches and code, is no session's own.
            await fill(bus, 100)
            before = await settled(processes)
            await fill(bus, 100 + SESSIONS)
            after = await settled(processes)
    each = {name: (after[name] - before[name]) / SESSIONS / 1000 for name in SERVICES}
    total = Figure(
        name=f"memory of an idle session ({SESSIONS:,} of them)",
        unit="KB",
        value=sum(each.values()),
        limit=LIMIT_KB,
        limit_name="0.1 MB",
        goal=1.0,
        note=", ".join(f"{name} {size:.1f}" for name, size in each.items()) + " KB; without worker and agent",
    )
    return [total]


async def fill(bus: Bus, wanted: int) -> None:
    """Store sessions until there are `wanted`, and wait until they are projected."""
    there = await projected(bus)
    await store(bus, wanted - there, lambda: session_events(TURNS))
    async with asyncio.timeout(300):
        while await projected(bus) < wanted:  # noqa: ASYNC110 - another process's doing
            await asyncio.sleep(0.5)


async def projected(bus: Bus) -> int:
    return len(await kv.names(bus, subjects.KV_SESSIONS, "*.*"))


async def settled(processes: dict[str, psutil.Process]) -> dict[str, int]:
    """Private bytes of each, once they stay the same within a percent."""
    sizes = {name: process.memory_full_info().uss for name, process in processes.items()}
    for _ in range(30):
        await asyncio.sleep(2)
        former, sizes = sizes, {name: process.memory_full_info().uss for name, process in processes.items()}
        if all(abs(sizes[name] - former[name]) < former[name] / 100 for name in sizes):
            break
    return sizes

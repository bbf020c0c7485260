"""A real server, and a worker host in the test's process."""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from msgspec.structs import replace
from tests.integration.agentkit.hand import Hand

from trunkline_adapters.app import for_test
from trunkline_agentkit.host import WorkerHost
from trunkline_agentkit.registry import load
from trunkline_agentkit.settings import OwnerSettings
from trunkline_bus import topology
from trunkline_bus.connection import Bus, BusSettings
from trunkline_testkit.forbidden import TRUST_NOBODY
from trunkline_testkit.nats import NatsServer

MAX_BYTES = 64 * 1024 * 1024


@pytest_asyncio.fixture
async def bus(fresh_nats: NatsServer) -> AsyncIterator[Bus]:
    async with Bus.open(BusSettings(url=fresh_nats.url, name="test")) as bus:
        await topology.apply(bus.js, max_bytes=MAX_BYTES)
        await bus.read_log_id()
        yield bus


@pytest.fixture
def hand(bus: Bus, tmp_path: Path) -> Hand:
    return Hand(bus, tmp_path)


Host = Callable[..., Any]


@pytest_asyncio.fixture
async def run_host(bus: Bus, home: Path) -> AsyncIterator[Host]:
    """Starts a worker host in this process: `host = await run_host(idle_after=…)`."""
    async with AsyncExitStack() as stack:

        async def start(adapters: dict[str, Any] | None = None, **settings: Any) -> WorkerHost:
            options = replace(OwnerSettings(close_grace=2.0, tick=0.05), **settings)
            host = for_test(bus, home, adapters or {"demo": load("demo")}, options)
            stopping, ready = asyncio.Event(), asyncio.Event()
            task = asyncio.create_task(host.run(stopping, ready))
            waiting = asyncio.create_task(ready.wait())
            await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()

            async def stop() -> None:
                stopping.set()
                await task

            stack.push_async_callback(stop)
            return host

        yield start


Worker = asyncio.subprocess.Process
Start = Callable[..., Any]


@pytest_asyncio.fixture
async def start_worker(fresh_nats: NatsServer, home: Path, tmp_path: Path) -> AsyncIterator[Callable[..., Any]]:
    """Starts `python -m trunkline_adapters`, or another program, with nothing of the test's own environment."""
    workers: list[Worker] = []
    log = (tmp_path / "worker.log").open("ab")

    async def start(*program: str, **settings: str) -> Worker:
        worker = await asyncio.create_subprocess_exec(
            sys.executable,
            *(program or ("-m", "trunkline_adapters")),
            "--only",
            "demo",
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(tmp_path),
                "TRUNKLINE_HOME": str(home),
                "TRUNKLINE_NATS_URL": fresh_nats.url,
                **TRUST_NOBODY,
                **settings,
            },
            stdout=log,
            stderr=log,
        )
        workers.append(worker)
        return worker

    try:
        yield start
    finally:
        for worker in workers:
            with contextlib.suppress(ProcessLookupError):
                worker.kill()
            await worker.wait()
        log.close()

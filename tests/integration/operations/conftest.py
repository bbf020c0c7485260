"""Two servers, one with a log and one empty, and the command line on each."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from trunkline_bus import topology
from trunkline_bus.connection import Bus, BusSettings
from trunkline_testkit.nats import NatsServer


@pytest_asyncio.fixture
async def bus(fresh_nats: NatsServer) -> AsyncIterator[Bus]:
    async with Bus.open(BusSettings(url=fresh_nats.url)) as opened:
        await topology.apply(opened.js, max_bytes=256 * 1024 * 1024)
        await opened.read_log_id()
        yield opened


@pytest.fixture
def empty() -> Iterator[NatsServer]:
    with NatsServer(name="empty") as server:
        yield server


async def trunkline(url: str, home: Path, *args: str, seed: Path | None = None) -> tuple[int, str]:
    """The command, with its exit code and all that it printed."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "TRUNKLINE_NATS_URL": url, "LANG": "C.UTF-8"}
    if seed is not None:
        environment["TRUNKLINE_NATS_SEED"] = str(seed)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "trunkline_cli", *args),
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode()

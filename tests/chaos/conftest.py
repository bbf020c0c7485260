"""Stages for chaos tests: one nats-server that syncs always, or three nodes."""

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from trunkline_testkit.chaos.stage import Stage
from trunkline_testkit.nats import NatsServer
from trunkline_testkit.nats_cluster import NatsCluster


@pytest.fixture
def chaos_home() -> Iterator[Path]:
    """A private directory with a path short enough for unix sockets."""
    path = Path(tempfile.mkdtemp(prefix="tl-chaos-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@pytest_asyncio.fixture
async def stage(chaos_home: Path) -> AsyncIterator[Stage]:
    """R1."""
    async with Stage(NatsServer(sync_interval="always"), chaos_home) as stage:
        yield stage


@pytest_asyncio.fixture
async def stage3(chaos_home: Path) -> AsyncIterator[Stage]:
    """R3."""
    async with Stage(NatsCluster(sync_interval="always"), chaos_home) as stage:
        yield stage

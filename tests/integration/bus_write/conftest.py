"""A bus on a server of the test's own, with the topology applied."""

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from trunkline_bus import topology
from trunkline_bus.connection import Bus, BusSettings
from trunkline_testkit.nats import NatsServer
from trunkline_testkit.nats_cluster import NatsCluster


@pytest_asyncio.fixture
async def bus(fresh_nats: NatsServer) -> AsyncIterator[Bus]:
    async with Bus.open(BusSettings(url=fresh_nats.url)) as opened:
        await topology.apply(opened.js)
        await opened.read_log_id()
        yield opened


@pytest.fixture
def small_nats() -> Iterator[NatsServer]:
    """A server whose store is smaller than the log's default limit."""
    with NatsServer(max_file_store="1GB") as server:
        yield server


@pytest.fixture
def cluster() -> Iterator[NatsCluster]:
    with NatsCluster(sync_interval="always") as three:
        yield three

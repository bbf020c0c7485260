"""A bus on a server of the test's own, with the topology applied."""

from collections.abc import AsyncIterator

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

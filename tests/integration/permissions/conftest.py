"""A bus on a server of the test's own, a home with its policy, and a stage with a session that asks."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from trunkline_bus import topology
from trunkline_bus.connection import Bus, BusSettings
from trunkline_permissions.settings import PermissionsSettings
from trunkline_testkit.nats import NatsServer


@pytest_asyncio.fixture
async def bus(fresh_nats: NatsServer) -> AsyncIterator[Bus]:
    async with Bus.open(BusSettings(url=fresh_nats.url)) as opened:
        await topology.apply(opened.js)
        await opened.read_log_id()
        yield opened


@pytest.fixture
def settings(home: Path) -> PermissionsSettings:
    return PermissionsSettings(home=home, poll_s=0.02)

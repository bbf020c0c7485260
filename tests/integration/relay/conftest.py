"""The gateway is the real one, on a real nats-server; the relay is served in this process."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from tests.integration.gateway.rig import Rig
from tests.integration.relay import stage
from tests.integration.relay.stage import Served

from trunkline_relay.app import Host
from trunkline_testkit.nats import NatsServer


@pytest.fixture
async def rig(home: Path, fresh_nats: NatsServer) -> AsyncGenerator[Rig]:
    rig = Rig(home, fresh_nats)
    await rig.open()
    try:
        yield rig
    finally:
        await rig.close()


@pytest.fixture
async def relay() -> AsyncGenerator[Served]:
    async with stage.relay() as served:
        yield served


@pytest.fixture
async def host(rig: Rig, relay: Served) -> AsyncGenerator[Host]:
    async with stage.host(rig.home, relay.url) as made:
        yield made

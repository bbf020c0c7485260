"""A worker with the journalling agent, on one server that syncs always, and on three."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.chaos.commands.ground import PYTHONPATH, Ground, ground_on

from trunkline_testkit.chaos.stage import Stage
from trunkline_testkit.nats import NatsServer
from trunkline_testkit.nats_cluster import NatsCluster


@pytest.fixture(params=["R1", "R3"])
def servers(request: pytest.FixtureRequest) -> NatsServer | NatsCluster:
    return (NatsServer if request.param == "R1" else NatsCluster)(sync_interval="always")


@pytest_asyncio.fixture
async def ground(servers: NatsServer | NatsCluster, chaos_home: Path) -> AsyncIterator[Ground]:
    async with Stage(servers, chaos_home, environment={"PYTHONPATH": PYTHONPATH}) as stage, ground_on(stage) as ground:
        yield ground

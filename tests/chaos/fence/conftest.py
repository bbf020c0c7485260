"""Servers of the test's own that sync always: one, and three."""

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from tests.chaos.fence.ground import Ground, ground_on

from trunkline_bus import leader
from trunkline_testkit.nats import NatsServer
from trunkline_testkit.nats_cluster import NatsCluster


@pytest.fixture(params=["R1", "R3"])
def servers(request: pytest.FixtureRequest) -> Iterator[NatsServer | NatsCluster]:
    kind = NatsServer if request.param == "R1" else NatsCluster
    with kind(sync_interval="always") as servers:
        yield servers


@pytest_asyncio.fixture
async def ground(servers: NatsServer | NatsCluster) -> AsyncIterator[Ground]:
    async with ground_on(servers) as ground:
        yield ground


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """An acknowledgement that does not come is given up after a second: what was lost on its way is noticed sooner."""
    monkeypatch.setattr(leader, "ACK_WITHIN_S", 1.0)

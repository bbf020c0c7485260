"""A gateway on a real nats-server; the worker and the permission service are fakes that write what real ones would."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from tests.integration.gateway.rig import Rig

from trunkline_testkit.nats import NatsServer


@pytest.fixture
async def rig(home: Path, fresh_nats: NatsServer) -> AsyncGenerator[Rig]:
    """A running gateway; stopped and started at will."""
    rig = Rig(home, fresh_nats)
    await rig.open()
    try:
        yield rig
    finally:
        await rig.close()

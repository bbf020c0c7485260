"""A gateway in the test's own loop, beside the stages of the suite."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from tests.integration.gateway.rig import Rig

from trunkline_testkit.nats import NatsServer


@pytest.fixture
async def rig(home: Path, fresh_nats: NatsServer) -> AsyncGenerator[Rig]:
    """A running gateway with fakes for the worker and the permission service; stopped and started at will."""
    rig = Rig(home, fresh_nats)
    await rig.open()
    try:
        yield rig
    finally:
        await rig.close()

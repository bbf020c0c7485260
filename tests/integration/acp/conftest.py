"""One running instance for all tests of editors; each test makes sessions of its own."""

from collections.abc import AsyncGenerator, Generator

import pytest
from tests.integration.supervisor.running import Up, fresh_home, running

from trunkline_testkit.product import Client


@pytest.fixture(autouse=True)
def trip_wires() -> None:
    """Off: agents of the shared instance outlive the test that began them. `Up.stop` proves that none outlives it."""


@pytest.fixture(scope="session")
def up() -> Generator[Up]:
    with fresh_home() as home, running(home) as started:
        yield started


@pytest.fixture
async def browser(up: Up) -> AsyncGenerator[Client]:
    """Somebody else's client of the gateway."""
    async with await Client.connect("http://localhost", socket=up.state["socket"]) as client:
        yield client

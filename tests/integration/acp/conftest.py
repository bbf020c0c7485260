"""One running instance for all tests of editors; each test makes sessions of its own."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Generator

import aiohttp
import pytest
from tests.integration.supervisor.running import Up, fresh_home, running

from trunkline_testkit.product import Client


@pytest.fixture(autouse=True)
def trip_wires() -> None:
    """Off: agents of the shared instance outlive the test that began them. `Up.stop` proves that none outlives it."""


@pytest.fixture(scope="session")
def up() -> Generator[Up]:
    with fresh_home() as home:
        (home / "trunkline.toml").write_text("[gateway]\nacp = true\n")
        with running(home) as started:
            yield started


@pytest.fixture
async def browser(up: Up) -> AsyncGenerator[Client]:
    """Somebody else's client of the gateway."""
    async with asyncio.timeout(30):
        while (client := await _connected(up)) is None:  # noqa: ASYNC110  # a test before this one may have killed it
            await asyncio.sleep(0.1)
    async with client:
        yield client


async def _connected(up: Up) -> Client | None:
    with contextlib.suppress(OSError, ValueError, KeyError, aiohttp.ClientError):
        return await Client.connect("http://localhost", socket=up.state["socket"])
    return None

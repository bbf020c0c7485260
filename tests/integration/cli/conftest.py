"""One running instance for all tests of the command line; each test makes sessions of its own."""

from collections.abc import Generator

import pytest
from tests.integration.supervisor.running import Up, fresh_home, running


@pytest.fixture(autouse=True)
def trip_wires() -> None:
    """Off: agents of the shared instance outlive the test that began them. `Up.stop` proves that none outlives it."""


@pytest.fixture(scope="session")
def up() -> Generator[Up]:
    with fresh_home() as home, running(home) as started:
        yield started

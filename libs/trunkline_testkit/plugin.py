"""The pytest plugin of Trunkline: fixtures for real servers and a private home.

Registered for every environment that has the distribution; it only offers fixtures. The trip-wires are switched on
in a `conftest.py` (see `trunkline_testkit.tripwires`).
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

if TYPE_CHECKING:
    from trunkline_testkit.model_api import ScriptedApi
    from trunkline_testkit.nats import NatsLike, NatsServer

# So that a failed assert of the suite says what it compared, in other people's repositories too.
pytest.register_assert_rewrite("trunkline_agentkit.contract")


@pytest.fixture(scope="session")
def nats_server() -> Iterator[NatsLike]:
    """One nats-server with JetStream for all tests of this process: share it only with names of your own."""
    from trunkline_testkit.nats_sources import shared_nats

    server = shared_nats()
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def nats_url(nats_server: NatsLike) -> str:
    """The URL of the shared server."""
    return nats_server.url


@pytest.fixture
def fresh_nats() -> Iterator[NatsServer]:
    """A nats-server of the test's own (always from the wheel), empty, to kill, pause and restart at will.

    It costs about 20 ms: take it wherever fixed stream names would meet those of another test.
    """
    from trunkline_testkit.nats import NatsServer

    with NatsServer() as server:
        yield server


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty private directory (0700), in the environment as TRUNKLINE_HOME.

    Its path is short, because unix sockets live in it and theirs are limited to 107 bytes.
    """
    path = Path(tempfile.mkdtemp(prefix="tl-home-"))
    monkeypatch.setenv("TRUNKLINE_HOME", str(path))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@pytest_asyncio.fixture
async def scripted_api() -> AsyncIterator[ScriptedApi]:
    """The scripted Messages API, running in the test's own loop."""
    from trunkline_testkit.model_api import ScriptedApi

    async with ScriptedApi() as api:
        yield api


@pytest.fixture(scope="session")
def claude_program() -> Path:
    """The real, pinned Claude Code. Fails (or skips with TRUNKLINE_SKIP_LIVE=1) where it is not installed."""
    from trunkline_testkit.agents import require

    return require("claude")


@pytest.fixture(scope="session")
def codex_program() -> Path:
    """The real, pinned Codex. Fails (or skips with TRUNKLINE_SKIP_LIVE=1) where it is not installed."""
    from trunkline_testkit.agents import require

    return require("codex")

"""The running product with the real CLI on a scripted model API."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from trunkline_testkit.agents import agent_env, claude_path
from trunkline_testkit.model_api import ScriptedApi
from trunkline_testkit.product import Product, running


@pytest.fixture
async def api() -> AsyncGenerator[ScriptedApi]:
    async with ScriptedApi() as server:
        yield server


@pytest.fixture
def project(tmp_path: Path) -> Path:
    directory = tmp_path / "project"
    directory.mkdir()
    return directory


@pytest.fixture
async def product(api: ScriptedApi, tmp_path: Path) -> AsyncGenerator[Product]:
    claude = claude_path()
    assert claude is not None, "the real CLI is not installed: run `just agents`"
    home = tmp_path / "home"
    environment = {**agent_env(home, api.url), "TRUNKLINE_PROGRAM_CLAUDE": str(claude)}
    async with running(home, environment) as product:
        yield product

"""A real Chromium, and a product with the demo agent alone."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from playwright.async_api import Browser
from tests.e2e.browser import chromium

from trunkline_testkit.product import Product, running


@pytest.fixture
async def browser() -> AsyncGenerator[Browser]:
    async with chromium() as one:
        yield one


@pytest.fixture
async def product(tmp_path: Path) -> AsyncGenerator[Product]:
    async with running(tmp_path / "home") as up:
        yield up

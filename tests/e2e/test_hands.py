"""What hands do: keys that are meant for one thing and must not do another, and where the keyboard is while lists change."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect
from tests.e2e.browser import ABSENT, MISSING, chromium, screen

from trunkline_testkit.product import Product, running

pytestmark = [pytest.mark.browser, pytest.mark.skipif(ABSENT, reason=MISSING)]


@pytest.fixture
async def product(tmp_path: Path) -> AsyncGenerator[Product]:
    async with running(tmp_path / "home") as up:
        yield up


@pytest.fixture
async def browser() -> AsyncGenerator[Browser]:
    async with chromium() as one:
        yield one


async def test_escape_interrupts_the_agent_only_where_nothing_else_is_open(
    product: Product, browser: Browser, tmp_path: Path
) -> None:
    ann = await screen(browser, product)
    page = ann.page
    await ann.start("Demo agent", tmp_path, "slow 4000")
    await expect(page.locator(".said[data-open]")).to_contain_text("word3")
    await page.get_by_role("button", name="More").click()
    await page.get_by_role("button", name="Rename").click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await page.get_by_role("searchbox").fill("words")
    await page.keyboard.press("Escape")
    seen = await page.locator(".said[data-open]").inner_text()
    await expect(page.locator(".said[data-open]")).not_to_have_text(seen)
    await expect(page.locator(".turn")).to_have_count(0)
    await page.get_by_label("Message to the agent").press("Escape")
    await expect(page.locator(".turn")).to_contain_text("interrupted")
    assert ann.wrong == []

"""Out of the browser a session goes on in its agent's own terminal, is typed into there, and comes back."""

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect
from tests.e2e.browser import ABSENT, MISSING, screen
from tests.e2e.log import Log
from tests.live.test_hand_over import CASES, product_with

from trunkline_testkit.model_api import ScriptedApi

pytestmark = [
    pytest.mark.skipif(ABSENT, reason=MISSING),
    pytest.mark.browser,
    pytest.mark.live,
    pytest.mark.long,
    pytest.mark.timeout(600),
]


async def test_into_the_terminal_of_claude_code_and_back(browser: Browser, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    async with ScriptedApi() as api, product_with(CASES["claude"], api, tmp_path / "home", project) as product:
        ann = await screen(browser, product)
        page = ann.page
        path = await ann.start("Claude Code", project, "SAY=first answer.")
        log = Log(product, path)
        await log.answered("first answer.")
        await expect(page.get_by_role("link", name="Terminal", exact=True)).to_have_count(0)

        await page.get_by_role("button", name="More").click()
        await page.get_by_role("button", name="Go on in the agent's terminal").click()
        await page.wait_for_url("**/terminal/ses_*")
        await expect(page.locator(".xterm-rows")).to_contain_text("first answer.")
        await page.get_by_role("button", name="Type here").click()
        await expect(page.locator(".terminal .meta")).to_have_text("you type")
        await page.keyboard.type("SAY=second answer.\n")
        await expect(page.locator(".xterm-rows")).to_contain_text("● second answer.")

        await ann.open(path)
        await page.get_by_role("button", name="More").click()
        await page.get_by_role("button", name="Take it back from the terminal").click()
        await expect(page.locator(".said").last).to_contain_text("second answer.")
        await expect(page.get_by_role("link", name="Terminal", exact=True)).to_have_count(0)
        await ann.prompt("SAY=third answer.")
        await log.answered("third answer.")
        await expect(page.locator(".said").last).to_contain_text("third answer.")
        assert ann.wrong == []

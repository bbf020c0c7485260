"""The board of a team in a real Chromium: what is there, what changes, what is decided and asked for on it."""

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, expect
from tests.e2e.browser import ABSENT, MISSING, screen
from tests.e2e.crew import bus_of, crew

from trunkline_bus.reader import read
from trunkline_testkit.product import Product
from trunkline_wire import decode_command, subjects
from trunkline_wire.commands import Prompt

pytestmark = [pytest.mark.skipif(ABSENT, reason=MISSING), pytest.mark.browser]


async def test_a_board_shows_a_team_follows_it_and_asks_it_to_end(product: Product, browser: Browser) -> None:
    async with crew(product) as team:
        ann = await screen(browser, product)
        page = ann.page
        # the list leads to it
        await page.locator(".crew > .item").click()
        await expect(page.locator(".member")).to_have_count(3)
        await expect(page.locator(".member").first).to_contain_text("#2 Writing the tokenizer")
        await expect(page.locator(".node")).to_have_count(7)
        await expect(page.locator(".edge")).to_have_count(7)
        blocked = page.locator('.task-list [data-column="blocked"]')
        await expect(blocked).to_have_count(3)
        await expect(blocked.first).to_contain_text("waits for #2")
        await expect(page.locator(".thread")).to_have_count(2)
        await expect(page.locator('.request[data-outcome="open"]')).to_have_count(2)
        await expect(page.locator("tfoot")).to_contain_text("$0.94")  # (48200 + 31400 + 5100) / 90000

        # what happens shows by itself
        await team.update("2", lane="ann", status="completed")
        await expect(page.locator('[data-task="4"] .task')).to_have_attribute("data-column", "ready")
        await team.tell("bob", "team-lead", "Eleven tests, one fails.", "count")
        await expect(page.locator(".thread").first).to_contain_text("Eleven tests, one fails.")
        # tasks that wait for each other are drawn and named
        await team.update("1", addBlockedBy=["6"])
        await expect(page.locator(".cycles")).to_contain_text("wait for each other")
        await expect(page.locator(".node")).to_have_count(7)

        # a member's ask is decided here
        await team.ask("bob", "pytest -q")
        await expect(page.locator(".asked-by .who")).to_contain_text("bob")
        await expect(page.locator(".member").nth(1)).to_contain_text("waits for you")
        await page.locator(".ask").get_by_role("button", name="Allow").click()
        await expect(page.locator(".ask")).to_have_count(0)

        await page.get_by_role("button", name="Request shutdown").click()
        await page.get_by_label("Reason").fill("it is late")
        await page.get_by_role("button", name="Send the request").click()
        await expect(page.locator(".toast")).to_contain_text("has been asked")
        async with bus_of(product) as bus:
            (sent,) = await read(bus, subjects.COMMANDS, [f"trunk.cmd.{team.lead.session}.>"])
        command = decode_command(sent.raw)
        assert isinstance(command.args, Prompt)
        assert "Please shut down the team 'parser'" in str(command.args.content)
        assert "it is late" in str(command.args.content)

        await page.get_by_role("button", name="Columns").click()
        await expect(page.locator('.column[data-column="completed"] .task')).to_have_count(2)
        await team.lead.call("TeamDelete", "", {"success": True, "team_name": "parser"})
        await expect(page.locator(".head .meta")).to_contain_text("ended")
        await expect(page.get_by_role("button", name="Request shutdown")).to_have_count(0)
        assert ann.wrong == []


async def test_axe_finds_nothing_serious_on_a_board(product: Product, browser: Browser) -> None:
    async with crew(product) as team:
        await team.ask("bob", "pytest -q")
        for phone in (False, True):
            ann = await screen(browser, product, phone=phone, dark=phone)
            await ann.open(team.path)
            await ann.page.locator(".node").first.wait_for()
            await ann.page.locator(".ask").wait_for()
            result = (await Axe().run(ann.page)).response
            found = [one for one in result["violations"] if one["impact"] in {"serious", "critical"}]
            assert [f"{one['id']}: {one['nodes'][0]['html']}" for one in found] == []
            # nothing is wider than the screen
            assert await ann.page.evaluate("document.querySelector('.page').scrollWidth <= innerWidth")
            assert ann.wrong == []

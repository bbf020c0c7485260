"""The overview in a real Chromium: what goes on shows by itself, to owners; and it can be read by everybody who may."""

from pathlib import Path

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import expect
from tests.e2e.browser import ABSENT, MISSING, chromium, screen

from trunkline_testkit.product import running

pytestmark = [pytest.mark.skipif(ABSENT, reason=MISSING), pytest.mark.browser]

GRAFANA = "https://grafana.example.org/d/trunkline"


async def test_an_overview_follows_what_goes_on(tmp_path: Path) -> None:
    home = tmp_path / "home" / ".trunkline"
    home.mkdir(parents=True, mode=0o700)
    (home / "trunkline.toml").write_text(f'[gateway]\ndashboards = {{ Grafana = "{GRAFANA}" }}\n')
    async with running(tmp_path / "home") as product, chromium() as browser:
        async with await product.client() as client:
            made = await client.call("session.create", adapter="demo", cwd=str(tmp_path), title="Tests")
            session = made["session"]
            await client.subscribe(session, start="start")
            ann = await screen(browser, product)
            page = ann.page
            await page.get_by_role("link", name="Overview", exact=True).click()
            waiting = page.locator(".kinds li").first
            await expect(waiting).to_have_text("0 Waiting for you")
            await expect(page.get_by_role("link", name="Grafana")).to_have_attribute("href", GRAFANA)
            await expect(page.locator(".workers")).to_contain_text("demo 1")
            await client.call("session.prompt", session=session, text="novelty; ask make test")
            await expect(waiting).to_have_text("1 Waiting for you")
            await expect(page.get_by_label("Asks", exact=True)).to_contain_text("Tests")
            await expect(page.get_by_label("Drift").locator(".figure")).to_have_text("1")
            await expect(page.locator("tbody th").filter(has_text="sessions")).to_have_count(1)
            state = (await client.call("session.get", session=session))["state"]
            for path, dark in (("/overview", False), ("/overview", True), (f"/workspace/{state['workspace']}", True)):
                await page.emulate_media(color_scheme="dark" if dark else "light")
                await ann.open(path)
                await expect(page.locator(".kinds li").first).to_have_text("1 Waiting for you")
                result = (await Axe().run(page)).response
                found = [one for one in result["violations"] if one["impact"] in {"serious", "critical"}]
                assert [f"{path} {one['id']}: {one['nodes'][0]['html']}" for one in found] == []
            await ann.open("/overview")
            asked = await client.wait("permission.requested")
            await client.call("ask.answer", ask=asked["data"]["ask"], behaviour="allow")
            await expect(waiting).to_have_text("0 Waiting for you")
            assert ann.wrong == []
        eve = await screen(browser, product, role="approver", phone=True)
        await eve.open("/overview")
        await expect(eve.page.locator(".overview")).to_contain_text("The overview is for owners")

"""The app as an installed program: it opens without its gateway, changes to a newer build when told to, and notifies."""

import json
import shutil
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.async_api import expect
from tests.e2e.browser import ABSENT, BUILD, MISSING, chromium, screen

from trunkline_testkit import eventually
from trunkline_testkit.product import running

pytestmark = [pytest.mark.skipif(ABSENT, reason=MISSING), pytest.mark.browser]

CONTROLLED: Final = "navigator.serviceWorker.controller !== null"
UPDATE: Final = "navigator.serviceWorker.getRegistration().then(found => found.update()).then(() => null)"
SHOWN: Final = (
    "navigator.serviceWorker.getRegistration().then(found => found.getNotifications())"
    ".then(all => all.map(one => `${one.title} ${one.tag}`))"
)
HIDDEN: Final = "Object.defineProperty(document, 'hidden', { get: () => true, configurable: true })"


def newer(build: Path) -> None:
    """Another build in place of the one there: its first script has another name."""
    (script,) = (build / "assets").glob("index-*.js")
    script.rename(script.with_name("index-newer.js"))
    (script.with_name(f"{script.name}.gz")).unlink()
    for name in ("index.html", "sw.js"):
        page = build / name
        page.write_text(page.read_text().replace(script.name, "index-newer.js").replace('BUILD = "', 'BUILD = "newer-'))
    (build / "sw.js.gz").unlink()


async def test_it_opens_without_its_gateway_and_changes_to_a_newer_build(tmp_path: Path) -> None:
    build = tmp_path / "app"
    shutil.copytree(BUILD, build)
    async with chromium() as browser:
        async with running(tmp_path / "home", {"TRUNKLINE_GATEWAY_APP": str(build)}) as product:
            ann = await screen(browser, product)
            page = ann.page
            await eventually(lambda: page.evaluate(CONTROLLED), 30)
            await expect(page.locator(".newer")).to_have_count(0)
            newer(build)
            await page.evaluate(UPDATE)
            await page.locator(".newer").get_by_role("button", name="Reload").click()
            await expect(page.locator("script[src='/assets/index-newer.js']")).to_have_count(1)
            await expect(page.locator(".connection[data-state=open]").first).to_be_visible()
            await expect(page.locator(".newer")).to_have_count(0)
            assert ann.wrong == []
        await ann.open("/asks")
        await expect(page.locator(".offline")).to_contain_text("The gateway can't be reached")
        await expect(page.locator("script[src='/assets/index-newer.js']")).to_have_count(1)
        # nothing but the newest build is kept
        assert len(await page.evaluate("caches.keys()")) == 1


async def test_an_ask_is_a_notification_until_somebody_has_decided_it(tmp_path: Path) -> None:
    async with running(tmp_path / "home") as product, chromium() as browser, await product.client() as client:
        made = await client.call("session.create", adapter="demo", cwd=str(tmp_path), title="Tests")
        await client.subscribe(made["session"], start="start")
        ann = await screen(browser, product)
        await ann.context.grant_permissions(["notifications"], origin=ann.url)
        await eventually(lambda: ann.page.evaluate(CONTROLLED), 30)
        await ann.page.evaluate(HIDDEN)
        await client.call("session.prompt", session=made["session"], text="ask make test")
        asked = await client.wait("permission.requested")
        ask = asked["data"]["ask"]

        async def shown(*wanted: str) -> bool:
            return await ann.page.evaluate(SHOWN) == list(wanted)

        await eventually(lambda: shown(f"Allow {asked['data']['name']}? {ask}"), 20)
        await client.call("ask.answer", ask=ask, behaviour="allow")
        await eventually(shown, 20)
        assert ann.wrong == []


async def test_a_push_message_is_a_notification_while_nobody_looks_at_the_app(tmp_path: Path) -> None:
    """The browser delivers it to the real service worker; where it would come from is tested without one."""
    async with running(tmp_path / "home") as product, chromium() as browser:
        ann = await screen(browser, product)
        page = ann.page
        await ann.context.grant_permissions(["notifications"], origin=ann.url)
        await eventually(lambda: page.evaluate(CONTROLLED), 30)
        workers = await ann.context.new_cdp_session(page)
        found: list[str] = []

        def registered(told: dict[str, Any]) -> None:
            found.extend(one["registrationId"] for one in told["registrations"])

        workers.on("ServiceWorker.workerRegistrationUpdated", registered)
        await workers.send("ServiceWorker.enable")
        await eventually(lambda: found)

        async def push(ask: str) -> None:
            data = json.dumps({"title": "Allow Bash?", "body": "Tests", "path": "/asks", "ask": ask})
            told = {"origin": ann.url, "registrationId": found[0], "data": data}
            await workers.send("ServiceWorker.deliverPushMessage", told)

        await push("ask_seen")
        await page.goto("about:blank")
        await push("ask_unseen")
        # no page of the app, which would take back what does not wait
        await page.goto(f"{ann.url}/health")

        async def shown() -> bool:
            return await page.evaluate(SHOWN) == ["Allow Bash? ask_unseen"]

        await eventually(shown, 20)

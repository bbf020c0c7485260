"""A browser on another network: paired by a link and a code, it steers, decides and types by a relay that serves the app and reads nothing."""

import asyncio
import hashlib
import json
import re
import shutil
import sys
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final, Protocol

import pytest
from playwright.async_api import Browser, expect
from tests.e2e.browser import ABSENT, BUILD, MISSING, PHONE, Screen
from tests.integration.relay.scripted_host import ScriptedHost, gateway_at
from tests.integration.relay.stage import noted

from trunkline_relay.server import Serving, serving
from trunkline_relay.server_settings import ServerSettings
from trunkline_seal import control
from trunkline_seal.app_digest import manifest_digest
from trunkline_testkit import eventually
from trunkline_testkit.product import Product, running

pytestmark = [pytest.mark.skipif(ABSENT, reason=MISSING), pytest.mark.browser]

WORDS: Final = "the heron lands at seven"
KEPT: Final = """new Promise(resolve => { const opening = indexedDB.open('trunkline', 1); opening.onsuccess = () => {
  const got = opening.result.transaction('keys').objectStore('keys').get('host');
  got.onsuccess = () => resolve({ fields: Object.keys(got.result).sort(), extractable: got.result.wrapping.extractable }) } })"""

LEFT: Final = """new Promise(resolve => { const opening = indexedDB.open('trunkline', 1); opening.onsuccess = () => {
  const got = opening.result.transaction('keys').objectStore('keys').getAllKeys();
  got.onsuccess = () => resolve(got.result) } })"""

VOUCHED: Final = """new Promise(resolve => { const opening = indexedDB.open('trunkline', 1); opening.onsuccess = () => {
  const got = opening.result.transaction('keys').objectStore('keys').get('apps');
  got.onsuccess = () => resolve(got.result.length === 2) } })"""
CONTROLLED: Final = "navigator.serviceWorker.controller !== null"
REJECTED: Final = """navigator.serviceWorker.getRegistration().then(found => found.update()).then(
  found => new Promise(resolve => {
    const one = found.installing;
    if (one === null) return resolve(found.waiting === null ? 'redundant' : 'waiting');
    one.onstatechange = () => resolve(one.state);
  }), () => 'refused')"""


class Address(Protocol):
    """Of a relay."""

    @property
    def url(self) -> str: ...


def relay(build: Path = BUILD) -> AbstractAsyncContextManager[Serving]:
    return serving(ServerSettings(port=0, app=build))


@asynccontextmanager
async def product_at(relay: Serving, home: Path) -> AsyncGenerator[Product]:
    state = home / ".trunkline"
    state.mkdir(parents=True)
    (state / "trunkline.toml").write_text(f'[relay]\nkind = "embedded"\nurl = "{relay.url}"\nname = "box"\n')
    async with running(home) as product:
        await eventually(lambda: relay.switch.hosts, 20)
        yield product


async def paired(
    browser: Browser, product: Product, relay: Address, answer: bytes = b"y\n", *, hide: bool = False
) -> Screen:
    """A phone that has opened the link of `trunkline pair`, may `hide` lengths; the person at the host has compared the codes and says `answer`."""
    pair = asyncio.subprocess.PIPE
    command = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "trunkline_cli", "pair"), env=product.environment, stdin=pair, stdout=pair, stderr=pair
    )
    assert command.stdin is not None
    assert command.stdout is not None
    link = (await command.stdout.readline()).decode().strip()
    context = await browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True)
    page = await context.new_page()
    phone = Screen(context, page, relay.url)
    await page.goto(link)
    await page.get_by_label("Name of this device").fill("Ann's phone")
    assert page.url == f"{relay.url}/pair"
    assert await page.evaluate("history.length") <= 2
    await page.get_by_label("Hide lengths").set_checked(hide)
    await page.get_by_role("button", name="Pair").click()
    code = await page.locator(".pair-code strong").inner_text()
    command.stdin.write(answer)
    _, err = await command.communicate()
    assert code in err.decode()
    return phone


@pytest.fixture
def carried(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    return noted(monkeypatch)


async def test_a_phone_pairs_steers_and_decides(browser: Browser, tmp_path: Path, carried: list[bytes]) -> None:
    async with relay() as served, product_at(served, tmp_path / "home") as product:
        phone = await paired(browser, product, served)
        page = phone.page
        await page.wait_for_url(f"{served.url}/")
        await page.locator(".connection[data-state=open]").first.wait_for(state="attached")
        assert await page.evaluate(KEPT) == {
            "fields": sorted(
                [
                    "relay",
                    "host",
                    "route",
                    "identity",
                    "number",
                    "device",
                    "actor",
                    "role",
                    "pad",
                    "wrapping",
                    "iv",
                    "secrets",
                ]
            ),
            "extractable": False,
        }
        await phone.start("Demo agent", tmp_path, f"say {WORDS}; ask make test; slow 60")
        await expect(page.locator(".said").first).to_have_text(WORDS)
        await page.locator(".ask").get_by_role("button", name="Allow").click()
        await expect(page.locator(".asked")).to_contain_text("allowed by")
        async with await product.client() as client:
            (ask,) = (await client.call("ask.list", status="decided"))["asks"]
        assert ask["decision"]["signature"]["device"].startswith("dev_")
        # the relay loses everybody in mid-stream
        await expect(page.locator(".said").last).to_contain_text("word5")
        for place in list(served.switch.hosts.values()):
            for visit in list(place.visits.values()):
                place.leave(visit, "a test")
        whole = " ".join(f"word{number}" for number in range(60))
        await expect(page.locator(".said").last).to_have_text(whole)
        await expect(page.locator(".turn")).to_contain_text("done")
        assert phone.wrong == []
        (device,) = await _devices(product)
        code, _, err = await product.cli("devices", "revoke", device)
        assert code == 0, err
        await expect(page.locator(".sign-in")).to_be_visible()
    assert len(carried) > 20
    assert WORDS.encode() not in b"".join(carried)


async def test_a_terminal_is_typed_into_through_the_relay(
    browser: Browser, tmp_path: Path, carried: list[bytes]
) -> None:
    async with relay() as served, product_at(served, tmp_path / "home") as product:
        phone = await paired(browser, product, served, hide=True)
        page = phone.page
        await page.wait_for_url(f"{served.url}/")
        async with await product.client() as client:
            made = await client.call("session.create", adapter="pty", agent="shell", cwd=str(tmp_path))
        await phone.open(f"/terminal/{made['session']}")
        await page.get_by_role("button", name="Type here").click()
        await expect(page.locator(".terminal .meta")).to_have_text("you type")
        await page.locator(".terminal .screen").click()
        # more than the window has room for
        await page.keyboard.type("seq 1 200000 | tr '\\n' ' '; clear; echo $((40 + 2))-typed\n")
        await expect(page.locator(".xterm-rows")).to_contain_text("42-typed")
        # the keyboard stays where it was when everybody has to come again
        (place,) = served.switch.hosts.values()
        for visit in list(place.visits.values()):
            place.leave(visit, "a test")
        await expect(page.locator(".terminal .meta")).to_have_text("connecting again …")
        await expect(page.locator(".terminal .meta")).to_have_text("you type")
        await page.keyboard.type("clear; echo $((40 + 3))-typed\n")
        await expect(page.locator(".xterm-rows")).to_contain_text("43-typed")
        assert phone.wrong == []
    # Two messages of each end say who is there and what it wants; of all others the lengths are multiples of 256 and the seal's 17.
    lengths: dict[bytes, list[int]] = {}
    for envelope in carried:
        lengths.setdefault(envelope[1:17], []).append(len(envelope) - 21)
    padded = [(length - 17) % 256 for one in lengths.values() for length in one[4:]]
    assert len(padded) > 20
    assert set(padded) == {0}


async def test_who_signs_out_is_no_device_any_more_if_the_host_can_be_told(browser: Browser, tmp_path: Path) -> None:
    async with relay() as served:
        async with product_at(served, tmp_path / "home") as product:
            leaves, stays = [await paired(browser, product, served) for _ in range(2)]
            for phone in (leaves, stays):
                await phone.page.locator(".connection[data-state=open]").first.wait_for(state="attached")
            assert len(await _devices(product)) == 2
            await leaves.page.get_by_role("button", name="Sign out").click()
            await expect(leaves.page.get_by_role("alert")).to_have_text("This browser is no longer paired.")
            (device,) = await _devices(product)
        await stays.page.locator(".connection[data-state=waiting]").first.wait_for(state="attached")
        await stays.page.get_by_role("button", name="Sign out").click()
        await expect(stays.page.get_by_role("alert")).to_contain_text("still lists it")
        await expect(stays.page.get_by_role("alert")).to_contain_text(f"trunkline devices revoke {device}")
        for phone in (leaves, stays):
            assert await phone.page.evaluate(LEFT) == []


async def test_who_is_refused_at_the_host_is_told_so(browser: Browser, tmp_path: Path) -> None:
    async with relay() as served, product_at(served, tmp_path / "home") as product:
        phone = await paired(browser, product, served, b"n\n")
        await expect(phone.page.get_by_role("alert")).to_contain_text("(bad_pairing)")
        await phone.page.goto(f"{served.url}/pair#1.AAAA")
        await expect(phone.page.get_by_role("alert")).to_contain_text("(bad_params)")
        assert phone.page.url == f"{served.url}/pair"


async def test_a_relay_can_not_change_the_app_that_a_host_vouches_for(browser: Browser, tmp_path: Path) -> None:
    build = tmp_path / "app"
    shutil.copytree(BUILD, build)
    vouched = manifest_digest((build / "app.json").read_bytes())
    async with (
        relay(build) as served,
        running(tmp_path / "home") as product,
        ScriptedHost(served.url, gateway_at(product.state["gateway"])) as host,
    ):
        made = {"device": "dev_1", "actor": "ann", "role": "owner", "token": product.token, "host": "box"}
        host.answer.set_result({"paired": made})
        host.about = {"app": control.b64(vouched)}
        # of another app than it serves, nothing is paired
        context = await browser.new_context()
        page = await context.new_page()
        await page.goto(await host.offer(app=bytes(31) + b"x"))
        await expect(page.get_by_role("alert")).to_contain_text("(other_app)")
        assert host.opened == []
        await page.goto(await host.offer(app=vouched))
        await page.get_by_role("button", name="Pair").click()
        await page.wait_for_url(f"{served.url}/")
        await page.locator(".connection[data-state=open]").first.wait_for(state="attached")
        await eventually(lambda: page.evaluate(CONTROLLED), 30)
        # another page, or another file of the same name, never comes from the relay any more
        (build / "index.html").write_text("<title>evil</title>")
        (script,) = (build / "assets").glob("index-*.js")
        script.write_text("document.title = 'evil'")
        script.with_name(f"{script.name}.gz").unlink()
        await page.goto(f"{served.url}/asks")
        await page.locator(".connection[data-state=open]").first.wait_for(state="attached")
        assert "evil" not in await page.title()
        # what is no part of the app does not come at all
        assert await page.evaluate("fetch('/evil.js').then(() => 'came', () => 'refused')") == "refused"
        # and a new build does not get in: neither with other files than the vouched ones, nor with a list of its own
        worker = build / "sw.js"
        for name in ("newer", "newest"):
            worker.write_text(re.sub('BUILD = "', f'BUILD = "{name}-', worker.read_text(), count=1))
            (build / "sw.js.gz").unlink(missing_ok=True)
            assert await page.evaluate(REJECTED) == "redundant"
            files = {str(path.relative_to(build)): sha256(path) for path in build.rglob("*.*") if path.suffix != ".gz"}
            (build / "app.json").write_text(json.dumps({"files": files}))
        await expect(page.locator(".newer")).to_have_count(0)
        await page.reload()
        await page.locator(".connection[data-state=open]").first.wait_for(state="attached")
        assert "evil" not in await page.title()
        # once the host vouches for it, it does
        host.about = {"app": control.b64(manifest_digest((build / "app.json").read_bytes()))}
        before = len(host.opened)
        await host.cut()
        await eventually(lambda: len(host.opened) > before, 20)
        await eventually(lambda: page.evaluate(VOUCHED), 20)
        assert await page.evaluate(REJECTED) in {"installed", "waiting"}


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


async def _devices(product: Product) -> list[str]:
    async with await product.client() as client:
        return [one["id"] for one in (await client.call("device.list"))["devices"]]

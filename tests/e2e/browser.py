"""A real Chromium at the running product: the app as people have it, on a wide screen and on a phone."""

import contextlib
import json
import shutil
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final

from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    ViewportSize,
    async_playwright,
    expect,
)

from trunkline_testkit.product import Product

CHROMIUM: Final = shutil.which("chromium")
BUILD: Final = Path(__file__).parents[2] / "services" / "trunkline_gateway" / "static" / "app"
BUILT: Final = (BUILD / "index.html").is_file()
MISSING: Final = "needs the system's `chromium`" if CHROMIUM is None else "needs the built app: `just web`"
ABSENT: Final = CHROMIUM is None or not BUILT
FLAGS: Final = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDE: Final[ViewportSize] = {"width": 1280, "height": 800}
PHONE: Final[ViewportSize] = {"width": 390, "height": 844}


# A machine with other work is slow, and nothing here waits for what must not come.
expect.set_options(timeout=60_000)


@contextlib.asynccontextmanager
async def chromium(*flags: str, program: Path | str | None = CHROMIUM) -> AsyncGenerator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=[*FLAGS, *flags])
        try:
            yield browser
        finally:
            await browser.close()


class Screen:
    """A browser of one person, signed in by a link. `wrong` collects what the page complains of."""

    def __init__(self, context: BrowserContext, page: Page, url: str) -> None:
        self.context = context
        self.page = page
        self.url = url
        self.wrong: list[str] = []
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.wrong.append(str(error)))

    def _said(self, message: ConsoleMessage) -> None:
        # a connection that is cut is no fault of the page
        if message.type == "error" and "WebSocket connection" not in message.text:
            self.wrong.append(message.text)

    async def open(self, path: str = "/") -> None:
        await self.page.goto(f"{self.url}{path}")

    async def prompt(self, text: str) -> None:
        await self.page.get_by_label("Message to the agent").fill(text)
        await self.page.get_by_role("button", name="Send").click()

    async def start(self, agent: str, cwd: Path, text: str, **settings: str) -> str:
        """Start a session by the form; its path in the app."""
        await self.open("/new")
        await self.page.get_by_role("radio", name=agent).check()
        await self.page.get_by_label("Directory").fill(str(cwd))
        for label, value in settings.items():
            await self.page.get_by_label(label, exact=True).fill(value)
        await self.page.get_by_label("What is to be done").fill(text)
        await self.page.get_by_role("button", name="Start", exact=True).click()
        await self.page.wait_for_url("**/session/ses_*")
        return self.page.url.removeprefix(self.url)


async def screen(
    browser: Browser,
    product: Product,
    *,
    phone: bool = False,
    dark: bool = False,
    role: str = "owner",
    url: str | None = None,
) -> Screen:
    """A new browser profile that opens a sign-in link, as a person would. `url`: another way to the gateway."""
    code, link, error = await product.cli("sign-in", "--role", role)
    assert code == 0, error
    context = await browser.new_context(
        viewport=PHONE if phone else WIDE,
        has_touch=phone,
        is_mobile=phone,
        device_scale_factor=2 if phone else 1,
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
    )
    page = await context.new_page()
    made = Screen(context, page, url or product.state["gateway"])
    address = next(word for word in link.split() if "#code=" in word)
    await page.goto(address.replace(product.state["gateway"], made.url))
    await page.locator(".connection[data-state=open]").first.wait_for(state="attached")
    return made


async def with_token(browser: Browser, url: str, token: str, *, phone: bool = False, script: str = "") -> Screen:
    """A new browser profile whose tab has a token. `script` runs in each page before anything of the page does."""
    context = await browser.new_context(viewport=PHONE if phone else WIDE, has_touch=phone, is_mobile=phone)
    await context.add_init_script(f"sessionStorage.setItem('token', {json.dumps(token)});{script}")
    return Screen(context, await context.new_page(), url)

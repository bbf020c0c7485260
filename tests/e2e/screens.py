"""`just screens`: the app's main views, on a phone and on a wide screen, into tests/e2e/screens/."""

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Final

from playwright.async_api import Browser
from tests.e2e.browser import ABSENT, MISSING, Screen, chromium, screen
from tests.e2e.crew import crew

from trunkline_testkit.product import Client, Product, running

INTO: Final = Path(__file__).parent / "screens"
FIRST: Final = "say The parser is `src/parser.py`, 212 lines; its tests are thin."
TEXT: Final = (
    "say I looked at the parser. **Two cases** are missing:\n\n1. an empty line in the middle of a block\n2. a tab after `#`\n\n"
    "```python\ndef parse(line: str) -> Node:\n    return Node(line.strip())  # loses the tab\n```\n\nI will write the tests first.; "
    "ask pytest tests/test_parser.py -q"
)


async def begin(client: Client, cwd: Path, title: str, prompt: str) -> str:
    await asyncio.to_thread(cwd.mkdir, parents=True, exist_ok=True)
    made = await client.call("session.create", adapter="demo", cwd=str(cwd), title=title)
    session = made["session"]
    await client.subscribe(session, start="start")
    await client.call("session.prompt", session=session, text=prompt)
    return session


async def _shoot(one: Screen, name: str, path: str, ready: str, *, tall: int | None = None) -> None:
    """What fits on the screen; with `tall` of one that is so high, in pixels."""
    size = one.page.viewport_size
    if tall is not None and size is not None:
        await one.page.set_viewport_size({"width": size["width"], "height": tall})
    await one.open(path)
    await one.page.locator(ready).first.wait_for()
    await one.page.wait_for_load_state("networkidle")
    await one.page.screenshot(path=INTO / f"{name}.png")
    if size is not None:
        await one.page.set_viewport_size(size)


async def take(product: Product, browser: Browser, work: Path) -> None:
    """All of them, of sessions and a team that begin here."""
    async with await product.client() as client, crew(product) as team:
        parser = await begin(client, work / "parser", "Tests for the parser", FIRST)
        await client.wait("turn.completed", session=parser)
        await client.call("session.prompt", session=parser, text=TEXT)
        await client.wait("permission.requested", session=parser)
        site = await begin(client, work / "site", "Which colours?", "question Shall the site have a dark theme?")
        await client.wait("question.asked", session=site)
        done = await begin(client, work / "site", "Footer links", "say The footer has the three links now.")
        await client.wait("turn.completed", session=done)
        busy = await begin(client, work / "parser", "Long migration", "slow 4000")
        await client.wait("message.delta", session=busy)
        for name, phone, dark in (("wide", False, False), ("phone", True, False), ("phone-dark", True, True)):
            one = await screen(browser, product, phone=phone, dark=dark)
            await _shoot(one, f"{name}-sessions", "/", ".item")
            await _shoot(one, f"{name}-session", f"/session/{parser}", ".ask")
            await _shoot(one, f"{name}-asks", "/asks", ".ask")
            await _shoot(one, f"{name}-streaming", f"/session/{busy}", ".said")
            await _shoot(one, f"{name}-team", team.path, ".node", tall=None if phone else 1180)
            await _shoot(one, f"{name}-overview", "/overview", ".kinds", tall=None if phone else 1020)
            if not dark:
                await _shoot(one, f"{name}-new", "/new", ".choice")
            if one.wrong:
                sys.exit("\n".join(one.wrong))
            await one.context.close()
        await client.call("session.interrupt", session=busy)


async def main() -> None:
    INTO.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="tl-screens-") as home:
        async with running(Path(home)) as product, chromium() as browser:
            await take(product, browser, Path(home) / "work")


if __name__ == "__main__":
    if ABSENT:
        sys.exit(f"the screenshots want more than there is: {MISSING}")
    asyncio.run(main())

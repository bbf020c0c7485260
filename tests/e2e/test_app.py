"""The app in a real Chromium against the running product: sign in, start, follow, decide, interrupt; and what may go wrong."""

import asyncio
from pathlib import Path

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, expect
from tests.e2e.browser import ABSENT, MISSING, screen

from trunkline_testkit.product import Product

pytestmark = pytest.mark.skipif(ABSENT, reason=MISSING)


async def test_start_follow_decide_and_interrupt_with_a_phone_that_watches(
    product: Product, browser: Browser, tmp_path: Path
) -> None:
    ann = await screen(browser, product)
    path = await ann.start("Demo agent", tmp_path, "say Hello from **the agent**; ask make test")
    await expect(ann.page.locator(".markdown strong")).to_have_text("the agent")
    phone = await screen(browser, product, phone=True)
    await phone.open("/asks")
    card = phone.page.locator(".ask")
    await expect(card).to_contain_text("make test")
    await expect(ann.page.locator(".ask .command")).to_have_text("make test")
    assert await ann.page.title() != (await ann.page.title()).lstrip("(")
    await card.get_by_role("button", name="Allow").click()
    # decided on the phone: gone on both, with a name, and signed by the device that it is
    await expect(ann.page.locator(".ask")).to_have_count(0)
    await expect(phone.page.locator(".ended")).to_contain_text("allowed by")
    await expect(ann.page.locator(".asked")).to_contain_text("allowed by")
    await expect(ann.page.locator(".turn")).to_contain_text("done")
    async with await product.client() as client:
        (ask,) = (await client.call("ask.list", status="decided"))["asks"]
    assert ask["decision"]["signature"]["device"].startswith("dev_")
    await ann.prompt("slow 4000")
    await expect(ann.page.locator(".said[data-open]")).to_contain_text("word5")
    # who joins late sees the message from its beginning, and the end of it
    await phone.open(path)
    await expect(phone.page.locator(".said[data-open]")).to_contain_text("word0 word1 word2")
    await expect(phone.page.locator(".latest")).to_have_count(0)
    await ann.page.keyboard.press("Escape")
    await expect(ann.page.locator(".turn").last).to_contain_text("interrupted")
    await expect(phone.page.locator(".turn").last).to_contain_text("interrupted")
    assert ann.wrong == phone.wrong == []


@pytest.mark.browser
async def test_a_gateway_that_is_killed_in_mid_stream_costs_nothing(
    product: Product, browser: Browser, tmp_path: Path
) -> None:
    ann = await screen(browser, product)
    await ann.start("Demo agent", tmp_path, "slow 120")
    said = ann.page.locator(".said")
    await expect(said).to_contain_text("word10")
    old = product.kill("gateway")
    await expect(ann.page.locator(".connection[data-state=open]")).to_have_count(0)
    # what is written meanwhile goes out once, when the connection is back
    await ann.prompt("say written without a connection")
    await expect(ann.page.locator(".waiting")).to_contain_text("when the connection is back")
    await product.restarted("gateway", old)
    await expect(ann.page.locator(".turn")).to_have_count(2, timeout=60_000)
    whole = " ".join(f"word{number}" for number in range(120))
    await expect(said.first).to_have_text(whole)
    await expect(ann.page.locator(".user").filter(has_text="written without a connection")).to_have_count(1)
    await expect(said.last).to_have_text("written without a connection")
    await expect(ann.page.locator(".waiting")).to_have_count(0)


@pytest.mark.browser
async def test_words_for_the_agent_edited_inputs_and_answers(
    product: Product, browser: Browser, tmp_path: Path
) -> None:
    ann = await screen(browser, product)
    await ann.start("Demo agent", tmp_path, "ask rm -rf build; ask make all; question Which one?")
    page = ann.page
    await page.locator(".ask").focus()
    await page.keyboard.press("d")
    await page.get_by_label("What the agent is told").fill("use make clean")
    await page.keyboard.press("Enter")
    await expect(page.locator(".asked").first).to_contain_text("use make clean")
    await page.locator(".ask").get_by_role("button", name="Edit").click()
    await page.get_by_label("The command").fill("make one")
    await page.get_by_role("button", name="Allow this instead").click()
    await expect(page.locator(".tool").nth(1)).to_contain_text("done")
    await page.locator(".tool summary").nth(1).click()
    await expect(page.locator(".tool .inside").first).to_contain_text("ran: make one")
    await page.get_by_role("radio", name="no", exact=True).check()
    await page.get_by_role("button", name="Answer").click()
    await expect(page.locator(".turn")).to_contain_text("done")
    assert ann.wrong == []


@pytest.mark.browser
async def test_a_moment_that_has_passed_is_shown_as_it_was(product: Product, browser: Browser, tmp_path: Path) -> None:
    ann = await screen(browser, product)
    await ann.start("Demo agent", tmp_path, "say the first answer")
    await expect(ann.page.locator(".turn")).to_have_count(1)
    await ann.prompt("say the second answer")
    await expect(ann.page.locator(".turn")).to_have_count(2)
    await ann.page.locator(".turn .moment").first.click()
    await expect(ann.page.locator(".banner")).to_contain_text("As it was then")
    await expect(ann.page.locator(".said")).to_have_text(["the first answer"])
    await ann.page.get_by_role("link", name="Back to now").click()
    await expect(ann.page.locator(".said")).to_have_text(["the first answer", "the second answer"])
    assert ann.wrong == []


@pytest.mark.browser
async def test_files_go_with_a_prompt_and_what_the_agent_cannot_take_is_refused(
    product: Product, browser: Browser, tmp_path: Path
) -> None:
    ann = await screen(browser, product)
    await ann.start("Demo agent", tmp_path, "say ready")
    await expect(ann.page.locator(".turn")).to_have_count(1)
    files = ann.page.get_by_label("Attach files")
    await files.set_input_files({"name": "dot.png", "mimeType": "image/png", "buffer": b"\x89PNG"})
    await expect(ann.page.locator(".toast")).to_contain_text("This agent takes no pictures")
    await files.set_input_files({"name": "notes.txt", "mimeType": "text/plain", "buffer": b"three words here"})
    await expect(ann.page.locator(".attachments")).to_contain_text("notes.txt")
    await ann.prompt("say with a file")
    await expect(ann.page.locator(".user").last).to_contain_text("notes.txt")
    await expect(ann.page.locator(".turn")).to_have_count(2)
    assert ann.wrong == []


@pytest.mark.browser
@pytest.mark.parametrize("dark", [False, True])
async def test_axe_finds_nothing_serious(product: Product, browser: Browser, tmp_path: Path, *, dark: bool) -> None:
    ann = await screen(browser, product, dark=dark)
    path = await ann.start("Demo agent", tmp_path, "say **words** and `code`; ask make test")
    await expect(ann.page.locator(".ask")).to_be_visible()
    found: list[str] = []
    for where in (path, "/asks", "/new", "/"):
        await ann.open(where)
        await ann.page.locator(".item").first.wait_for()
        await ann.page.locator(".ask, .choice, .welcome").first.wait_for()
        result = (await Axe().run(ann.page)).response
        found += [
            f"{where}: {one['id']}: {one['nodes'][0]['html']}"
            for one in result["violations"]
            if one["impact"] in {"serious", "critical"}
        ]
    assert found == []


HOSTILE = (
    "say <script>window.pwned = 1</script><img src=x onerror='window.pwned = 2'> [a](javascript:window.pwned=3) "
    "![b](https://example.org/track.png) <style>body{display:none}</style> <a href='x' onclick='window.pwned=4'>c</a>"
)


@pytest.mark.browser
async def test_what_an_agent_says_runs_no_script_and_loads_nothing(
    product: Product, browser: Browser, tmp_path: Path
) -> None:
    ann = await screen(browser, product)
    asked: list[str] = []
    ann.page.on("request", lambda request: asked.append(request.url))
    await ann.start("Demo agent", tmp_path, f"{HOSTILE}; ask echo safe\u202egnp.exe")
    await expect(ann.page.locator(".said")).to_contain_text("<script>")
    # what turns the direction of writing around is shown as what it is
    await expect(ann.page.locator(".ask .command")).to_have_text("echo safe\\u202egnp.exe")
    for link in await ann.page.locator(".said a").all():
        await expect(link).not_to_have_attribute("href", "javascript:window.pwned=3")
    assert await ann.page.evaluate("window.pwned") is None
    assert await ann.page.locator(".said img, .said script, .said style").count() == 0
    assert [url for url in asked if not url.startswith((ann.url, "ws://", "data:"))] == []
    assert ann.wrong == []


@pytest.mark.browser
async def test_a_viewer_sees_and_may_nothing(product: Product, browser: Browser, tmp_path: Path) -> None:
    ann = await screen(browser, product)
    path = await ann.start("Demo agent", tmp_path, "ask make test")
    await expect(ann.page.locator(".ask")).to_be_visible()
    eve = await screen(browser, product, role="viewer")
    await eve.open(path)
    await expect(eve.page.locator(".ask")).to_contain_text("needs the role approver")
    assert await eve.page.locator(".ask").get_by_role("button", name="Allow").count() == 0
    assert await eve.page.get_by_label("Message to the agent").count() == 0
    await eve.open("/new")
    await expect(eve.page.locator(".new")).to_contain_text("A viewer starts no sessions")
    # nothing leads there, and an empty list says why it is empty
    await eve.page.get_by_role("searchbox").fill("what nobody has said")
    await expect(eve.page.locator(".sessions .empty")).to_have_text("Nothing found.")
    await ann.open(path)
    await ann.page.locator(".ask").get_by_role("button", name="Deny").click()
    await ann.page.get_by_label("What the agent is told").press("Enter")
    await eve.page.get_by_role("searchbox").fill("")
    await eve.page.get_by_role("button", name="Waiting").click()
    await expect(eve.page.locator(".sessions .empty")).to_have_text("No session waits for you.")
    await expect(eve.page.get_by_role("link", name="New")).to_have_count(0)


@pytest.mark.browser
async def test_a_terminal_is_typed_into(product: Product, browser: Browser, tmp_path: Path) -> None:
    ann = await screen(browser, product)
    async with await product.client() as client:
        made = await client.call("session.create", adapter="pty", agent="shell", cwd=str(tmp_path))
    guest = await screen(browser, product, role="viewer")
    await guest.open(f"/terminal/{made['session']}")
    await expect(guest.page.locator(".terminal .idle")).to_contain_text("needs the role participant; yours is viewer")
    await ann.open(f"/terminal/{made['session']}")
    await ann.page.get_by_role("button", name="Type here").click()
    await expect(ann.page.locator(".terminal .meta")).to_have_text("you type")
    await ann.page.keyboard.type("printf '\\033[38;2;1;2;3mcolour\\033[0m'; echo $((40 + 2))-typed\n")
    for one in (ann, guest):
        await expect(one.page.locator(".xterm-rows")).to_contain_text("42-typed")
    await expect(guest.page.locator(".terminal .meta")).to_have_text("root types; you can only look")
    assert ann.wrong == []


@pytest.mark.browser
async def test_a_long_session_keeps_few_rows_and_brings_older_pages(
    product: Product, browser: Browser, tmp_path: Path
) -> None:
    async with await product.client() as client:
        made = await client.call("session.create", adapter="demo", cwd=str(tmp_path))
        session = made["session"]
        await client.subscribe(session, start="start")
        for number in range(150):
            await client.call("session.prompt", session=session, text=f"say answer {number}")
            await asyncio.sleep(0)
        await client.wait("turn.completed", session=session, count=150, within=90)
    ann = await screen(browser, product)
    await ann.open(f"/session/{session}")
    await expect(ann.page.locator(".said").last).to_have_text("answer 149")
    assert await ann.page.locator(".row").count() < 100
    scroller = ann.page.locator(".scroller")
    async with asyncio.timeout(60):
        while await ann.page.locator(".beginning").count() == 0:
            await scroller.evaluate("element => { element.scrollTop = 0; }")
            await ann.page.wait_for_timeout(100)
    await scroller.evaluate("element => { element.scrollTop = 0; }")
    await expect(ann.page.locator(".said").first).to_have_text("answer 0")
    assert ann.wrong == []

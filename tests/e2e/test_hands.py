"""What hands do: keys that are meant for one thing and must not do another, and where the keyboard is while lists change."""

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect
from tests.e2e.browser import ABSENT, MISSING, screen
from tests.e2e.screens import begin

from trunkline_testkit.line import Line
from trunkline_testkit.product import Product

pytestmark = [pytest.mark.browser, pytest.mark.skipif(ABSENT, reason=MISSING)]


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
    await expect(page.get_by_role("button", name="More")).to_be_focused()
    await page.get_by_role("searchbox").fill("words")
    await page.keyboard.press("Escape")
    seen = await page.locator(".said[data-open]").inner_text()
    await expect(page.locator(".said[data-open]")).not_to_have_text(seen)
    await expect(page.locator(".turn")).to_have_count(0)
    await page.get_by_label("Message to the agent").press("Escape")
    await expect(page.locator(".turn")).to_contain_text("interrupted")
    assert ann.wrong == []


async def test_a_decision_made_elsewhere_puts_no_other_ask_under_ones_keys(
    product: Product, browser: Browser, tmp_path: Path
) -> None:
    async with await product.client() as client:
        made: list[str] = []
        asks: list[str] = []
        for name in ("first", "second", "third"):
            made.append(await begin(client, tmp_path / name, name, f"ask {name}"))
            asks.append((await client.wait("permission.requested", session=made[-1]))["data"]["ask"])
        ann = await screen(browser, product)
        page = ann.page
        await ann.open("/asks")
        cards = page.locator(".ask")
        await expect(cards).to_have_count(3)
        await cards.first.focus()
        await client.call("ask.answer", session=made[0], ask=asks[0], behaviour="deny")
        await expect(cards).to_have_count(2)
        await page.keyboard.press("a")
        # one's own decision leads on to the next, and a key that is held down decides nothing more
        await cards.first.focus()
        await page.keyboard.down("a")
        await page.keyboard.down("a")
        await expect(cards).to_have_count(1)
        await expect(cards.first).to_be_focused()
        await expect(cards).to_contain_text("third")
        # words that are being written stay where they are written
        await page.keyboard.up("a")
        await page.keyboard.press("d")
        await expect(page.get_by_label("What the agent is told")).to_be_focused()
        await page.keyboard.press("Escape")
        await expect(cards.first).to_be_focused()
        decided = {
            one["ask"]: one["decision"]["behaviour"]
            for one in (await client.call("ask.list", status="decided"))["asks"]
        }
    assert decided == {asks[0]: "deny", asks[1]: "allow"}


async def test_the_keyboard_stays_on_a_line_of_the_list_that_changes_and_moves(
    product: Product, browser: Browser, tmp_path: Path
) -> None:
    async with await product.client() as client:
        made = [await begin(client, tmp_path / "here", name, "say begun") for name in ("one", "two", "three")]
        for one in made:
            await client.wait("turn.completed", session=one)
        ann = await screen(browser, product)
        page = ann.page
        lines = page.locator(".item")
        await expect(lines).to_have_count(3)
        oldest = page.locator(f"a.item[href='/session/{made[0]}']")
        await oldest.focus()
        for one in (made[1], made[0]):
            await client.call("session.prompt", session=one, text="say moved up")
            await expect(lines.first).to_contain_text("moved up")
            await expect(page.locator(f"a.item[href='/session/{one}']")).to_contain_text("moved up")
            await expect(oldest).to_be_focused()
        await expect(lines.first).to_be_focused()


async def test_a_session_is_begun_over_a_connection_that_comes_back(
    product: Product, browser: Browser, tmp_path: Path
) -> None:
    async with Line(product.state["gateway"]) as line:
        ann = await screen(browser, product, url=line.url, phone=True)
        page = ann.page
        await line.cut()
        await expect(page.locator(".connection[data-state=open]")).to_have_count(0)
        await page.get_by_role("navigation", name="Main").get_by_role("link", name="New").click()
        await expect(page.locator("main .connection")).to_be_visible()
        await expect(page.locator(".agents")).to_contain_text("Looking for agents")
        await page.get_by_label("What is to be done").fill("say begun")
        # what was to be done is still there, whoever looks elsewhere meanwhile
        await page.get_by_role("link", name="Waiting").click()
        await page.go_back()
        await line.mend()
        await page.get_by_role("radio", name="Demo agent").check()
        await page.get_by_label("Directory").fill(str(tmp_path))
        await page.get_by_role("button", name="Start", exact=True).click()
        await expect(page.locator(".said")).to_have_text("begun")
        # the form is none to come back to, and is empty
        await page.go_back()
        await expect(page.locator(".item")).to_be_visible()
        await page.get_by_role("navigation", name="Main").get_by_role("link", name="New").click()
        await expect(page.get_by_label("What is to be done")).to_have_value("")


async def test_what_is_attached_is_kept_while_one_looks_elsewhere_and_comes_back_with_its_prompt(
    product: Product, browser: Browser, tmp_path: Path
) -> None:
    async with Line(product.state["gateway"]) as line:
        ann = await screen(browser, product, url=line.url)
        page = ann.page
        await ann.start("Demo agent", tmp_path, "say ready")
        await expect(page.locator(".turn")).to_have_count(1)
        note = {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"three words here"}
        await page.get_by_label("Attach files").set_input_files(note)  # pyright: ignore[reportArgumentType]
        await page.get_by_role("link", name="Waiting for you").click()
        await expect(page.get_by_role("heading", name="Waiting for you")).to_be_visible()
        await page.go_back()
        await expect(page.locator(".attachments")).to_contain_text("notes.txt")
        await line.cut()
        await expect(page.locator(".connection[data-state=open]")).to_have_count(0)
        await ann.prompt("say with a file")
        await expect(page.locator(".attachments")).to_have_count(0)
        await page.locator(".waiting").get_by_role("button", name="Edit").click()
        await expect(page.locator(".attachments")).to_contain_text("notes.txt")
        await expect(page.get_by_label("Message to the agent")).to_have_value("say with a file")
        await page.get_by_role("button", name="Send").click()
        await line.mend()
        await expect(page.locator(".user").last).to_contain_text("notes.txt")
        await expect(page.locator(".turn")).to_have_count(2)


@pytest.mark.parametrize("phone", [False, True])
async def test_each_page_has_one_main_part_which_the_keyboard_reaches_and_a_title(
    product: Product, browser: Browser, tmp_path: Path, *, phone: bool
) -> None:
    ann = await screen(browser, product, phone=phone)
    page = ann.page
    path = await ann.start("Demo agent", tmp_path, "say ready")
    titles = {"/": "Trunkline", "/asks": "Waiting for you · Trunkline", "/new": "New session · Trunkline"}
    for where, title in (titles | {path: "say ready · Trunkline"}).items():
        await ann.open(where)
        await page.locator(".skip").wait_for()
        await expect(page).to_have_title(title)
        await expect(page.get_by_role("main")).to_have_count(1)
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("main")).to_be_focused()
    # what one came by is gone with the page before: the keyboard is in the new one
    await ann.open("/")
    if phone:
        await page.locator(".item").press("Enter")
        await expect(page.locator("main")).to_be_focused()
    assert ann.wrong == []


async def test_who_may_not_choose_sees_what_was_chosen_and_nothing_is_chosen_of_what_is_over(
    product: Product, browser: Browser, tmp_path: Path
) -> None:
    async with await product.client() as client:
        made = await begin(client, tmp_path / "here", "Here", "say ready")
        await client.wait("turn.completed", session=made)
        ann = await screen(browser, product, role="participant")
        chosen = ann.page.locator(".chosen")
        await ann.open(f"/session/{made}")
        await expect(ann.page.get_by_label("Model", exact=True)).to_have_value("demo-small")
        await expect(chosen).to_have_text(["Mode: ask"])
        await expect(chosen).to_have_attribute("title", "Changing it needs the role approver.")
        await client.call("session.close", session=made)
        await expect(chosen).to_have_text(["Model: demo-small", "Mode: ask"])
        await expect(ann.page.get_by_label("Model", exact=True)).to_have_count(0)
        await expect(ann.page.locator(".head .status")).to_have_attribute("data-tone", "rest")
        await ann.open("/session/ses_" + "0" * 32)
        await expect(ann.page.get_by_role("heading", name="This session can't be shown")).to_be_visible()
        await expect(ann.page.get_by_role("alert").first).to_contain_text("there is no session")


DROP = """() => {
    const files = new DataTransfer();
    files.items.add(new File(["three words here"], "notes.txt", { type: "text/plain" }));
    const event = new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: files });
    return document.querySelector(".scroller").dispatchEvent(event);
}"""


async def test_an_arrow_back_leads_where_one_came_from_and_files_may_be_dropped_anywhere(
    product: Product, browser: Browser, tmp_path: Path
) -> None:
    async with await product.client() as client:
        made = await begin(client, tmp_path / "here", "Here", "ask make test")
        await client.wait("permission.requested", session=made)
    phone = await screen(browser, product, phone=True)
    page = phone.page
    await phone.open("/asks")
    await page.locator(".ask").get_by_role("link", name="Here").click()
    await expect(page.locator(".scroller")).to_contain_text("ask make test")
    assert await page.evaluate(DROP) is False, "the browser would open the file"
    await expect(page.locator(".attachments")).to_contain_text("notes.txt")
    await page.get_by_role("link", name="Back").click()
    await expect(page.get_by_role("heading", name="Waiting for you")).to_be_visible()
    # who came from elsewhere comes to the list
    await phone.open(f"/session/{made}")
    await page.get_by_role("link", name="Back").click()
    await expect(page.locator(".item")).to_be_visible()
    assert phone.wrong == []


async def test_a_link_that_is_opened_again_signs_nobody_out_and_who_signs_out_leaves_no_words(
    product: Product, browser: Browser, tmp_path: Path
) -> None:
    code, told, error = await product.cli("sign-in")
    assert code == 0, error
    link = next(word for word in told.split() if "#code=" in word)
    ann = await screen(browser, product)
    page = ann.page
    await page.goto(link)
    await expect(page.locator(".connection[data-state=open]")).to_be_visible()
    other = await page.context.new_page()
    await other.goto(link)
    await expect(other.locator(".toast")).to_contain_text("the link was used before")
    await expect(other.locator(".connection[data-state=open]")).to_be_visible()
    await other.close()
    await ann.start("Demo agent", tmp_path, "say ready")
    await page.get_by_label("Message to the agent").fill("what nobody else should read")
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_role("alert")).to_have_text("You have signed out.")
    assert "read" not in await page.evaluate("JSON.stringify(localStorage)")
    # whoever comes next sees what is theirs, from the beginning
    await page.get_by_label("Token").fill(product.token)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.locator(".item")).to_be_visible()
    await page.goto(f"{ann.url}/sign-in#code=none")
    await expect(page.locator(".toast")).to_contain_text("the link was used before")
    elsewhere = await browser.new_page()
    await elsewhere.goto(link)
    await expect(elsewhere.get_by_role("alert")).to_contain_text("the link was used before")

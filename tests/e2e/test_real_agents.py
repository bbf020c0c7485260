"""Real agents' programs, offline on a scripted model, driven as people do: in a real Chromium, on a wide screen and on a phone."""

import asyncio
import base64
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.async_api import Browser, Page, expect
from tests.e2e.browser import ABSENT, MISSING, Screen, screen
from tests.e2e.log import Log, squeezed
from tests.live.test_teams import SWITCHES, using

from trunkline_testkit import eventually
from trunkline_testkit.agents import require
from trunkline_testkit.line import Line
from trunkline_testkit.model_api import ScriptedApi
from trunkline_testkit.offline import offline_env
from trunkline_testkit.product import Product, running

pytestmark = [pytest.mark.live, pytest.mark.timeout(1800), pytest.mark.skipif(ABSENT, reason=MISSING)]

SECONDS: Final = 1_000
CLAUDE: Final = "Claude Code"
GEMINI: Final = "Gemini CLI"
PIXEL: Final = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
        "0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
    )
).decode()
PASTE: Final = """([selector, type, data]) => {
    const bytes = Uint8Array.from(atob(data), (sign) => sign.charCodeAt(0));
    const files = new DataTransfer();
    files.items.add(new File([bytes], "pixel.png", { type: "image/png" }));
    const given = { bubbles: true, cancelable: true };
    const event = type === "paste"
        ? new ClipboardEvent(type, { ...given, clipboardData: files })
        : new DragEvent(type, { ...given, dataTransfer: files });
    document.querySelector(selector).dispatchEvent(event);
}"""


@pytest.fixture
async def api() -> AsyncGenerator[ScriptedApi]:
    async with ScriptedApi() as server:
        yield server


@pytest.fixture
async def product(api: ScriptedApi, tmp_path: Path) -> AsyncGenerator[Product]:
    home = tmp_path / "home"
    environment = offline_env("claude", home, api.url) | {"TRUNKLINE_PROGRAM_CLAUDE": str(require("claude"))}
    async with running(home, environment) as up:
        yield up


@pytest.fixture
async def product_with_both(api: ScriptedApi, tmp_path: Path) -> AsyncGenerator[Product]:
    home = tmp_path / "home"
    require("gemini")
    environment = (
        offline_env("claude", home, api.url)
        | offline_env("gemini", home, api.url)
        | {"TRUNKLINE_PROGRAM_CLAUDE": str(require("claude"))}
    )
    async with running(home, environment) as up:
        yield up


@pytest.fixture
def project(tmp_path: Path) -> Path:
    directory = tmp_path / "project"
    directory.mkdir()
    return directory


def card(page: Page) -> Any:
    return page.locator(".ask")


async def test_a_session_of_claude_code_on_a_wide_screen_and_a_phone(
    product: Product, browser: Browser, project: Path, api: ScriptedApi
) -> None:
    ann = await screen(browser, product)
    phone = await screen(browser, product, phone=True)
    path = await ann.start(CLAUDE, project, "SCENARIO=hold")
    log = Log(product, path)
    # who joins while it is written sees the message from its beginning
    await api.wait_holding(timeout=60)
    await phone.open(path)
    await expect(phone.page.locator(".said[data-open]")).to_contain_text("Holding.")
    await expect(ann.page.locator(".said[data-open]")).to_contain_text("Holding.")
    await ann.page.keyboard.press("Escape")
    await expect(ann.page.locator(".turn")).to_contain_text("interrupted")
    await expect(phone.page.locator(".turn")).to_contain_text("interrupted")
    await approve_with_a_watcher(ann, phone, project, log)
    await answer_a_question(ann, phone, api, log)
    await log.is_shown(ann.page)
    await log.is_shown(phone.page)
    assert ann.wrong == phone.wrong == []


async def approve_with_a_watcher(ann: Screen, phone: Screen, project: Path, log: Log) -> None:
    await ann.prompt(f"SCENARIO=bash CMD=touch {project / 'approved'}")
    await expect(card(ann.page).locator(".command")).to_have_text(f"touch {project / 'approved'}")
    await expect(card(phone.page).locator(".command")).to_have_text(f"touch {project / 'approved'}")
    await card(phone.page).get_by_role("button", name="Allow", exact=True).click()
    for one in (ann, phone):
        await expect(card(one.page)).to_have_count(0)
        await expect(one.page.locator(".asked").last).to_contain_text("allowed by")
    await log.answered("SCENARIO=bash CMD=touch")
    assert (project / "approved").exists()


async def answer_a_question(ann: Screen, phone: Screen, api: ScriptedApi, log: Log) -> None:
    await ann.prompt("SCENARIO=question")
    await phone.page.get_by_role("radio", name="Blue").check()
    await phone.page.get_by_role("button", name="Answer").click()
    await log.answered("SCENARIO=question")
    assert "Blue" in api.tool_results[-1].text


@pytest.mark.long
async def test_everything_that_claude_code_lets_one_do(
    product_with_both: Product, browser: Browser, project: Path, api: ScriptedApi
) -> None:
    product = product_with_both
    async with Line(product.state["gateway"]) as line:
        ann = await screen(browser, product, url=line.url)
        path = await ann.start(CLAUDE, project, "SAY=Hello from **Claude**", Model="sonnet")
        log = Log(product, path)
        await log.answered("Hello from **Claude**")
        await expect(ann.page.locator(".said strong")).to_have_text("Claude")
        await deny_with_words(ann, project, api, log)
        await allow_always(ann, project, log)
        await edit_the_input(ann, project, log)
        await answer_in_own_words(ann, api, log)
        await approve_a_plan(ann, log)
        await steer_and_queue(ann, api, log)
        await attach_pictures(ann, api, log)
        await run_a_slash_command(ann, log)
        await switch(ann)
        await log.is_shown(ann.page)
        ann.wrong.clear()
        await lose_the_network(ann, line, log)
        await kill_the_gateway(ann, product, log)
        await log.is_shown(ann.page)
        ann.wrong.clear()
        await look_back(ann, path)
        await put_files_back(ann, project, log)
        await fork(ann, path, product)
        assert ann.wrong == []


async def deny_with_words(ann: Screen, project: Path, api: ScriptedApi, log: Log) -> None:
    await ann.prompt(f"SCENARIO=bash CMD=touch {project / 'denied'}")
    await card(ann.page).focus()
    await ann.page.keyboard.press("d")
    await ann.page.get_by_label("What the agent is told").fill("use another name")
    await ann.page.keyboard.press("Enter")
    await log.answered(f"CMD=touch {project / 'denied'}")
    await expect(ann.page.locator(".asked").last).to_contain_text("use another name")
    assert "use another name" in api.tool_results[-1].text
    assert not (project / "denied").exists()


async def allow_always(ann: Screen, project: Path, log: Log) -> None:
    command = f"mkdir -p {project / 'always'}"
    await ann.prompt(f"SCENARIO=bash CMD={command}")
    option = card(ann.page).locator(".option", has_text=command)
    await expect(option.locator(".rule code")).to_have_text(f"Bash({command}) (localSettings)")
    await option.click()
    await log.answered(f"CMD={command}")
    # it asks no more
    await ann.prompt(f"SCENARIO=bash CMD={command}")
    await log.answered(f"CMD={command}", times=2)
    assert (project / "always").is_dir()


async def edit_the_input(ann: Screen, project: Path, log: Log) -> None:
    await ann.prompt(f"SCENARIO=bash CMD=touch {project / 'proposed'}")
    await card(ann.page).get_by_role("button", name="Edit", exact=True).click()
    await ann.page.get_by_label("The command").fill(f"touch {project / 'edited'}")
    await ann.page.get_by_role("button", name="Allow this instead").click()
    await log.answered(f"CMD=touch {project / 'proposed'}")
    assert (project / "edited").exists()
    assert not (project / "proposed").exists()


async def answer_in_own_words(ann: Screen, api: ScriptedApi, log: Log) -> None:
    await ann.prompt("SCENARIO=question")
    await ann.page.get_by_label("Your own answer to").fill("Mauve")
    await ann.page.get_by_role("button", name="Answer").click()
    await log.answered("SCENARIO=question")
    assert "Mauve" in api.tool_results[-1].text


async def approve_a_plan(ann: Screen, log: Log) -> None:
    await ann.page.get_by_label("Mode", exact=True).select_option("plan")
    await ann.prompt("SCENARIO=plan")
    await expect(card(ann.page).locator(".plan-text li")).to_have_text(["do A", "do B"])
    await card(ann.page).get_by_role("button", name="Approve", exact=True).click()
    await log.answered("SCENARIO=plan")
    await ann.page.get_by_label("Mode", exact=True).select_option("default")


async def steer_and_queue(ann: Screen, api: ScriptedApi, log: Log) -> None:
    await ann.prompt("SCENARIO=hold")
    await api.wait_holding(timeout=60)
    await ann.page.get_by_role("radio", name="After it").check()
    await ann.prompt("SAY=from the queue")
    await expect(ann.page.locator(".user[data-delivery=queued]")).to_contain_text("from the queue")
    api.release()
    await expect(ann.page.locator(".said").last).to_have_text("from the queue")
    await log.answered("SAY=from the queue")
    await ann.prompt("SCENARIO=hold")
    await api.wait_holding(timeout=60)
    await ann.page.get_by_role("radio", name="Into this turn").check()
    await ann.prompt("SAY=steered")
    await expect(ann.page.locator(".user").last).to_contain_text("steered in")
    api.release()
    await expect(ann.page.locator(".said").last).to_have_text("steered")
    await log.answered("SAY=steered")


async def attach_pictures(ann: Screen, api: ScriptedApi, log: Log) -> None:
    for how, target in (("paste", "textarea[aria-label^=Message]"), ("drop", "form.composer")):
        await ann.page.evaluate(PASTE, [target, how, PIXEL])
    await expect(ann.page.locator(".attachments li img")).to_have_count(2)
    await ann.prompt("SAY=two dots")
    await log.answered("SAY=two dots")
    await expect(ann.page.locator(".user").last.locator("img.picture")).to_have_count(2)
    await eventually(lambda: any(body.count(PIXEL.encode()) >= 2 for body in api.bodies), 60)


async def run_a_slash_command(ann: Screen, log: Log) -> None:
    place = ann.page.get_by_label("Message to the agent")
    await place.fill("/conte")
    await expect(ann.page.get_by_role("listbox").get_by_role("option")).to_contain_text(["/context"])
    await ann.page.keyboard.press("Tab")
    await expect(place).to_have_value("/context ")
    await ann.page.keyboard.press("Enter")
    await expect(ann.page.locator(".said").last).to_contain_text("Context Usage")
    await log.rests()


async def switch(ann: Screen) -> None:
    for label in ("Model", "Thinking"):
        chooser = ann.page.get_by_label(label, exact=True)
        options = await chooser.locator("option:not([disabled])").evaluate_all("all => all.map((one) => one.value)")
        chosen = await chooser.input_value()
        wanted = next(value for value in options if value != chosen)
        await chooser.select_option(wanted)
        # it is the gateway's state that says so, not the browser's choice: after a reload it is still there
        await ann.page.reload()
        await expect(ann.page.get_by_label(label, exact=True)).to_have_value(wanted)


async def lose_the_network(ann: Screen, line: Line, log: Log) -> None:
    """Ten seconds without a network in mid-stream."""
    await ann.prompt("SCENARIO=slow N=160 DELAY_MS=100")
    said = ann.page.locator(".said")
    await expect(said.last).to_contain_text("piece 20")
    await line.cut()
    await expect(ann.page.locator(".connection[data-state=open]")).to_have_count(0)
    # what came before the cut is drawn a moment later
    await ann.page.wait_for_timeout(SECONDS)
    before = await said.last.inner_text()
    await ann.page.wait_for_timeout(10 * SECONDS)
    assert await said.last.inner_text() == before
    # a prompt that is written meanwhile outlives a reload, too
    await ann.page.get_by_label("Message to the agent").fill("a draft that waits")
    await line.mend()
    await log.answered("N=160")
    await expect(said.last).to_have_text(squeezed(" ".join(f"piece {n}" for n in range(1, 161))))
    await ann.page.reload()
    await expect(ann.page.get_by_label("Message to the agent")).to_have_value("a draft that waits")


async def kill_the_gateway(ann: Screen, product: Product, log: Log) -> None:
    await ann.prompt("SCENARIO=slow N=60 DELAY_MS=100")
    await expect(ann.page.locator(".said").last).to_contain_text("piece 10")
    old = product.kill("gateway")
    await expect(ann.page.locator(".connection[data-state=open]")).to_have_count(0)
    await ann.prompt("SAY=written without a gateway")
    await expect(ann.page.locator(".waiting")).to_contain_text("when the connection is back")
    await product.restarted("gateway", old)
    await expect(ann.page.locator(".waiting")).to_have_count(0)
    await expect(ann.page.locator(".said").last).to_have_text("written without a gateway")
    await log.answered("SAY=written without a gateway")
    await expect(ann.page.locator(".user").filter(has_text="written without a gateway")).to_have_count(1)


async def look_back(ann: Screen, path: str) -> None:
    await ann.open(path)
    await expect(ann.page.locator(".said").last).to_have_text("written without a gateway")
    moment = ann.page.locator(".user .moment").last
    await moment.click()
    await expect(ann.page.locator(".banner")).to_contain_text("As it was then")
    assert "?at=" in ann.page.url
    await expect(ann.page.locator(".said").last).to_contain_text("piece 60")
    await expect(ann.page.get_by_label("Message to the agent")).to_have_count(0)
    await ann.page.get_by_role("link", name="Back to now").click()
    await expect(ann.page.locator(".said").last).to_have_text("written without a gateway")


async def put_files_back(ann: Screen, project: Path, log: Log) -> None:
    """The agent writes a file; going back to before that takes it away again."""
    file = project / "notes.txt"
    await ann.prompt(f"SCENARIO=write FILE={file} TEXT=kept")
    await card(ann.page).get_by_role("button", name="Allow", exact=True).click()
    await eventually(file.exists, 60)
    await log.answered(f"FILE={file}")
    await ann.page.get_by_role("button", name="From this prompt").last.click()
    await ann.page.get_by_role("button", name="Put files back to before this").last.click()
    dialog = ann.page.get_by_role("dialog")
    await expect(dialog).to_contain_text("notes.txt")
    await dialog.get_by_role("button", name="Put back").click()
    await expect(ann.page.locator(".notice").last).to_contain_text("files put back")
    assert not file.exists()


async def fork(ann: Screen, path: str, product: Product) -> None:
    await ann.page.get_by_role("button", name="More").click()
    await ann.page.get_by_role("button", name="Fork", exact=True).click()
    await ann.page.wait_for_url(lambda url: "/session/ses_" in url and path not in url)
    await ann.prompt("SCENARIO=recall")
    await Log(product, ann.page.url).answered("SCENARIO=recall")
    await expect(ann.page.locator(".said").last).to_contain_text("written without a gateway")


@pytest.mark.long
async def test_an_agent_of_the_agent_client_protocol_and_a_terminal(
    product_with_both: Product, browser: Browser, project: Path, api: ScriptedApi
) -> None:
    product = product_with_both
    ann = await screen(browser, product)
    phone = await screen(browser, product, phone=True)
    path = await ann.start(GEMINI, project, "SAY=Hello from **Gemini**")
    log = Log(product, path)
    await log.answered("Hello from **Gemini**")
    await expect(ann.page.locator(".said strong")).to_have_text("Gemini")
    await phone.open(path)
    await ann.prompt(f"SCENARIO=bash CMD=touch {project / 'approved'}")
    await expect(card(ann.page)).to_contain_text("touch")
    await card(phone.page).get_by_role("button", name="Allow", exact=True).click()
    await log.answered(f"CMD=touch {project / 'approved'}")
    assert (project / "approved").exists()
    await ann.prompt(f"SCENARIO=bash CMD=touch {project / 'denied'}")
    await card(ann.page).get_by_role("button", name="Deny").click()
    await ann.page.get_by_role("button", name="Deny").last.click()
    await log.answered(f"CMD=touch {project / 'denied'}")
    assert not (project / "denied").exists()
    await ann.prompt("SCENARIO=hold")
    await api.wait_holding(timeout=60)
    for one in (ann, phone):
        await expect(one.page.locator(".said[data-open]")).to_contain_text("Holding.")
    await ann.page.keyboard.press("Escape")
    await expect(phone.page.locator(".turn").last).to_contain_text("interrupted")
    await log.is_shown(phone.page)
    await type_in_a_terminal(ann, product, project)
    assert ann.wrong == phone.wrong == []


async def type_in_a_terminal(ann: Screen, product: Product, project: Path) -> None:
    async with await product.client() as client:
        made = await client.call("session.create", adapter="pty", agent="shell", cwd=str(project))
    await ann.open(f"/terminal/{made['session']}")
    await ann.page.get_by_role("button", name="Type here").click()
    await expect(ann.page.locator(".terminal .meta")).to_have_text("you type")
    await ann.page.locator(".terminal .screen").click()
    await ann.page.keyboard.type("echo $((40 + 2))-typed > typed\n")
    async with asyncio.timeout(20):
        while not (project / "typed").exists():
            await ann.page.wait_for_timeout(50)


@pytest.mark.long
async def test_a_team_of_claude_code_on_its_board(product: Product, browser: Browser, project: Path) -> None:
    ann = await screen(browser, product)
    page = ann.page
    agent = {"subagent_type": "general-purpose"}
    async with await product.client() as client:
        made = await client.call(
            "session.create", adapter="claude", cwd=str(project), options={"environment": SWITCHES}, title="lead"
        )

        async def uses(tool: str, /, **given: Any) -> None:
            before = (await client.call("session.get", session=made["session"]))["state"]["turns"]
            await client.call("session.prompt", session=made["session"], text=using(tool, **given))

            async def over() -> bool:
                state = (await client.call("session.get", session=made["session"]))["state"]
                return state["turns"] > before and state["turn"] is None and not state["pending"]

            await eventually(over, 60)

        await ann.open(f"/session/{made['session']}")
        await uses("TaskCreate", subject="Write a", description="a", activeForm="Writing a")
        await uses("TaskCreate", subject="Write b", description="b")
        await uses("TaskUpdate", taskId="2", addBlockedBy=["1"])
        await uses("Agent", name="ann", description="ann", prompt="SAY=Ann is here.", **agent)
        says = using("SendMessage", to="main", message="hello from bob", summary="hello")
        await uses("Agent", name="bob", description="bob", prompt=says, **agent)
        await page.locator(".crew > .item").click()
        await expect(page.locator(".member")).to_have_count(2)
        await expect(page.locator(".node")).to_have_count(2)
        await expect(page.locator('.task-list [data-column="blocked"]')).to_contain_text("Write b")
        await expect(page.locator(".thread")).to_contain_text("hello from bob")
        await uses("TaskUpdate", taskId="1", status="in_progress", owner="ann")
        await expect(page.locator(".member").first).to_contain_text("Writ")
        await uses("TaskUpdate", taskId="1", status="completed")
        await expect(page.locator('.task-list [data-column="completed"]')).to_contain_text("Write a")
        await uses("SendMessage", to="bob", message={"type": "shutdown_request", "reason": "thanks"})
        await expect(page.locator(".request")).to_contain_text("thanks")
    assert ann.wrong == []

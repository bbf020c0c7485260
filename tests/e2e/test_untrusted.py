"""What agents write is not to be trusted: it runs nothing, hides nothing, and holds the page up for no longer than it takes to read."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.async_api import Browser, expect
from tests.chaos.soak.load import stretch
from tests.e2e.browser import ABSENT, MISSING, Screen, with_token
from tests.integration.gateway.rig import Rig

from trunkline_bus.writer import SessionWriter
from trunkline_testkit.nats import NatsServer
from trunkline_wire.asks import AskOption, PermissionRequested, PlanProposed, Question, QuestionAsked, QuestionOption
from trunkline_wire.blocks import Block, CodeBlock, DiffBlock, TerminalBlock, TextBlock, ThinkingBlock
from trunkline_wire.session import SessionUpdated
from trunkline_wire.turn import MessageAssistant, MessageSystem, MessageUser, ToolCompleted, ToolStarted
from trunkline_wire.work import ErrorRaised, PlanEntry, PlanUpdated

pytestmark = [pytest.mark.skipif(ABSENT, reason=MISSING), pytest.mark.browser, pytest.mark.timeout(400)]

CANARY: Final = """
    window.hits = []; window.violations = []; window.tasks = [];
    window.pwned = (what) => window.hits.push(what);
    addEventListener("securitypolicyviolation", (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
    new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map((one) => one.duration))).observe({ type: "longtask", buffered: true });
"""
MARKUP: Final = [
    "<script>pwned(1)</script>",
    "<img src=x onerror=pwned(2)>",
    "<svg onload=pwned(3)><animate onbegin=pwned(4) attributeName=x></svg>",
    "<iframe srcdoc='<script>parent.pwned(5)</script>'></iframe>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=pwned(6)&gt;'>",
    "<a href='javascript:pwned(7)'>raw</a>",
    "[link](javascript:pwned(8)) [tab](java\tscript:pwned(9)) [data](data:text/html,<script>pwned(10)</script>)",
    "![p](https://example.org/a.png\"onerror=pwned(11)//) ![q](x 'onerror=pwned(12)') [r]: javascript:pwned(13)",
    "[reference][r] <javascript:pwned(14)> <style>body{display:none}</style><base href=//example.org>",
    '```"><img src=x onerror=pwned(15)>\ncode </code></pre><img src=x onerror=pwned(16)>\n```',
    "<form action=//example.org><button autofocus onfocus=pwned(17)>x</button></form>",
    "| a |\n|---|\n| <img src=x onerror=pwned(18)> |",
]
TURNED: Final = "cp \u202egpj.exe\u202c \u2066hidden\u2069"
BOMBS: Final = {
    "emphasis that opens and never closes": "*a_" * 20_000,
    "strong in words": "a**b" * 20_000,
    "quotes in quotes": ">" * 5_000 + " x",
    "lists in lists": "\n".join(f"{'  ' * depth}- x" for depth in range(400)),
    "brackets": "[" * 50_000,
    "pictures": "![" * 20_000,
    "a wide table": "|a" * 2_000 + "|\n" + "|-" * 2_000 + "|\n" + ("|b" * 2_000 + "|\n") * 5,
    "one long line": "x" * 190_000,
}
TASK_MS: Final = 500.0
"""The longest that the page may hold up its reader by one text, on a machine that is not overloaded."""


@pytest.fixture
async def rig(home: Path, fresh_nats: NatsServer) -> AsyncGenerator[Rig]:
    rig = Rig(home, fresh_nats)
    await rig.open()
    try:
        yield rig
    finally:
        await rig.close()


async def reader(browser: Browser, rig: Rig, session: str) -> Screen:
    one = await with_token(browser, rig.running.url, rig.token, script=CANARY)
    await one.open(f"/session/{session}")
    await one.page.locator(".scroller[aria-busy=false]").wait_for()
    return one


def tool(writer: SessionWriter, number: int, name: str, content: list[Block], **given: Any) -> None:
    item = f"itm_{number:032x}"
    writer.append(ToolStarted(name=name, input=given), item=item)
    writer.append(ToolCompleted(status="completed", content=content), item=item)


async def open_all(one: Screen) -> None:
    """Everything that can be opened, on all of the transcript."""
    await one.page.evaluate(
        """async () => {
            const scroller = document.querySelector(".scroller");
            const painted = () => new Promise((done) => setTimeout(done, 50));
            for (let at = 0; at <= scroller.scrollHeight; at += scroller.clientHeight / 2) {
                scroller.scrollTop = at;
                await painted();
                for (const closed of document.querySelectorAll(".session details:not([open])")) closed.open = true;
                await painted();
            }
        }"""
    )


async def assert_untouched(one: Screen) -> None:
    """No script of theirs ran, and none was even tried; what is there is what we make."""
    found = await one.page.evaluate(
        """() => ({
            hits, violations,
            foreign: [...document.querySelectorAll(
                "#main script, #main iframe, #main object, #main embed, #main base, #main style, #main math, #main form[action], #main [srcdoc], .markdown img"
            )].map((element) => element.outerHTML),
            handlers: [...document.querySelectorAll("#main *")].flatMap((element) => [...element.attributes].map((one) => one.name)).filter((name) => name.startsWith("on")),
            links: [...document.querySelectorAll("#main a[href]")].map((link) => link.protocol).filter((one) => !["http:", "https:", "mailto:"].includes(one)),
            turned: document.body.innerText.match(/[\\u202a-\\u202e\\u2066-\\u2069]/g),
        })"""
    )
    assert found == {"hits": [], "violations": [], "foreign": [], "handlers": [], "links": [], "turned": None}


async def longest_task(one: Screen) -> float:
    return await one.page.evaluate("Math.max(0, ...tasks)")


async def test_what_agents_write_runs_nothing_and_hides_nothing(rig: Rig, browser: Browser) -> None:
    text = "\n\n".join([*MARKUP, TURNED])
    async with await rig.session() as writer:
        writer.append(SessionUpdated(title=text))
        writer.append(MessageUser(content=[TextBlock(text=text)], author=text))
        for number, one in enumerate([*MARKUP, TURNED, text]):
            item = f"itm_{100 + number:032x}"
            writer.append(MessageAssistant(content=[TextBlock(text=one), ThinkingBlock(text=one)], block=0), item=item)
        blocks = [TextBlock(text=text), CodeBlock(text=text, language=text), TerminalBlock(output=text)]
        tool(writer, 1, text, [*blocks, DiffBlock(path=text, old=text, new=text + "!")], command=text)
        writer.append(MessageSystem(text=text))
        writer.append(ErrorRaised(code="x", message=text))
        writer.append(PlanUpdated(entries=[PlanEntry(content=text)]))
        ask(writer, 1, text)
        await rig.settled(writer)
        asked: list[str] = []
        one = await with_token(browser, rig.running.url, rig.token, script=CANARY)
        one.page.on("request", lambda request: asked.append(request.url))
        await one.open(f"/session/{writer.session}")
        await expect(one.page.locator(".ask")).to_have_count(3)
        await assert_untouched(one)
        await open_all(one)
        await assert_untouched(one)
        await one.open("/asks")
        await expect(one.page.locator(".ask")).to_have_count(3)
        await assert_untouched(one)
        assert [url for url in asked if not url.startswith((rig.running.url, "ws://", "data:"))] == []
        assert one.wrong == []


def ask(writer: SessionWriter, number: int, text: str) -> None:
    """A permission, a question and a plan, with this text wherever there is one."""
    ids = [f"ask_{number:031x}{kind}" for kind in range(3)]
    option = AskOption(id="always", name=text, kind="allow_always")
    writer.append(
        PermissionRequested(
            ask=ids[0],
            incarnation="i",
            name=text,
            input={"command": text, "file_path": text},
            options=[option],
            suggestions=[text],
            description=text,
            reason=text,
        )
    )
    question = Question(id="q", text=text, header=text, options=[QuestionOption(label=text, description=text)])
    writer.append(QuestionAsked(ask=ids[1], incarnation="i", questions=[question], message=text))
    writer.append(PlanProposed(ask=ids[2], incarnation="i", plan=text, file=text, options=[option]))


@pytest.mark.parametrize("rest", ["x" * 200_000, ">" * 5_000 + " x"], ids=["huge", "deep"])
async def test_a_text_that_is_shown_as_it_is_turns_nothing_around(rig: Rig, browser: Browser, rest: str) -> None:
    async with await rig.session() as writer:
        writer.append(MessageAssistant(content=[TextBlock(text=f"{TURNED}\n\n{rest}")], block=0), item=f"itm_{1:032x}")
        await rig.settled(writer)
        one = await reader(browser, rig, writer.session)
        await expect(one.page.locator(".said").first).to_contain_text(r"cp \u202egpj.exe\u202c \u2066hidden\u2069")
        await assert_untouched(one)


async def test_huge_outputs_and_diffs_hold_nobody_up(rig: Rig, browser: Browser) -> None:
    coloured = "".join(f"\x1b[3{number % 8}mline {number}\x1b[0m\tof many\r\n" for number in range(150_000))
    line = "\x1b[1m" + "y" * 5_000_000
    old = "\n".join(f"old line {number} {'o' * (number % 90)}" for number in range(10_000))
    new = "\n".join(f"{'new' if number % 7 else 'old'} line {number} {'o' * (number % 90)}" for number in range(10_000))
    async with await rig.session() as writer:
        tool(writer, 1, "Coloured", [TextBlock(text=coloured)], command="seq 150000")
        tool(writer, 2, "One line", [TerminalBlock(output=line)], command="yes | tr -d '\\n'")
        tool(writer, 3, "Edit", [DiffBlock(path="a.txt", old=old[:200_000], new=new[:200_000])], file_path="a.txt")
        await rig.settled(writer)
        one = await reader(browser, rig, writer.session)
        for name, shown in (("Coloured", "line 0\tof many"), ("One line", "yyyy")):
            card = one.page.locator(".tool", has=one.page.locator(".name", has_text=name))
            await card.locator("summary").click()
            await card.get_by_role("button", name="Show all").click()
            await expect(card.get_by_role("button", name="Show more")).to_be_visible()
            await expect(card.locator(".long").last).to_contain_text(shown)
            assert "\x1b" not in await card.inner_text()
            # what is in the page is what one can read, and more of it on demand
            assert len(await card.inner_text()) < 50_000
            await card.locator("summary").click()
        edit = one.page.locator(".tool", has=one.page.locator(".name", has_text="Edit"))
        await edit.locator("summary").click()
        await expect(edit.locator(".line").first).to_be_visible()
        assert await edit.locator(".line").count() <= 200
        assert await longest_task(one) < TASK_MS * stretch()
        assert one.wrong == []


async def test_a_text_made_to_take_long_holds_nobody_up(rig: Rig, browser: Browser) -> None:
    async with await rig.session() as writer:
        for number, text in enumerate(BOMBS.values()):
            writer.append(MessageAssistant(content=[TextBlock(text=text)], block=0), item=f"itm_{number:032x}")
        writer.append(MessageAssistant(content=[TextBlock(text="**the end**")], block=0), item=f"itm_{99:032x}")
        await rig.settled(writer)
        one = await reader(browser, rig, writer.session)
        await expect(one.page.locator(".said strong").last).to_have_text("the end")
        await open_all(one)
        async with asyncio.timeout(60):
            # one can write all the while
            await one.page.get_by_label("Message to the agent").press_sequentially("still here")
        await expect(one.page.locator(".said strong").last).to_have_text("the end")
        assert await longest_task(one) < TASK_MS * stretch()
        assert one.wrong == []

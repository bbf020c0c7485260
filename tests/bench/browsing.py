"""The built app in a real Chromium, on a phone's screen: first page, streaming, memory, and bytes. Its budgets stand in README.md.

Times of the page's main thread are its CPU time (Chromium's `ThreadTime`): what else the machine does costs none of it.
"""

import gzip
import re
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from playwright.async_api import CDPSession
from tests.bench.lengthy import EVENTS, MB, Lengthy, lengthy
from tests.bench.report import Figure
from tests.e2e.browser import ABSENT, BUILD, MISSING, Screen, chromium, with_token

from trunkline_wire import encode, make_event, subjects, timestamp
from trunkline_wire.turn import MessageDelta

UPDATES: Final = 1_000
PIECE: Final = "ein Wort nach dem **anderen** "
FIRST_S: Final = 1.0
UPDATES_S: Final = 1.0
HEAP_MB: Final = 150.0
LIST_KB: Final = 80.0
SESSION_KB: Final = 140.0
_TO_THE_BEGINNING: Final = """async () => {
    const scroller = document.querySelector(".scroller");
    while (document.querySelector(".beginning") === null) {
        scroller.scrollTop = 0;
        await new Promise((done) => setTimeout(done, 20));
    }
}"""


async def measure() -> list[Figure]:
    if ABSENT:
        raise RuntimeError(f"the app can't be measured: {MISSING}")
    with tempfile.TemporaryDirectory() as folder:
        async with lengthy(Path(folder)) as history, chromium() as browser:
            one = await with_token(browser, history.url, history.token, phone=True)
            fetched: list[str] = []
            one.page.on("response", lambda response: fetched.append(response.url.rpartition("/")[2]))
            await one.open("/")
            await one.page.locator(".item").first.wait_for()
            listed = list(fetched)
            first = await _first_page(one, history)
            opened = list(fetched)
            devtools = await one.context.new_cdp_session(one.page)
            await devtools.send("Performance.enable")
            streamed = await _stream(one, history, devtools)
            begun = time.perf_counter()
            await one.page.evaluate(_TO_THE_BEGINNING)
            read = time.perf_counter() - begun
            heap = await _heap(devtools)
    return [
        Figure(
            name=f"first page of {EVENTS:,} events, from the address to its text",
            unit="s",
            value=first,
            limit=FIRST_S,
            limit_name="budget",
            goal=1.0,
        ),
        Figure(
            name=f"{UPDATES:,} streamed updates, main thread",
            unit="s CPU",
            value=streamed,
            limit=UPDATES_S,
            limit_name="budget",
            goal=1.0,
        ),
        Figure(
            name=f"heap after all {EVENTS:,} events",
            unit="MB",
            value=heap,
            limit=HEAP_MB,
            limit_name="budget",
            goal=1.0,
            note=f"read in {read:.0f} s",
        ),
        _size("gzip of the first load, list of sessions", listed, LIST_KB),
        _size("gzip of the first load, a session", opened, SESSION_KB),
    ]


async def _first_page(one: Screen, history: Lengthy) -> float:
    """Seconds until the last message can be read, in a browser that has the files."""
    begun = time.perf_counter()
    await one.open(f"/session/{history.long}")
    await one.page.locator(".said .markdown p").last.wait_for()
    return time.perf_counter() - begun


async def _stream(one: Screen, history: Lengthy, devtools: CDPSession) -> float:
    """CPU seconds of the main thread for a message that comes in pieces, a piece an update."""
    before = await _busy(devtools)
    item, at = "itm_" + "f" * 32, 0
    for number in range(UPDATES):
        text = f"{PIECE}{number}" + ("\n\n" if number % 20 == 19 else " ")
        data = MessageDelta(block=0, kind="text", at=at, text=text, after=EVENTS)
        event = make_event(data, session=history.long, time=timestamp(), epoch=1, item=item)
        headers = {subjects.HEADER_ID: event.id, subjects.HEADER_TYPE: event.type}
        await history.bus.writing.publish(subjects.delta(history.long), encode(event), headers=headers)
        at += len(text)
        if number % 4 == 3:
            # faster than any agent is let (20 a second), and no flood
            await one.page.wait_for_timeout(10)
    await one.page.locator(".said[data-open]", has_text=f"{UPDATES - 1}").wait_for()
    return await _busy(devtools) - before


async def _busy(devtools: CDPSession) -> float:
    return (await _metrics(devtools))["ThreadTime"]


async def _heap(devtools: CDPSession) -> float:
    """MB that are in use after a collection."""
    await devtools.send("HeapProfiler.collectGarbage")
    return (await _metrics(devtools))["JSHeapUsedSize"] / MB


async def _metrics(devtools: CDPSession) -> dict[str, float]:
    said: Any = await devtools.send("Performance.getMetrics")
    return {one["name"]: one["value"] for one in said["metrics"]}


def _size(name: str, fetched: list[str], budget: float) -> Figure:
    files = {name for name in fetched if re.search(r"\.(js|css)$", name)} & {
        path.name for path in (BUILD / "assets").iterdir()
    }
    size = sum(len(gzip.compress((BUILD / "assets" / one).read_bytes(), 9)) for one in files)
    size += len(gzip.compress((BUILD / "index.html").read_bytes(), 9))
    return Figure(
        name=name,
        unit="KB",
        value=size / 1024,
        limit=budget,
        limit_name="budget",
        goal=1.0,
        note=f"{len(files)} files",
    )

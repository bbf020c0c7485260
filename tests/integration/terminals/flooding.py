"""A flood in a terminal with one viewer that reads and one that stands still: how late the first is, and what memory grows."""

import re
import statistics
import sys
import time
from pathlib import Path

import msgspec
from tests.integration.terminals.looking import Looking

from trunkline_testkit.product import Product

FLOOD = Path(__file__).with_name("flood.py")
SERVICES = ("adapters", "gateway", "nats-server")
_CLOCK = re.compile(rb" t(\d{18,20}) ")


class Flooded(msgspec.Struct, kw_only=True):
    """Bytes that were printed, seconds; lags of what the viewer saw, and until Ctrl-C had ended it, in ms; growth of each service
    in MB at most; paintings in place of what would have come late.
    """

    printed: int
    seconds: float
    lags: list[float]
    interrupted: float
    grown: dict[str, float]
    paintings: int

    @property
    def worst(self) -> float:
        return max(self.lags)

    @property
    def usual(self) -> float:
        return statistics.median(self.lags)


def is_over(viewer: Looking) -> bool:
    """Whether its screen says so, wherever the line breaks."""
    return "the flood is over" in viewer.screen.text.replace("\n", "")


async def flood(product: Product, session: str, megabytes: float) -> Flooded:
    """Runs it in a session's shell; Ctrl-C ends it once so much was printed."""
    processes = {name: process for name in SERVICES if (process := product.find(name)) is not None}
    url, token = product.state["gateway"], product.token
    async with (
        await Looking.connect(url, session, token=token) as live,
        await Looking.connect(url, session, token=token) as frozen,
    ):
        for viewer in (live, frozen):
            await viewer.until(lambda viewer=viewer: viewer.paintings > 0)
        await live.take()
        frozen.frozen.clear()
        before = {name: process.memory_full_info().uss for name, process in processes.items()}
        grown = dict.fromkeys(before, 0.0)
        lags: list[float] = []
        live.keep = False

        def look(content: bytes) -> None:
            if clocks := _CLOCK.findall(content):
                lags.append((time.time_ns() - int(clocks[-1])) / 1e6)

        live.on_output = look
        await live.type(f"{sys.executable} {FLOOD} 1000000\r")
        begun = time.perf_counter()
        start = live.offset
        while live.offset - start < megabytes * 1e6:
            await live.until(lambda target=live.offset + 1e6: live.offset > target, 60)
            for name, process in processes.items():
                grown[name] = max(grown[name], (process.memory_full_info().uss - before[name]) / 1e6)
        seconds, printed = time.perf_counter() - begun, live.offset - start
        live.keep = True
        asked = time.perf_counter()
        await live.type("\x03")
        await live.until(lambda: b"the flood is over" in live.printed or is_over(live), 30)
        interrupted = (time.perf_counter() - asked) * 1e3
        # Whoever stood still sees the screen as it is; after half a minute only once it has connected again.
        frozen.frozen.set()
        await frozen.until(lambda: is_over(frozen) or frozen.said[-1]["type"] == "closed", 60)
        return Flooded(
            printed=printed,
            seconds=seconds,
            lags=lags,
            interrupted=interrupted,
            grown=grown,
            paintings=live.paintings,
        )

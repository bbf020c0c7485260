"""An imported history of 4,000 messages: the import, and every page of it as a client of the gateway gets them.

A page's server time is what gateway and nats-server ran between request and answer, as the kernel counts it: what else the
machine does is in the wall time, and not in that.
"""

import json
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import msgspec
from tests.bench.report import Figure, percentile
from tests.integration.agentkit import claude_history

from trunkline_testkit.product import Client, Product, running

TURNS: Final = 1334
PAGE: Final = 50
PAGE_MS: Final = 100.0


async def measure() -> list[Figure]:
    """The limit of a page is the 100 ms that it may take; the import's is a second one, which reads all and writes nothing."""
    with tempfile.TemporaryDirectory(prefix="trunk-") as name:
        home = Path(name)
        claude_history.write(home, TURNS)
        async with running(home) as product:
            imported, took = await _import(product.cli)
            again, reading = await _import(product.cli)
            if (again["outcome"], again["events"]) != ("already_imported", imported["events"]):
                raise RuntimeError(f"a second import changed something: {again}")
            async with await product.client() as client:
                pages = await _pages(product, client, imported["session"], imported["events"])
    events = imported["events"]
    return [
        Figure(
            name=f"import, {imported['messages']:,} messages, {events:,} events",
            unit="/s",
            value=events / took,
            limit=events / reading,
            limit_name="importing again",
            goal=None,
            note=f"{took:.1f} s",
        ),
        *_figures("server time", [page.ran for page in pages], goal=1.0),
        *_figures("wall time", [page.wall for page in pages], goal=None),
    ]


class Page(msgspec.Struct, frozen=True):
    """Milliseconds from request to answer, and those that gateway and nats-server ran meanwhile."""

    wall: float
    ran: float


def _figures(what: str, values: list[float], *, goal: float | None) -> list[Figure]:
    shares = {"median": percentile(values, 0.5), "p99": percentile(values, 0.99), "worst": max(values)}
    return [
        Figure(
            name=f"history page of {PAGE}, {len(values)} pages, {what}, {share}",
            unit="ms",
            value=value,
            limit=PAGE_MS,
            limit_name="what a page may take",
            goal=goal,
            note=f"page {values.index(value) + 1}" if share == "worst" else "",
        )
        for share, value in shares.items()
    ]


def time_run(pids: list[int]) -> float:
    """Milliseconds that the threads of these processes have run so far."""
    threads = [path for pid in pids for path in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    return sum(int(path.read_text().split()[0]) for path in threads) / 1e6


async def _import(cli: Any) -> tuple[dict[str, Any], float]:
    begin = time.perf_counter()
    code, out, err = await cli("import", "claude", "--all", "--json", within=600)
    if code:
        raise RuntimeError(err)
    return json.loads(out), time.perf_counter() - begin


async def _pages(product: Product, client: Client, session: str, events: int) -> list[Page]:
    """Each page over the unix socket, from the last to the first."""
    processes = [product.find(service) for service in ("gateway", "nats-server")]
    pids = [process.pid for process in processes if process is not None]
    took: list[Page] = []
    seen, before = 0, None
    await client.call("session.get", session=session)  # the connection is warm
    more = True
    while more:
        where = {} if before is None else {"before": before}
        ran, begin = time_run(pids), time.perf_counter()
        page = await client.call("session.history", session=session, limit=PAGE, **where)
        wall = (time.perf_counter() - begin) * 1000
        took.append(Page(wall, time_run(pids) - ran))
        seen += len(page["events"])
        before, more = page["events"][0]["cursor"], page["has_more"]
    if seen != events:
        raise RuntimeError(f"the pages hold {seen} of {events} events")
    return took

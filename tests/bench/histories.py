"""An imported history of 4,000 messages: the import, and every page of it as a client of the gateway gets them."""

import json
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from tests.bench.report import Figure, percentile
from tests.integration.agentkit import claude_history

from trunkline_testkit.product import Client, running

TURNS: Final = 1334
PAGE: Final = 50
PAGE_MS: Final = 100.0


async def measure() -> list[Figure]:
    """The limit of a page is the 100 ms that it may take; the import's is its own second reading, which writes nothing."""
    with tempfile.TemporaryDirectory(prefix="trunk-") as name:
        home = Path(name)
        claude_history.write(home, TURNS)
        async with running(home) as product:
            imported, took = await _import(product.cli)
            again, reading = await _import(product.cli)
            if (again["outcome"], again["events"]) != ("already_imported", imported["events"]):
                raise RuntimeError(f"a second import changed something: {again}")
            async with await product.client() as client:
                pages = await _pages(client, imported["session"], imported["events"])
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
        *(
            Figure(
                name=f"history page of {PAGE}, {len(pages)} pages, {what}",
                unit="ms",
                value=value,
                limit=PAGE_MS,
                limit_name="what a page may take",
                goal=1.0,
            )
            for what, value in (
                ("median", percentile(pages, 50)),
                ("p99", percentile(pages, 99)),
                ("worst", max(pages)),
            )
        ),
    ]


async def _import(cli: Any) -> tuple[dict[str, Any], float]:
    begin = time.perf_counter()
    code, out, err = await cli("import", "claude", "--all", "--json", within=600)
    if code:
        raise RuntimeError(err)
    return json.loads(out), time.perf_counter() - begin


async def _pages(client: Client, session: str, events: int) -> list[float]:
    """Milliseconds from request to answer, over the unix socket, of each page from the last to the first."""
    took: list[float] = []
    seen, before = 0, None
    more = True
    while more:
        where = {} if before is None else {"before": before}
        begin = time.perf_counter()
        page = await client.call("session.history", session=session, limit=PAGE, **where)
        took.append((time.perf_counter() - begin) * 1000)
        seen += len(page["events"])
        before, more = page["events"][0]["cursor"], page["has_more"]
    if seen != events:
        raise RuntimeError(f"the pages hold {seen} of {events} events")
    return took

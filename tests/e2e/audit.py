"""`just audit`: what Lighthouse says of the app's main views, as a phone on a slow network and as a wide screen on loopback."""

import asyncio
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
from playwright.async_api import async_playwright
from tests.e2e.browser import ABSENT, CHROMIUM, FLAGS, MISSING
from tests.e2e.screens import FIRST, TEXT, begin

from trunkline_testkit.ports import free_port
from trunkline_testkit.product import Product, running

PROGRAM: Final = Path(__file__).parent / "lighthouse" / "node_modules" / ".bin" / "lighthouse"
KINDS: Final = ("accessibility", "best-practices", "performance")
PATIENCE: Final = 180
"""Seconds for one view."""


@dataclass(frozen=True, slots=True)
class Way:
    """How a view is looked at. `least` has the smallest scores, of 1, in the order of KINDS."""

    name: str
    arguments: tuple[str, ...]
    least: tuple[float, float, float]


WAYS: Final = (
    Way("wide", ("--preset=desktop", "--throttling-method=provided"), (0.95, 0.95, 0.9)),
    # Lighthouse's own phone: a processor a fourth as fast, 1.6 Mbit/s and 150 ms away
    Way("phone", ("--form-factor=mobile",), (0.95, 0.95, 0.75)),
)


async def audit(port: int, address: str, way: Way, into: Path) -> list[float]:
    """The scores of one view in a browser that is signed in already."""
    only = f"--only-categories={','.join(KINDS)}"
    arguments = (address, f"--port={port}", only, "--output=json", f"--output-path={into}", "--quiet", *way.arguments)
    # the browser stays signed in
    process = await asyncio.create_subprocess_exec(
        *(PROGRAM, *arguments, "--disable-storage-reset", "--no-enable-error-reporting"),
        env={"PATH": os.environ["PATH"], "HOME": str(into.parent)},
    )
    try:
        async with asyncio.timeout(PATIENCE):
            code = await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
    if code != 0:
        sys.exit(f"Lighthouse failed at {address}")
    found = json.loads(await asyncio.to_thread(into.read_text))
    for kind, least in zip(KINDS, way.least, strict=True):
        if (found["categories"][kind]["score"] or 0) < least:
            refs = {one["id"] for one in found["categories"][kind]["auditRefs"] if one["weight"]}
            for one in sorted(refs):
                told = found["audits"][one]
                if (told["score"] if told["score"] is not None else 1) < 0.9:
                    click.echo(f"   {one}: {told['title']} {told.get('displayValue', '')}")
    return [found["categories"][kind]["score"] or 0 for kind in KINDS]


@contextlib.asynccontextmanager
async def signed_in(product: Product, profile: Path) -> AsyncGenerator[int]:
    """A Chromium that a person has signed in to the product; gives the port of its debugger."""
    port = free_port()
    _, link, _ = await product.cli("sign-in", "--role", "owner")
    async with async_playwright() as playwright:
        flags = [*FLAGS, f"--remote-debugging-port={port}"]
        context = await playwright.chromium.launch_persistent_context(profile, executable_path=CHROMIUM, args=flags)
        try:
            page = await context.new_page()
            await page.goto(next(word for word in link.split() if "#code=" in word))
            await page.locator(".connection[data-state=open]").first.wait_for(state="attached")
            yield port
        finally:
            await context.close()


async def main() -> None:
    worst = 0
    with tempfile.TemporaryDirectory(prefix="tl-audit-") as home:
        work = Path(home)
        async with (
            running(work) as product,
            signed_in(product, work / "profile") as port,
            await product.client() as client,
        ):
            session = await begin(client, work / "parser", "Tests for the parser", FIRST)
            await client.wait("turn.completed", session=session)
            await client.call("session.prompt", session=session, text=TEXT)
            await client.wait("permission.requested", session=session)
            for way in WAYS:
                for path in ("/", f"/session/{session}", "/asks", "/overview", "/new"):
                    view = f"{way.name} {path.replace(session, ':id')}"
                    scores = await audit(port, product.state["gateway"] + path, way, work / "report.json")
                    good = all(score >= least for score, least in zip(scores, way.least, strict=True))
                    told = ", ".join(f"{kind} {score:.2f}" for kind, score in zip(KINDS, scores, strict=True))
                    click.echo(f"{'ok' if good else '--'} {view}: {told}")
                    worst |= not good
    sys.exit(int(worst))


if __name__ == "__main__":
    if ABSENT:
        sys.exit(f"the audit wants more than there is: {MISSING}")
    asyncio.run(main())

"""What the way by a relay adds to a call: `trunkline up` with a host's side, a relay, and a device paired by the commands that people use."""

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.bench.relaying import relay
from tests.bench.report import Figure

from trunkline_cli.hosts import address
from trunkline_client import Address
from trunkline_client.connection import Connection
from trunkline_testkit.product import Product, running

CALLS: Final = 500
ADDED_MS: Final = 2.0


async def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="tl-remote-") as directory:
        work = Path(directory)
        async with relay() as (url, _):
            home = work / "home"
            (home / ".trunkline").mkdir(parents=True)
            (home / ".trunkline" / "trunkline.toml").write_text(f'[relay]\nurl = "{url}"\nname = "box"\n')
            async with running(home, {"TRUNKLINE_GATEWAY_RATE_MESSAGES": "0"}) as product:
                laptop = Product(work / "laptop")
                await pair(product, laptop)
                far = address(laptop.trunkline_home, "box")
                near = Address(url=product.state["gateway"], token=product.token)
                async with await Connection.connect(far) as there, await Connection.connect(near) as here:
                    times: dict[Connection, list[float]] = {there: [], here: []}
                    for _ in range(CALLS):
                        for one, taken in times.items():
                            began = time.perf_counter()
                            await one.call("device.list", limit=1)
                            taken.append(1000 * (time.perf_counter() - began))
        by_relay, direct = (statistics.median(times[one]) for one in (there, here))
        worst = statistics.quantiles(times[there], n=100)[98]
        return [
            Figure(
                name="relay: added to a call and its answer, p50",
                unit="ms",
                value=by_relay - direct,
                limit=ADDED_MS,
                limit_name="the budget",
                goal=1.0,
                note=f"{by_relay:.2f} by the relay (p99 {worst:.2f}), {direct:.2f} at the gateway",
            )
        ]


async def pair(host: Product, device: Product) -> None:
    """As two people at two screens do it."""
    pipe = asyncio.subprocess.PIPE
    asking, joining = [
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "trunkline_cli", *words), env=one.environment, stdin=pipe, stdout=pipe, stderr=pipe
        )
        for words, one in ((("pair",), host), (("pair", "join"), device))
    ]
    assert asking.stdout is not None
    told = asyncio.create_task(joining.communicate(await asking.stdout.readline()))
    async with asyncio.timeout(60):
        await asking.communicate(b"y\n")
        await told
    if asking.returncode or joining.returncode:
        raise RuntimeError("the pairing failed")

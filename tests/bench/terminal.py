"""A terminal that floods, with one viewer that reads and one that stands still: against the bare terminal, and tmux's control mode."""

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from ptyprocess import PtyProcess
from tests.bench.report import Figure, percentile
from tests.integration.terminals.flooding import FLOOD, flood
from tests.integration.terminals.looking import Looking

from trunkline_testkit.product import Product, running

MEGABYTES: Final = 100
LIMIT_MEGABYTES: Final = 20
"""What the limits print: their rate does not change with it."""
KEYS: Final = 500
OVER: Final = b"the flood is over"


async def measure() -> list[Figure]:
    bare = await asyncio.to_thread(bare_rate)
    tmux = await tmux_rate()
    with tempfile.TemporaryDirectory(prefix="tl-") as folder:
        async with running(Path(folder) / "home") as product:
            session = await _shell(product, Path(folder))
            keys = await key_times(product, session)
            flooded = await flood(product, session, MEGABYTES)
    rate = flooded.printed / flooded.seconds / 1e6
    figures = [
        _at_most(
            "a key until it shows, 99 of 100", "ms", percentile(keys, 0.99), 20, f"median {percentile(keys, 0.5):.1f}"
        ),
        Figure(
            name=f"flood of {MEGABYTES} MB", unit="MB/s", value=rate, limit=bare, limit_name="a bare read", goal=None
        ),
        Figure(name=f"flood of {MEGABYTES} MB", unit="MB/s", value=rate, limit=tmux, limit_name="tmux -C", goal=None),
        _at_most("flood: age of what is seen, at worst", "ms", flooded.worst, 500, f"median {flooded.usual:.0f}"),
        _at_most("flood: until Ctrl-C has ended it", "ms", flooded.interrupted, 1000),
    ]
    return figures + [_at_most(f"flood: memory of {name}", "MB", grown, 50) for name, grown in flooded.grown.items()]


def _at_most(name: str, unit: str, value: float, limit: float, note: str = "") -> Figure:
    return Figure(name=name, unit=unit, value=value, limit=limit, limit_name=f"{limit} {unit}", goal=1.0, note=note)


async def _shell(product: Product, directory: Path) -> str:
    async with await product.client() as client:
        created = await client.call("session.create", adapter="pty", agent="shell", cwd=str(directory))
        session: str = created["session"]
        await client.call("terminal.open", session=session)
        return session


async def key_times(product: Product, session: str) -> list[float]:
    """Milliseconds until each of KEYS keys shows, typed one by one."""
    took: list[float] = []
    async with await Looking.connect(product.state["gateway"], session, token=product.token) as viewer:
        await viewer.until(lambda: viewer.screen.text)
        await viewer.take()
        for number in range(KEYS):
            before, begun = viewer.offset, time.perf_counter()
            await viewer.type("\x15" if number % 60 == 59 else "x")
            await viewer.until(lambda before=before: viewer.offset > before)
            took.append((time.perf_counter() - begun) * 1e3)
            await asyncio.sleep(0.02)
        await viewer.type("\x15")
    return took


def bare_rate() -> float:
    """MB/s of the same program, its terminal read and thrown away."""
    terminal = PtyProcess.spawn([sys.executable, str(FLOOD), str(LIMIT_MEGABYTES)], dimensions=(40, 120))
    read, begun = 0, time.perf_counter()
    try:
        while True:
            read += len(os.read(terminal.fd, 65536))
    except OSError:  # the program has ended
        return read / (time.perf_counter() - begun) / 1e6
    finally:
        terminal.close(force=True)


async def tmux_rate() -> float:
    """MB/s of the same program, as a client of tmux in control mode gets it."""
    with tempfile.TemporaryDirectory(prefix="tl-") as folder:
        tmux = ["tmux", "-u", "-S", str(Path(folder) / "s"), "-f", os.devnull]
        flood_line = f"sleep 1; exec {sys.executable} {FLOOD} {LIMIT_MEGABYTES}"
        process = await asyncio.create_subprocess_exec(
            *(*tmux, "-C", "new-session", "-x", "120", "-y", "40", "sh", "-c", flood_line),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TERM": "xterm"},
            limit=16 * 1024 * 1024,
        )
        assert process.stdout is not None
        begun = None
        try:
            async for line in process.stdout:
                if line.startswith(b"%output"):
                    begun = begun or time.perf_counter()
                    if OVER in line:
                        break
            return LIMIT_MEGABYTES / (time.perf_counter() - (begun or 0.0))
        finally:
            killer = await asyncio.create_subprocess_exec(*tmux, "kill-server", stderr=asyncio.subprocess.DEVNULL)
            await killer.wait()
            await process.wait()

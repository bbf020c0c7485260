"""`just bench`: every figure beside the limit measured in the same run. `just bench appends reading` picks parts."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import nats
import uvloop
from nats.aio.client import Client
from rich.console import Console
from tests.bench import (
    appends,
    browsing,
    crowd,
    fanout,
    histories,
    idle,
    keeping,
    lengthy,
    pipeline,
    projecting,
    reading,
    relaying,
    remote,
    replay,
    scale,
    teams,
    terminal,
    updates,
    watching,
)
from tests.bench.report import Figure

from trunkline_bus import topology
from trunkline_bus.connection import Bus, BusSettings
from trunkline_testkit.nats import NatsServer

console = Console(highlight=False, soft_wrap=True)


T = TypeVar("T")
Steps = AsyncIterator[list[Figure]]


async def on_both(
    prepare: Callable[[Bus], Awaitable[T]], measure: Callable[[Bus, Client, T, str], Awaitable[list[Figure]]]
) -> Steps:
    """Measure on a server with default sync, then on the same store with the product's setting.

    What is only read is stored once, before: with a sync for each event that would take minutes. The limits use a
    connection of plain nats-py.
    """
    with NatsServer() as server:
        async with Bus.open(BusSettings(url=server.url, name="bench")) as bus, await nats.connect(server.url) as plain:
            await topology.apply(bus.js)
            await bus.read_log_id()
            what = await prepare(bus)
            yield await measure(bus, plain, what, "default sync")
        server.terminate()
        server.sync_interval = "always"
        server.start()
        async with Bus.open(BusSettings(url=server.url, name="bench")) as bus, await nats.connect(server.url) as plain:
            yield await measure(bus, plain, what, "sync always")


async def once(measure: Callable[[], Awaitable[list[Figure]]]) -> Steps:
    yield await measure()


PARTS: dict[str, Callable[[], Steps]] = {
    "appends": lambda: on_both(appends.prepare, appends.measure),
    "reading": lambda: on_both(reading.prepare, reading.measure),
    "replay": lambda: on_both(lambda bus: replay.prepare(bus, replay.SMALL), replay.measure),
    "replay-full": lambda: on_both(lambda bus: replay.prepare(bus, replay.FULL), replay.measure),
    "projector": lambda: on_both(projecting.prepare, projecting.measure),
    "idle": lambda: once(idle.measure),
    "pipeline": lambda: once(pipeline.measure),
    "fanout": lambda: once(fanout.measure),
    "updates": lambda: once(updates.measure),
    "watching": lambda: once(watching.measure),
    "terminal": lambda: once(terminal.measure),
    "teams": lambda: once(teams.measure),
    "team-service": lambda: on_both(keeping.prepare, keeping.measure),
    "histories": lambda: once(histories.measure),
    "lengthy": lambda: once(lengthy.measure),
    "browser": lambda: once(browsing.measure),
    "crowd": lambda: once(crowd.measure),
    "relaying": lambda: once(relaying.measure),
    "remote": lambda: once(remote.measure),
    "scale": lambda: once(scale.measure),
}

ON_REQUEST = {"replay-full", "scale"}
"""Parts that take minutes: measured only where they are named."""


async def main(names: list[str]) -> int:
    unknown = set(names) - set(PARTS)
    if unknown:
        console.print(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
        return 2
    # Told to end, it cleans up as it does at Ctrl-C: no server and no product is left behind.
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    missed = 0
    for name in names or [part for part in PARTS if part not in ON_REQUEST]:
        console.print(f"[bold]{name}[/bold]")
        async for figures in PARTS[name]():
            for figure in figures:
                console.print(figure.line(), markup=False)
                missed += not figure.good
    console.print(f"{missed} figures are outside their goals" if missed else "every figure is within its goal")
    return 0


if __name__ == "__main__":
    sys.exit(uvloop.run(main(sys.argv[1:])))

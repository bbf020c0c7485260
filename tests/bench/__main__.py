"""`just bench`: every figure beside the limit measured in the same run. `just bench appends reading` picks parts."""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable

import uvloop
from rich.console import Console
from tests.bench import appends, fanout, pipeline, reading, replay
from tests.bench.report import Figure

from trunkline_bus import topology
from trunkline_bus.connection import Bus, BusSettings
from trunkline_testkit.nats import NatsServer

console = Console(highlight=False, soft_wrap=True)


async def on_server(sync: str | None, measure: Callable[[Bus], Awaitable[list[Figure]]]) -> list[Figure]:
    with NatsServer(sync_interval=sync) as server:
        async with Bus.open(BusSettings(url=server.url, name="bench")) as bus:
            await topology.apply(bus.js)
            await bus.read_log_id()
            return await measure(bus)


async def run_appends() -> list[Figure]:
    figures = await on_server(None, lambda bus: appends.measure(bus, "default sync"))
    return figures + await on_server("always", lambda bus: appends.measure(bus, "sync always"))


async def run_reading() -> list[Figure]:
    return await on_server(None, reading.measure)


async def run_replay() -> list[Figure]:
    return await on_server(None, lambda bus: replay.measure(bus, replay.SMALL))


async def run_replay_full() -> list[Figure]:
    return await on_server(None, lambda bus: replay.measure(bus, replay.FULL))


PARTS: dict[str, Callable[[], Awaitable[list[Figure]]]] = {
    "appends": run_appends,
    "reading": run_reading,
    "replay": run_replay,
    "replay-full": run_replay_full,
    "pipeline": pipeline.measure,
    "fanout": fanout.measure,
}

ON_REQUEST = {"replay-full"}
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
        for figure in await PARTS[name]():
            console.print(figure.line(), markup=False)
            missed += not figure.good
    console.print(f"{missed} figures are outside their goals" if missed else "every figure is within its goal")
    return 0


if __name__ == "__main__":
    sys.exit(uvloop.run(main(sys.argv[1:])))

"""From an agent's stdout to a WebSocket client and back: through the product, and through the same pipe without a log."""

import tempfile
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec
import psutil
from tests.bench.clients import ROOT, Attached, Player, ages, attached, piped
from tests.bench.report import Figure, percentile

from trunkline_testkit.nats import NatsServer
from trunkline_testkit.product import Product, running

FACTS: Final = "facts 200 10"
TICKS: Final = "ticks 100 50"
ASKS: Final = "asks 100 10"
PIECES: Final = 10_000
FLOOD_TEXT: Final = "".join(f"piece {number} " for number in range(PIECES))
SERVICES: Final = ("nats-server", "adapters", "gateway", "projector", "permissions")

ENVIRONMENT: Final = {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests/bench/installed'}"}
"""Lets the product find the adapter of the agent that tells the time."""


class Measured(msgspec.Struct):
    """What one way from agent to client took: ages and round trips in ms, seconds of the flood, CPU in microseconds."""

    facts: list[float]
    ticks: list[float]
    asks: list[float]
    flood: float
    text_equal: bool
    cpu_fact: float = 0.0
    cpu_piece: float = 0.0


@asynccontextmanager
async def product(folder: Path, *, default_sync: bool) -> AsyncGenerator[tuple[Product, list[psutil.Process]]]:
    """The product, and its processes. Its own nats-server syncs always; with `default_sync` it is given another one."""
    async with AsyncExitStack() as stack:
        arguments: list[str] = []
        others: list[psutil.Process] = []
        if default_sync:
            server = stack.enter_context(NatsServer())
            arguments = ["--nats-url", server.url]
            others = [psutil.Process(server.pid)]
        up = await stack.enter_async_context(running(folder, ENVIRONMENT, *arguments))
        found = [up.find(name) for name in SERVICES]
        yield up, others + [process for process in found if process is not None]


async def new_session(client: Attached) -> None:
    created = await client.call("session.create", adapter="bench", cwd=str(ROOT))
    await client.subscribe(created["session"])


def cpu_of(processes: list[psutil.Process]) -> float:
    """CPU seconds of processes so far."""
    return sum(sum(process.cpu_times()[:2]) for process in processes)


async def play(player: Player, processes: list[psutil.Process]) -> Measured:
    line = player.line
    await player.play("say warm")

    begin, spent = len(line.arrived), cpu_of(processes)
    await player.play(FACTS)
    cpu_fact = (cpu_of(processes) - spent) / int(FACTS.split()[1]) * 1e6
    facts = ages(line.arrived[begin:])

    begin = len(line.arrived)
    await player.play(TICKS)
    ticks = ages(line.arrived[begin:])

    begin = len(line.arrived)
    await player.answer(ASKS)
    asks = [int(took) / 1e6 for took in player.messages(begin)[-1].split()]

    begin, spent = len(line.arrived), cpu_of(processes)
    flood = await player.play(f"flood {PIECES}")
    cpu_piece = (cpu_of(processes) - spent) / PIECES * 1e6
    equal = player.messages(begin)[-1] == FLOOD_TEXT
    return Measured(facts, ticks, asks, flood, equal, cpu_fact, cpu_piece)


async def through_the_log(*, default_sync: bool) -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        async with product(Path(folder), default_sync=default_sync) as (up, processes), attached(up) as client:
            await new_session(client)
            return await play(client, processes)


async def without_a_log() -> Measured:
    async with piped() as client:
        return await play(client, [])


async def measure() -> list[Figure]:
    bare = await without_a_log()
    default = await through_the_log(default_sync=True)
    always = await through_the_log(default_sync=False)
    again = await without_a_log()
    # What the machine does meanwhile changes from minute to minute: the limit is from before and after.
    bare = Measured(
        bare.facts + again.facts,
        bare.ticks + again.ticks,
        bare.asks + again.asks,
        (bare.flood + again.flood) / 2,
        bare.text_equal and again.text_equal,
    )
    return [*_figures(default, bare, "default sync", held=True), *_figures(always, bare, "sync always", held=False)]


def _figures(measured: Measured, bare: Measured, setting: str, *, held: bool) -> list[Figure]:
    """`held`: the goals count; they are set for the server's own sync interval."""
    goal = 3.0 if held else None
    text = "equal" if measured.text_equal and bare.text_equal else "DIFFERS"
    return [
        _latency(f"fact, agent stdout to client ({setting})", measured.facts, bare.facts, goal, measured.cpu_fact),
        _latency(f"delta 50 ms apart, stdout to client ({setting})", measured.ticks, bare.ticks, goal),
        _latency(f"ask, stdout to client to stdin ({setting})", measured.asks, bare.asks, None),
        Figure(
            name=f"flood of {PIECES:,} pieces, end to end ({setting})",
            unit="s",
            value=measured.flood,
            limit=bare.flood,
            limit_name="bare pipe",
            goal=2.0 if held else None,
            note=f"text {text}; CPU {measured.cpu_piece:.0f} us a piece in all services",
        ),
    ]


def _latency(name: str, values: list[float], limit: list[float], goal: float | None, cpu: float = 0.0) -> Figure:
    note = f"p99 {percentile(values, 0.99):.2f} against {percentile(limit, 0.99):.2f} ms; {len(values)} seen"
    return Figure(
        name=name,
        unit="ms p50",
        value=percentile(values, 0.5),
        limit=percentile(limit, 0.5),
        limit_name="bare pipe",
        goal=goal,
        note=f"{note}; CPU {cpu:.0f} us each in all services" if cpu else note,
    )

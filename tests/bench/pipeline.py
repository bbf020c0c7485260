"""From an agent's stdout to a WebSocket client and back: through the product, and through the same pipe without a log."""

import statistics
import tempfile
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import psutil
from tests.bench.child import ROOT
from tests.bench.clients import Player, ages, attached, piped
from tests.bench.report import Figure, percentile

from trunkline_testkit.nats import NatsServer
from trunkline_testkit.product import Product, running

ROUNDS: Final = 5
"""The pipe and the product take turns: what else the machine does meanwhile meets both of them."""
FACTS: Final = 50
TICKS: Final = 25
ASKS: Final = 25
PIECES: Final = 10_000
FLOOD_TEXT: Final = "".join(f"piece {number} " for number in range(PIECES))
SERVICES: Final = ("nats-server", "adapters", "gateway", "projector", "permissions")

ENVIRONMENT: Final = {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests/bench/installed'}"}
"""Lets the product find the adapter of the agent that tells the time."""


class Way:
    """A way from agent to client, and what it took: ages and round trips in ms, seconds of each flood, CPU in seconds."""

    def __init__(self, player: Player, processes: list[psutil.Process]) -> None:
        self._player = player
        self._processes = processes
        self.facts: list[float] = []
        self.ticks: list[float] = []
        self.asks: list[float] = []
        self.floods: list[float] = []
        self.text_equal = True
        self.cpu_facts = self.cpu_floods = 0.0

    async def warm_up(self) -> None:
        await self._player.play("say warm; facts 20 5")

    async def play(self) -> None:
        """One round."""
        player, line = self._player, self._player.line
        begin, spent = len(line.arrived), self._cpu()
        await player.play(f"facts {FACTS} 10")
        self.cpu_facts += self._cpu() - spent
        self.facts += ages(line.arrived[begin:])

        begin = len(line.arrived)
        await player.play(f"ticks {TICKS} 50")
        self.ticks += ages(line.arrived[begin:])

        begin = len(line.arrived)
        await player.answer(f"asks {ASKS} 10")
        self.asks += [int(took) / 1e6 for took in player.messages(begin)[-1].split()]

        begin, spent = len(line.arrived), self._cpu()
        self.floods.append(await player.play(f"flood {PIECES}"))
        self.cpu_floods += self._cpu() - spent
        self.text_equal &= player.messages(begin)[-1] == FLOOD_TEXT

    def _cpu(self) -> float:
        return sum(sum(process.cpu_times()[:2]) for process in self._processes)


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


@asynccontextmanager
async def through_the_log(*, default_sync: bool) -> AsyncGenerator[Way]:
    with tempfile.TemporaryDirectory() as folder:
        async with product(Path(folder), default_sync=default_sync) as (up, processes), attached(up) as client:
            created = await client.call("session.create", adapter="bench", cwd=str(ROOT))
            await client.subscribe(created["session"])
            yield Way(client, processes)


@asynccontextmanager
async def without_a_log() -> AsyncGenerator[Way]:
    async with piped() as client:
        yield Way(client, [])


async def measure() -> list[Figure]:
    figures: list[Figure] = []
    for default_sync, setting in ((True, "default sync"), (False, "sync always")):
        # One product at a time: a second one, idle, takes of the cores what nobody has running beside his own.
        async with without_a_log() as bare, through_the_log(default_sync=default_sync) as measured:
            for way in (bare, measured):
                await way.warm_up()
            for _ in range(ROUNDS):
                for way in (bare, measured):
                    await way.play()
        figures += _figures(measured, bare, setting, held=default_sync)
    return figures


def _figures(measured: Way, bare: Way, setting: str, *, held: bool) -> list[Figure]:
    """`held`: the goals count; they are set for the server's own sync interval."""
    goal = 3.0 if held else None
    cpu_fact = measured.cpu_facts / (ROUNDS * FACTS) * 1e6
    cpu_piece = measured.cpu_floods / (ROUNDS * PIECES) * 1e6
    text = "equal" if measured.text_equal and bare.text_equal else "DIFFERS"
    return [
        _latency(f"fact, agent stdout to client ({setting})", measured.facts, bare.facts, goal, cpu_fact),
        _latency(f"delta 50 ms apart, stdout to client ({setting})", measured.ticks, bare.ticks, goal),
        _latency(f"ask, stdout to client to stdin ({setting})", measured.asks, bare.asks, None),
        Figure(
            name=f"flood of {PIECES:,} pieces, end to end ({setting})",
            unit="s",
            value=statistics.median(measured.floods),
            limit=statistics.median(bare.floods),
            limit_name="bare pipe",
            goal=2.0 if held else None,
            note=f"text {text}; CPU {cpu_piece:.0f} us a piece in all services",
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

"""From an agent's stdout to a WebSocket client: through the product, and through the same pipe without a log."""

import asyncio
import json
import os
import re
import sys
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import psutil
from tests.bench.report import Figure, percentile

from trunkline_testkit.product import Client, Product, running

ROOT = Path(__file__).parents[2]
FACTS = "facts 200 10"
TICKS = "ticks 100 50"
PIECES = 10_000
FLOOD = f"flood {PIECES}"
FLOOD_TEXT = "".join(f"piece {number} " for number in range(PIECES))
_CLOCK = re.compile(r"t(\d{15,})")


def age(text: str, now: int) -> list[float]:
    """Milliseconds since each clock that stands in a text."""
    return [(now - int(found)) / 1e6 for found in _CLOCK.findall(text)]


class Pipe:
    """A client of the pipe without a log."""

    def __init__(self, ws: aiohttp.ClientWebSocketResponse) -> None:
        self._ws = ws
        self._prompts = 0

    async def play(self, text: str, take: Callable[[dict[str, Any], int], None]) -> float:
        """Seconds from the prompt to the end of its turn; `take` gets each message and the time it came."""
        self._prompts += 1
        begin = time.perf_counter()
        await self._ws.send_str(json.dumps({"type": "prompt", "id": str(self._prompts), "text": text}))
        while True:
            message = json.loads(await self._ws.receive_bytes())
            take(message, time.time_ns())
            if message["type"] == "turn_done":
                return time.perf_counter() - begin


@asynccontextmanager
async def pipe() -> AsyncGenerator[Pipe]:
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.bench.pipe", cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert server.stdout is not None
    try:
        port = json.loads(await server.stdout.readline())["port"]
        async with (
            aiohttp.ClientSession() as http,
            http.ws_connect(f"http://127.0.0.1:{port}/ws", max_msg_size=0) as ws,
        ):
            await ws.send_str('{"type": "hello"}')
            await ws.receive_bytes()
            yield Pipe(ws)
    finally:
        server.terminate()
        await server.wait()


class Watched:
    """A client of the product that notes the time at which each frame came."""

    def __init__(self, client: Client, session: str) -> None:
        self.client = client
        self.session = session
        self.turns = 0

    async def play(self, text: str) -> float:
        self.turns += 1
        begin = time.perf_counter()
        await self.client.call("session.prompt", session=self.session, text=text)
        await self.client.wait("turn.completed", count=self.turns, within=300)
        return time.perf_counter() - begin


def cpu_of(processes: list[psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in processes if process.is_running())


async def through_the_log(folder: Path, facts: list[float], ticks: list[float]) -> tuple[float, float, bool]:
    """Ages of facts and pieces in ms; seconds and CPU seconds of the flood; whether its text is equal."""
    environment = {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests/bench/installed'}"}
    async with running(folder, environment) as product, await product.client() as client:
        arrived = stamp(client)
        session = (await client.call("session.create", adapter="bench", cwd=str(ROOT)))["session"]
        await client.subscribe(session)
        watched = Watched(client, session)
        await watched.play("say warm")

        await watched.play(FACTS)
        for number, frame in enumerate(client.frames):
            if frame.get("event") == "message.assistant":
                facts += age(json.dumps(frame["payload"]["data"]["content"]), arrived[number])

        seen: set[str] = set()
        begin = len(client.frames)
        await watched.play(TICKS)
        for number, frame in enumerate(client.frames[begin:], begin):
            if frame.get("event") == "message.delta":
                text = frame["payload"]["data"]["text"]
                fresh = [clock for clock in _CLOCK.findall(text) if clock not in seen]
                seen.update(fresh)
                ticks += [(arrived[number] - int(clock)) / 1e6 for clock in fresh]

        services = services_of(product)
        spent = cpu_of(services)
        seconds = await watched.play(FLOOD)
        texts = [e["data"]["content"][0]["text"] for e in client.events("message.assistant")]
        return seconds, cpu_of(services) - spent, texts[-1] == FLOOD_TEXT


def stamp(client: Client) -> list[int]:
    """The time at which each frame of `client.frames` came."""
    arrived: list[int] = []

    class Frames(list[Any]):
        def append(self, frame: Any) -> None:
            arrived.append(time.time_ns())
            super().append(frame)

    client.frames = Frames(client.frames)
    arrived.extend([0] * len(client.frames))
    return arrived


def services_of(product: Product) -> list[psutil.Process]:
    found = [product.find(name) for name in ("nats-server", "adapters", "gateway", "projector", "permissions")]
    return [process for process in found if process is not None]


async def without_a_log(facts: list[float], ticks: list[float]) -> float:
    """The same, through the bare pipe; seconds of the flood."""

    def take_fact(message: dict[str, Any], now: int) -> None:
        if message["type"] == "message":
            facts.extend(age(message["text"], now))

    def take_tick(message: dict[str, Any], now: int) -> None:
        if message["type"] == "text":
            ticks.extend(age(message["text"], now))

    def ignore(_: dict[str, Any], __: int) -> None:
        pass

    async with pipe() as client:
        await client.play("say warm", ignore)
        await client.play(FACTS, take_fact)
        await client.play(TICKS, take_tick)
        return await client.play(FLOOD, ignore)


async def measure(folder: Path) -> list[Figure]:
    bare_facts: list[float] = []
    bare_ticks: list[float] = []
    bare_flood = await without_a_log(bare_facts, bare_ticks)
    facts: list[float] = []
    ticks: list[float] = []
    flood, cpu, equal = await through_the_log(folder, facts, ticks)
    return [
        _latency("fact, agent stdout to client, p50", facts, bare_facts),
        _latency("delta 50 ms apart, stdout to client, p50", ticks, bare_ticks),
        Figure(
            name=f"flood of {PIECES:,} pieces, end to end",
            unit="s",
            value=flood,
            limit=bare_flood,
            limit_name="bare pipe",
            goal=2.0,
            at_least=False,
            note=f"text {'equal' if equal else 'DIFFERS'}; CPU {cpu / PIECES * 1e6:.0f} us a piece in all services",
        ),
    ]


def _latency(name: str, values: list[float], limit: list[float]) -> Figure:
    return Figure(
        name=name,
        unit="ms",
        value=percentile(values, 0.5),
        limit=percentile(limit, 0.5),
        limit_name="bare pipe",
        goal=3.0,
        at_least=False,
        note=f"p99 {percentile(values, 0.99):.2f} ms; {len(values)} of {len(limit)} seen; sync always",
    )

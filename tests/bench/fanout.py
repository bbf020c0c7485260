"""One session's events to many WebSocket clients: the gateway against plain aiohttp sending the same bytes."""

import asyncio
import json
import os
import statistics
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec
import psutil
from tests.bench.blast import MARK
from tests.bench.child import module
from tests.bench.report import Figure
from tests.bench.sockets import Counter, close, connect, subscribed

from trunkline_bus import direct, topology
from trunkline_bus.connection import Bus, BusSettings
from trunkline_bus.writer import SessionWriter
from trunkline_testkit import eventually
from trunkline_testkit.nats import NatsServer
from trunkline_wire import AgentRef, encode, make_event, subjects, timestamp
from trunkline_wire.blocks import TextBlock
from trunkline_wire.ids import new_host_id, new_session_id, new_worker_id
from trunkline_wire.session import SessionCreated
from trunkline_wire.turn import MessageAssistant

CLIENTS: Final = {1: 10_000, 10: 5_000, 100: 1_000}
"""Clients, and events sent to each."""
ROUNDS: Final = 3
IDLE: Final = 500
TEXT: Final = 300


class Run(msgspec.Struct):
    """Seconds, and CPU seconds of the sending process, for `deliveries` frames."""

    wall: float
    cpu: float
    deliveries: int

    @property
    def rate(self) -> float:
        return self.deliveries / self.wall

    @property
    def us(self) -> float:
        return self.cpu / self.deliveries * 1e6


class Gateway:
    """A running gateway process and the session whose events it hands out."""

    def __init__(self, bus: Bus, server: NatsServer, process: psutil.Process, url: str, token: str) -> None:
        self.bus = bus
        self.server = server
        self.process = process
        self.url = url
        self.token = token
        self.session = new_session_id()
        self._seq = 1
        self.frame = 0
        """Bytes of a frame's payload, about."""

    async def new_session(self, session: str | None = None) -> str:
        """A session with its first event; its id."""
        session = session or new_session_id()
        created = SessionCreated(adapter="bench", cwd="/", host=new_host_id(), workspace="ws_" + "0" * 32)
        worker, agent = new_worker_id(), AgentRef(adapter="bench")
        writer = await SessionWriter.create(self.bus, created, session=session, worker=worker, agent=agent)
        await writer.close()
        return session

    async def fill(self, count: int) -> None:
        """Put events into the log, quicker than an agent could: not one behind the other."""
        end = await direct.end(self.bus, subjects.EVENTS)
        for number in range(count):
            self._seq += 1
            text = "x" * TEXT if number < count - 1 else "x" * (TEXT - len(MARK)) + MARK.decode()
            data = MessageAssistant(content=[TextBlock(text=text)])
            event = make_event(data, session=self.session, time=timestamp(), seq=self._seq, epoch=1)
            headers = {subjects.HEADER_ID: event.id, subjects.HEADER_TYPE: event.type}
            raw = encode(event)
            self.frame = len(raw) + 220
            await self.bus.writing.publish(subjects.event(self.session, "agent.fact"), raw, headers=headers)
            if number % 1000 == 0:
                await self.bus.writing.flush()
        stored = await direct.end(self.bus, subjects.EVENTS)
        while stored < end + count:
            await asyncio.sleep(0.02)
            stored = await direct.end(self.bus, subjects.EVENTS)

    async def deliver(self, clients: list[Counter], count: int, by: psutil.Process | None = None) -> Run:
        """The events are stored while the gateway (or `by`) is stopped, so that it alone is what limits it afterwards."""
        process = by or self.process
        arrived = [client.expect(MARK) for client in clients]
        before = sum(client.bytes for client in clients)
        process.suspend()
        try:
            await self.fill(count)
            spent, begin = cpu(process), time.perf_counter()
        finally:
            process.resume()
        await asyncio.wait_for(asyncio.gather(*arrived), 120)
        wall = time.perf_counter() - begin
        if by is None:
            self.frame = (sum(client.bytes for client in clients) - before) // (count * len(clients))
        return Run(wall, cpu(process) - spent, count * len(clients))


def cpu(process: psutil.Process) -> float:
    return sum(process.cpu_times()[:2])


@asynccontextmanager
async def gateway(home: Path, *beside: str) -> AsyncGenerator[Gateway]:
    """A gateway and, `beside` it, other services of the same log."""
    with NatsServer() as server:
        async with Bus.open(BusSettings(url=server.url, name="bench")) as bus:
            await topology.apply(bus.js)
            await bus.read_log_id()
            environment = _environment(home, server)
            async with AsyncExitStack() as stack:
                for name in beside:
                    await stack.enter_async_context(module(f"trunkline_{name}", environment=environment))
                process = await stack.enter_async_context(
                    module("trunkline_gateway", "--port", "0", environment=environment)
                )
                running = await _answering(bus, server, process.pid, home)
                await running.new_session(running.session)
                yield running


@asynccontextmanager
async def another(first: Gateway, home: Path) -> AsyncGenerator[Gateway]:
    """A second gateway on the log of the first, in a home of its own."""
    environment = _environment(home, first.server)
    async with module("trunkline_gateway", "--port", "0", environment=environment) as process:
        yield await _answering(first.bus, first.server, process.pid, home)


def _environment(home: Path, server: NatsServer) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "TRUNKLINE_HOME": str(home),
        "TRUNKLINE_NATS_URL": server.url,
        "TRUNKLINE_LOG_LEVEL": "error",
    }


async def _answering(bus: Bus, server: NatsServer, pid: int, home: Path) -> Gateway:
    address = home / "gateway.json"
    await eventually(address.exists, 30)
    url = json.loads(address.read_text())["url"]
    return Gateway(bus, server, psutil.Process(pid), url, (home / "token").read_text().strip())


async def plain(count: int, size: int, number: int) -> Run:
    """The median of several rounds through plain aiohttp."""
    clients: list[Counter] = []
    async with module("tests.bench.blast") as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            url = f"http://127.0.0.1:{json.loads(await server.stdout.readline())['port']}"
            clients = [await connect(url) for _ in range(number)]
            process = psutil.Process(server.pid)
            runs: list[Run] = []
            for _ in range(ROUNDS):
                arrived = [client.expect(MARK) for client in clients]
                spent, begin = cpu(process), time.perf_counter()
                server.stdin.write(f"{count} {size}\n".encode())
                await asyncio.wait_for(asyncio.gather(*arrived), 120)
                wall = time.perf_counter() - begin
                await server.stdout.readline()
                runs.append(Run(wall, cpu(process) - spent, count * number))
            return median(runs)
        finally:
            close(clients)


async def relayed(running: Gateway, count: int, number: int) -> Run:
    """The median of several rounds through a bare pull and plain aiohttp: what no gateway of a log can do without."""
    filter = subjects.session_events(running.session)
    clients: list[Counter] = []
    async with module("tests.bench.relay", running.bus.settings.url, subjects.EVENTS, filter) as server:
        assert server.stdout is not None
        try:
            url = f"http://127.0.0.1:{json.loads(await server.stdout.readline())['port']}"
            clients = [await connect(url) for _ in range(number)]
            process = psutil.Process(server.pid)
            return median([await running.deliver(clients, count, process) for _ in range(ROUNDS)])
        finally:
            close(clients)


def median(runs: list[Run]) -> Run:
    return sorted(runs, key=lambda run: run.wall)[len(runs) // 2]


async def measure() -> list[Figure]:
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        async with gateway(Path(folder)) as running:
            figures.append(await idle_clients(running))
            for number, count in CLIENTS.items():
                async with subscribed(running.url, running.token, running.session, number) as clients:
                    ours = median([await running.deliver(clients, count) for _ in range(ROUNDS)])
                name = f"fan-out to {number} client{'s' if number > 1 else ''}, {running.frame} B"
                bare = await plain(count, running.frame, number)
                figures.append(_figure(name, ours, bare, "plain aiohttp"))
                figures.append(_figure(name, ours, await relayed(running, count, number), "bare pull + aiohttp"))
    return figures


def _figure(name: str, ours: Run, limit: Run, limit_name: str) -> Figure:
    return Figure(
        name=name,
        unit="/s",
        value=ours.rate,
        limit=limit.rate,
        limit_name=limit_name,
        goal=0.6,
        at_least=True,
        note=f"CPU {ours.us:.1f} against {limit.us:.1f} us a delivery",
    )


async def idle_clients(running: Gateway) -> Figure:
    """Memory of the gateway that an idle client costs."""

    def used() -> int:
        return running.process.memory_full_info().uss

    async with subscribed(running.url, running.token, running.session, 20):
        before = used()
        sizes: list[int] = []
        async with subscribed(running.url, running.token, running.session, IDLE):
            for _ in range(3):
                sizes.append(used())
                await asyncio.sleep(1)
    return Figure(
        name=f"memory of an idle client ({IDLE} of them)",
        unit="KB",
        value=(statistics.median(sizes) - before) / IDLE / 1000,
        limit=30,
        limit_name="30 KB",
        goal=1.0,
    )

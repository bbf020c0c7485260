"""What the soak stands on and the killer hits: services side by side on one nats-server or three, some behind proxies."""

import asyncio
import contextlib
import os
import random
import signal
import time
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final, Protocol

from trunkline_bus.connection import Bus
from trunkline_testkit.chaos.census import census
from trunkline_testkit.chaos.faults import Fault, Kind
from trunkline_testkit.chaos.stage import Part, Service, Stage
from trunkline_testkit.nats import NatsServer
from trunkline_testkit.nats_cluster import NatsCluster
from trunkline_testkit.proxy import NatsProxy

ROOT: Final = Path(__file__).parents[3]
PYTHONPATH: Final = ":".join(str(ROOT / part) for part in ("", "libs", "services", "tests/chaos/installed"))
"""This tree's own code, wherever another is installed, and the entry point of the agent with a journal."""

SERVICES: Final[tuple[tuple[str, Service], ...]] = (
    ("worker", "adapters"),
    ("projector", "projector"),
    ("projector2", "projector"),
    ("permissions", "permissions"),
    ("permissions2", "permissions"),
    ("gateway1", "gateway"),
    ("gateway2", "gateway"),
    ("gateway3", "gateway"),
)
PROXIED: Final = ("worker", "permissions2", "gateway3")

REPLICAS: Final = {"R1": 1, "R3": 3}
WEIGHTS: Final[Mapping[str, Mapping[str, float]]] = {
    "R1": {**dict.fromkeys(("projector", "projector2", "permissions", "permissions2"), 1.5), "worker": 5, "agent": 4}
    | {"gateway1": 1.5, "gateway2": 1.5, "gateway3": 1.5, "nats": 4},
    "R3": {**dict.fromkeys(("projector", "projector2", "permissions", "permissions2"), 1.0), "worker": 4, "agent": 3}
    | {"gateway1": 1, "gateway2": 1, "gateway3": 1, "leader": 4, "node": 2},
}
OTHERS: Final[Mapping[Kind, tuple[str, ...]]] = {
    "stop": ("worker", "projector", "permissions", "gateway1", "nats"),
    "cut": PROXIED,
    "delay": PROXIED,
}


class Gateway(Protocol):
    """Where clients connect."""

    @property
    def name(self) -> str: ...
    @property
    def socket(self) -> str: ...


class Ground(Protocol):
    """`home` is the services' own. What `bus` gives reads all of the log."""

    @property
    def home(self) -> Path: ...
    @property
    def gateways(self) -> Sequence[Gateway]: ...
    @property
    def bus(self) -> Bus: ...

    async def strike(self, fault: Fault, chance: random.Random, sessions: Collection[str]) -> float:
        """Does the fault; the moment from which recovery counts, by the monotonic clock."""
        ...

    async def mended(self) -> None:
        """Ends what only recovery may end."""
        ...


class StageGround:
    """`parts` by name. `strike` returns once what was hit is back."""

    def __init__(self, stage: Stage, parts: dict[str, Part], proxies: dict[str, list[NatsProxy]], bus: Bus) -> None:
        self.stage = stage
        self.home = stage.home
        self.parts = parts
        self.bus = bus
        self._proxies = proxies
        self._down: list[NatsServer] = []

    @property
    def gateways(self) -> Sequence[Gateway]:
        return [self.parts[name] for name in ("gateway1", "gateway2", "gateway3")]

    async def strike(self, fault: Fault, chance: random.Random, sessions: Collection[str]) -> float:
        match fault.kind, fault.part:
            case "kill", "agent":
                kill_agent(chance, sessions)
                return time.monotonic()
            case "kill", "nats":
                return await self._kill_server(self.stage.servers[0])
            case "kill", "leader" | "node":
                return await self._kill_node(chance, leading=fault.part == "leader")
            case "kill", name:
                part = self.parts[name]
                part.kill()
                begin = time.monotonic()
                await part.restart()
                return begin
            case "stop", "nats":
                server = chance.choice(self.stage.servers)
                server.pause()
                await asyncio.sleep(fault.seconds)
                server.resume()
            case "stop", name:
                self.parts[name].stop()
                await asyncio.sleep(fault.seconds)
                self.parts[name].cont()
            case "cut", name:
                for proxy in self._proxies[name]:
                    proxy.cut()
                await asyncio.sleep(fault.seconds)
                for proxy in self._proxies[name]:
                    proxy.heal()
            case "delay", name:
                for proxy in self._proxies[name]:
                    proxy.delay = 0.15
                await asyncio.sleep(fault.seconds)
                for proxy in self._proxies[name]:
                    proxy.delay = 0.0
        return time.monotonic()

    async def mended(self) -> None:
        """Starts again the nodes that stay away until the rest has recovered, and waits until the cluster is whole."""
        while self._down:
            await asyncio.to_thread(self._down.pop().start)
        if isinstance(self.stage.nats, NatsCluster):
            await asyncio.to_thread(self.stage.nats.wait_ready)

    async def _kill_server(self, server: NatsServer) -> float:
        begin = time.monotonic()
        await asyncio.to_thread(server.restart)
        return begin

    async def _kill_node(self, chance: random.Random, *, leading: bool) -> float:
        cluster = self.stage.nats
        assert isinstance(cluster, NatsCluster)
        leader = await asyncio.to_thread(cluster.stream_leader, "EVENTS")
        others = [node for node in cluster.nodes if node is not leader]
        node = leader if leading else chance.choice(others)
        begin = time.monotonic()
        await asyncio.to_thread(node.kill)
        self._down.append(node)
        return begin


def kill_agent(chance: random.Random, sessions: Collection[str]) -> None:
    """SIGKILL for some process of some session's agent."""
    beings = [being for being in census() if being.session in sessions]
    if beings:
        with contextlib.suppress(ProcessLookupError):
            os.kill(chance.choice(beings).pid, signal.SIGKILL)


@contextlib.asynccontextmanager
async def stage_ground(replicas: int, home: Path) -> AsyncGenerator[StageGround]:
    """All parts ready; nothing is left at the end."""
    servers = NatsServer(sync_interval="always") if replicas == 1 else NatsCluster(sync_interval="always")
    async with AsyncExitStack() as stack:
        stage = await stack.enter_async_context(Stage(servers, home, environment={"PYTHONPATH": PYTHONPATH}))
        proxies: dict[str, list[NatsProxy]] = {}
        parts: dict[str, Part] = {}
        for name, service in SERVICES:
            via = None
            if name in PROXIED:
                via = [await stack.enter_async_context(NatsProxy(server.url)) for server in stage.servers]
                proxies[name] = via
            settings: dict[str, Any] = {"record_native": True, "only": "chaos"} if service == "adapters" else {}
            parts[name] = await stage.start(service, name=name, via=via, wait=False, **settings)
        for part in parts.values():
            await part.ready()
        bus = await stack.enter_async_context(stage.bus())
        yield StageGround(stage, parts, proxies, bus)

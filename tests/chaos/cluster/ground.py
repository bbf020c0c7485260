"""A cluster as it is deployed: three nats-servers on hosts of their own, two hosts of workers, replicas of every service."""

import asyncio
import contextlib
import json
import random
import time
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

from tests.chaos.soak.ground import PYTHONPATH, kill_agent

from trunkline_bus.connection import Bus
from trunkline_testkit.chaos.stage import Part, Service, Stage
from trunkline_testkit.namespaces import Namespaces
from trunkline_testkit.nats import NatsServer
from trunkline_testkit.nats_cluster import NatsCluster

PARTS: Final = 8
"""That the projectors share."""

SERVICES: Final[tuple[tuple[str, Service], ...]] = (
    ("worker1", "adapters"),
    ("worker2", "adapters"),
    ("projector1", "projector"),
    ("projector2", "projector"),
    ("permissions1", "permissions"),
    ("permissions2", "permissions"),
    ("gateway1", "gateway"),
    ("gateway2", "gateway"),
    ("gateway3", "gateway"),
)

WEIGHTS: Final[Mapping[str, float]] = {
    **dict.fromkeys(("worker1", "worker2", "agent"), 2.0),
    **dict.fromkeys((name for name, service in SERVICES if service != "adapters"), 1.2),
    "leader killed": 1.0,
    "node killed": 1.0,
    "leader cut off": 1.0,
    "nodes rolled": 0.5,
}

AWAY_S: Final = (2.0, 8.0)
"""Seconds that a node is away."""
WHOLE_S: Final = 120.0
"""Seconds that the cluster, or a service, may take to be there again on a busy machine."""


class ClusterGround:
    """`strike` returns when what was hit is back, and the cluster whole."""

    def __init__(self, stage: Stage, net: Namespaces, parts: dict[str, Part], homes: list[Path], bus: Bus) -> None:
        self.stage = stage
        self.home = stage.home
        self.homes = homes
        self.parts = parts
        self.bus = bus
        self._net = net

    @property
    def hosts(self) -> list[str]:
        """The ids of the workers' hosts. Sessions are bound to one: what may run anywhere would be closed, as it should, where
        its host changes three times in five minutes.
        """
        return [json.loads((home / "host.json").read_text())["id"] for home in self.homes]

    @property
    def cluster(self) -> NatsCluster:
        assert isinstance(self.stage.nats, NatsCluster)
        return self.stage.nats

    @property
    def gateways(self) -> list[Part]:
        return [part for part in self.parts.values() if part.service == "gateway"]

    async def strike(self, what: str, chance: random.Random, sessions: Collection[str]) -> float:
        """Does it; seconds until all was there again."""
        begin = time.monotonic()
        match what:
            case "agent":
                kill_agent(chance, sessions)
            case "leader killed" | "node killed":
                node = await self._node(chance, leading=what == "leader killed")
                await asyncio.to_thread(node.kill)
                await asyncio.sleep(chance.uniform(*AWAY_S))
                await asyncio.to_thread(node.start)
                await self._whole()
            case "leader cut off":
                node = await self._node(chance, leading=True)
                self._net.cut(node.host)
                await asyncio.sleep(chance.uniform(*AWAY_S))
                self._net.heal(node.host)
                await self._whole()
            case "nodes rolled":
                for node in self.cluster.nodes:
                    await asyncio.to_thread(node.terminate)
                    await asyncio.to_thread(node.start)
                    await self._whole()
            case name:
                self.parts[name].kill()
                await self.parts[name].restart(WHOLE_S)
        return time.monotonic() - begin

    async def ended_by_themselves(self) -> list[str]:
        """Parts that nobody killed and that do not run, in words."""
        return [
            f"{part.name} ended by itself, code {await part.gone()}\n{part.log_end()}"
            for part in self.parts.values()
            if not part.running
        ]

    async def _node(self, chance: random.Random, *, leading: bool) -> NatsServer:
        leader = await asyncio.to_thread(self.cluster.stream_leader, "EVENTS")
        return leader if leading else chance.choice([node for node in self.cluster.nodes if node is not leader])

    async def _whole(self) -> None:
        await asyncio.to_thread(self.cluster.wait_ready, WHOLE_S)


@contextlib.asynccontextmanager
async def cluster_ground(home: Path) -> AsyncGenerator[ClusterGround]:
    """All parts ready; nothing is left at the end."""
    async with AsyncExitStack() as stack:
        net = stack.enter_context(Namespaces(3))
        cluster = NatsCluster(sync_interval="always", hosts=net.hosts)
        stage = await stack.enter_async_context(Stage(cluster, home, environment={"PYTHONPATH": PYTHONPATH}))
        parts: dict[str, Part] = {}
        homes: list[Path] = []
        for name, service in SERVICES:
            settings: dict[str, Any] = {}
            at = home
            if service == "adapters":
                at = home / name
                homes.append(at)
                settings = {"record_native": True, "only": "chaos"}
            elif service == "projector":
                settings = {"parts": PARTS}
            parts[name] = await stage.start(service, name=name, wait=False, home=at, **settings)
        for part in parts.values():
            await part.ready(WHOLE_S)
        bus = await stack.enter_async_context(stage.bus())
        yield ClusterGround(stage, net, parts, homes, bus)

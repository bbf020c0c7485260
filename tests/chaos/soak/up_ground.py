"""`trunkline up` as a user starts it: the supervisor brings back what dies, and is killed itself."""

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncGenerator, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil
from tests.chaos.soak.ground import PYTHONPATH, kill_agent

from trunkline_bus.connection import Bus, BusSettings
from trunkline_testkit.chaos.faults import Fault, Kind
from trunkline_testkit.product import Product

WEIGHTS: Final[Mapping[str, float]] = {
    "supervisor": 3,
    "worker": 4,
    "agent": 3,
    "nats-server": 3,
    "projector": 1.5,
    "permissions": 2,
    "gateway": 2.5,
}
OTHERS: Final[Mapping[Kind, tuple[str, ...]]] = {
    "stop": ("worker", "projector", "permissions", "gateway", "nats-server")
}
READER: Final = "admin"
"""The NATS user that may read every stream and bucket."""


@dataclass(frozen=True)
class Door:
    """The gateway under another name for each client."""

    name: str
    socket: str


class UpGround:
    """The bus is opened anew after each start of the product: its nats-server may have another port."""

    def __init__(self, product: Product) -> None:
        self.home = product.trunkline_home
        self.gateways = [Door(f"gateway, client {n}", str(self.home / "gateway.sock")) for n in (1, 2, 3)]
        self._product = product
        self._bus: Bus | None = None

    @property
    def bus(self) -> Bus:
        assert self._bus is not None
        return self._bus

    async def start(self) -> None:
        """Starts the product, and connects to its log."""
        await self._product.start()
        await self.leave()
        seed = self.home / "nats" / "keys" / f"{READER}.nk"
        self._bus = await Bus.open(BusSettings(url=self._product.state["nats"], seed_file=seed, name="soak"))

    async def leave(self) -> None:
        """Closes the bus."""
        if self._bus is not None:
            await self._bus.close()
            self._bus = None

    async def strike(self, fault: Fault, chance: random.Random, sessions: Collection[str]) -> float:
        name = "adapters" if fault.part == "worker" else fault.part
        begin = time.monotonic()
        match fault.kind, name:
            case "kill", "agent":
                kill_agent(chance, sessions)
            case "kill", "supervisor":
                assert self._product.process is not None
                self._product.process.kill()
                await self._product.process.wait()
                await self.start()
            case "kill", _:
                if (process := await self._running(name)) is not None:
                    process.kill()
                    await self._product.restarted(name, process.pid)
            case _:
                if (process := await self._running(name)) is not None:
                    process.suspend()
                    await asyncio.sleep(fault.seconds)
                    process.resume()
                begin = time.monotonic()
        return begin

    async def mended(self) -> None:
        """Nothing stays away here."""

    async def _running(self, name: str) -> psutil.Process | None:
        return await asyncio.to_thread(self._product.find, name)


@contextlib.asynccontextmanager
async def up_ground(home: Path) -> AsyncGenerator[UpGround]:
    """The product, stopped as a user stops it."""
    environment = {
        "PYTHONPATH": PYTHONPATH,
        "TRUNKLINE_ADAPTERS_RECORD_NATIVE": "true",
        "TRUNKLINE_ADAPTERS_ONLY": "chaos",
    }
    product = Product(home, environment)
    ground = UpGround(product)
    try:
        await ground.start()
        yield ground
    finally:
        await ground.leave()
        if product.process is not None:
            await product.stop()

"""Replicas of the permission service, each behind a proxy of its own: they stall, lose their lines, die and come back."""

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from trunkline_bus.connection import Bus, BusSettings
from trunkline_permissions.app import permissions
from trunkline_permissions.settings import PermissionsSettings
from trunkline_testkit.proxy import Action, NatsProxy, Passing


class Replica:
    """The service in a task, to be killed at any await. `faults` counts what was done to it."""

    def __init__(self, url: str, settings: PermissionsSettings, chance: random.Random) -> None:
        self.proxy = NatsProxy(url)
        self.proxy.on_publish = self._on_publish
        self.faults = 0
        self._settings = settings
        self._chance = chance
        self._armed: Action | None = None
        self._struck = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self.proxy.start()
        self._launch()

    async def stop(self) -> None:
        self.proxy.heal()
        await self._kill()
        await self.proxy.stop()

    async def harm(self) -> None:
        """One fault, over when this returns."""
        self.faults += 1
        match self._chance.choice(["kill", "kill", "stall", "reset", "hold", "after", "drop"]):
            case "kill":
                await self._kill()
                self._launch()
            case "stall":
                self.proxy.cut()
                await asyncio.sleep(self._chance.random() * 0.5)
                self.proxy.heal()
            case "reset":
                self.proxy.reset()
            case "drop":
                await self._at_an_append("drop")
            case moment:
                await self._at_an_append("hold" if moment == "hold" else "pass_then_hold")
                await asyncio.sleep(self._chance.random() * 0.3)
                if self._chance.random() < 0.5:
                    await self._kill()
                    self._launch()
                self.proxy.heal()

    async def _at_an_append(self, action: Action) -> None:
        """Do that to the next append of this replica; gives up where it appends nothing for a while."""
        self._armed, self._struck = action, asyncio.Event()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.4):
                await self._struck.wait()
        self._armed = None

    def _on_publish(self, message: Passing) -> Action | None:
        if self._armed is None or not message.subject.endswith(".permission"):
            return None
        action, self._armed = self._armed, None
        self._struck.set()
        return action

    async def _kill(self) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait([self._task])  # unlike an await of the task, it tells a kill from the caller's own end
        # One that ended by itself is a fault of the service, and no kill hides it.
        if not self._task.cancelled():
            self._task.result()

    def _launch(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        async with (
            Bus.open(BusSettings(url=self.proxy.url, connect_within=None)) as bus,
            permissions(bus, self._settings),
        ):
            await asyncio.Event().wait()


@asynccontextmanager
async def replicas(
    urls: list[str], settings: PermissionsSettings, chance: random.Random
) -> AsyncGenerator[list[Replica]]:
    """One replica a URL, running until the block ends."""
    made = [Replica(url, settings, random.Random(chance.random())) for url in urls]
    try:
        for replica in made:
            await replica.start()
        yield made
    finally:
        for replica in made:
            await replica.stop()

"""The composition root of the permission service."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import nats.errors

from trunkline_bus import metrics
from trunkline_bus.clock import ServerClock
from trunkline_bus.connection import Bus
from trunkline_bus.feed import Feed
from trunkline_bus.projection import Projection
from trunkline_permissions.decider import SERVICE, Decider
from trunkline_permissions.host import OwnHost
from trunkline_permissions.policy_file import PolicyFile, record_policy
from trunkline_permissions.remembered import remember
from trunkline_permissions.settings import PermissionsSettings
from trunkline_permissions.view import FILTERS, AsksView
from trunkline_service import Service
from trunkline_wire import TrunklineError, subjects

log = logging.getLogger(__name__)


async def run_app(service: Service[PermissionsSettings]) -> None:
    """Decide until the service is told to stop. An append under way is finished; what is not begun is left to the next start."""
    async with permissions(service.bus, service.settings) as (decider, policy):
        service.health.add("policy", lambda: policy.problem)
        service.health.add("log", lambda: None if decider.ready.is_set() else "reading the backlog")
        service.health.facts["open_asks"] = lambda: decider.open_asks
        metrics.PERMISSION_OPEN_ASKS.set_function(lambda: decider.open_asks)
        metrics.PERMISSION_OLDEST_ASK.set_function(lambda: decider.oldest_ask)
        await decider.ready.wait()
        service.ready()
        await service.stopping.wait()


@asynccontextmanager
async def permissions(bus: Bus, settings: PermissionsSettings) -> AsyncGenerator[tuple[Decider, PolicyFile]]:
    """The parts at work while the block runs, on a bus that is given: also for tests."""
    policy = PolicyFile(settings.policy_path, settings.home, Path.home())
    policy.refresh()
    clock = ServerClock()
    await clock.read(bus)
    feed = Feed(bus, bus.layout.only, FILTERS, urgent=[subjects.ALL_ASKS, subjects.ALL_PERMISSIONS])
    host = OwnHost(settings.home)
    decider = Decider(bus, feed, policy, clock, await remember(bus), host=host)
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(decider.run(), name="decider"),
            group.create_task(Projection(bus, AsksView(), SERVICE, feed).run(), name="projection"),
            group.create_task(clock.keep(bus), name="clock"),
            group.create_task(_watch_policy(bus, policy, decider, settings.poll_s), name="policy"),
        ]
        try:
            yield decider, policy
        finally:
            for task in tasks:
                task.cancel()


async def _watch_policy(bus: Bus, policy: PolicyFile, decider: Decider, every: float) -> None:
    recorded = ""
    while True:
        if recorded != policy.policy.version:
            try:
                await record_policy(bus, policy)
                recorded = policy.policy.version
            except (TrunklineError, nats.errors.Error, TimeoutError) as error:
                # Deciding goes on without the audit's copy; the next look tries again.
                log.warning("policy_not_recorded", extra={"error": str(error)})
        await asyncio.sleep(every)
        if policy.refresh():
            decider.policy_changed()

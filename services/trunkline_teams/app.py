"""The composition root of the team service."""

import asyncio
from functools import partial
from typing import Final, get_args

from trunkline_bus import metrics
from trunkline_bus.connection import Bus
from trunkline_bus.feed import Feed
from trunkline_bus.projection import Projection
from trunkline_bus.shifts import Role, take_shifts
from trunkline_bus.tasks import end
from trunkline_fold.team.board import TaskStatus
from trunkline_service import Service, Settings
from trunkline_teams.keeper import SERVICE, Keeper
from trunkline_teams.view import FILTERS, TeamsView

NAME: Final = SERVICE
LEASE: Final = "teams.all"


class Teams:
    """Team events and the boards of one bus. `run` keeps both until cancelled."""

    def __init__(self, bus: Bus) -> None:
        feed = Feed(bus, bus.layout.only, FILTERS)
        self.keeper = Keeper(bus, feed)
        self.boards = Projection(bus, TeamsView(), NAME, feed)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.keeper.run(), name="keeper")
            group.create_task(self.boards.run(), name="boards")

    async def wait_ready(self) -> None:
        """Return once everything that the log held at the start is heard and stored."""
        await self.keeper.ready.wait()
        await self.boards.ready.wait()

    def behind(self) -> str | None:
        """What is not yet, or no longer, caught up with the log; None if all is."""
        parts = {"team events": self.keeper.ready, "boards": self.boards.ready}
        names = [name for name, ready in parts.items() if not ready.is_set()]
        return f"{', '.join(names)} catching up" if names else None


async def run_app(service: Service[Settings]) -> None:
    """Write and project until the service stops: at once where no other replica does, else as soon as that one ends."""
    bus, role = service.bus, "standing by"
    teams = Teams(bus)

    def on_role(new: Role) -> None:
        nonlocal role
        role = new
        if role == "standing by":
            service.ready()

    async def work() -> None:
        nonlocal teams
        teams = Teams(bus)
        service.health.set_ready(False)
        async with asyncio.TaskGroup() as group:
            group.create_task(teams.run(), name="teams")
            await teams.wait_ready()
            service.ready()

    def tasks(status: TaskStatus) -> int:
        return teams.keeper.tasks(status)

    service.health.add("teams", lambda: teams.behind() if role == "at work" else None)
    service.health.facts["role"] = lambda: role
    service.health.facts["teams"] = lambda: teams.keeper.teams
    metrics.TEAMS.set_function(lambda: teams.keeper.teams)
    metrics.TEAM_MEMBERS.set_function(lambda: teams.keeper.members)
    for status in get_args(TaskStatus):
        metrics.TEAM_TASKS.labels(status).set_function(partial(tasks, status))
    shifts = asyncio.create_task(take_shifts(bus, LEASE, work, on_role), name="shifts")
    stopping = asyncio.create_task(service.stopping.wait(), name="stopping")
    try:
        await asyncio.wait({shifts, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if shifts.done():
            shifts.result()
    finally:
        stopping.cancel()
        await end(shifts)

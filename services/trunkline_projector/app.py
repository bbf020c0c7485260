"""The composition root of the projector."""

import asyncio

from trunkline_bus.connection import Bus
from trunkline_bus.feed import Feed
from trunkline_bus.projection import Projection
from trunkline_bus.shifts import Role, take_shifts
from trunkline_bus.tasks import end
from trunkline_projector.histories import PagesView
from trunkline_projector.sessions import SessionsView
from trunkline_projector.workspaces import Workspaces
from trunkline_service import Service, Settings
from trunkline_wire import subjects

NAME = "projector"
LEASE = "projector.all"


class Projector:
    """All projections of one bus. `run` keeps them until cancelled."""

    def __init__(self, bus: Bus) -> None:
        feed = Feed(bus, subjects.EVENTS, [subjects.ALL_EVENTS])
        self.sessions = Projection(bus, SessionsView(), NAME, feed)
        self.pages = Projection(bus, PagesView(), NAME, feed)
        self.workspaces = Workspaces(bus)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.sessions.run(), name="sessions")
            group.create_task(self.pages.run(), name="pages")
            group.create_task(self.workspaces.run(), name="workspaces")

    async def wait_ready(self) -> None:
        """Return once everything that the log held at the start is stored."""
        for part in (self.sessions, self.pages, self.workspaces):
            await part.ready.wait()

    def behind(self) -> str | None:
        """What is not yet, or no longer, caught up with the log; None if all is."""
        parts = {"sessions": self.sessions, "pages": self.pages, "workspaces": self.workspaces}
        names = [name for name, part in parts.items() if not part.ready.is_set()]
        return f"{', '.join(names)} catching up" if names else None


async def run_app(service: Service[Settings]) -> None:
    """Project until the service stops: at once where no other replica does, else as soon as that one ends."""
    bus, role = service.bus, "standing by"
    projector = Projector(bus)

    def on_role(new: Role) -> None:
        nonlocal role
        role = new
        if role == "standing by":
            service.ready()

    async def work() -> None:
        nonlocal projector
        projector = Projector(bus)
        service.health.set_ready(False)
        async with asyncio.TaskGroup() as group:
            group.create_task(projector.run(), name="projector")
            await projector.wait_ready()
            service.ready()

    service.health.add("projections", lambda: projector.behind() if role == "at work" else None)
    service.health.facts["role"] = lambda: role
    shifts = asyncio.create_task(take_shifts(bus, LEASE, work, on_role), name="shifts")
    stopping = asyncio.create_task(service.stopping.wait(), name="stopping")
    try:
        await asyncio.wait({shifts, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if shifts.done():
            shifts.result()
    finally:
        stopping.cancel()
        await end(shifts)

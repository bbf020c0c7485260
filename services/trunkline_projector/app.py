"""The composition root of the projector."""

import asyncio
from typing import Any, Final

from trunkline_bus.connection import Bus
from trunkline_bus.feed import Feed
from trunkline_bus.parts import WHOLE, Part, cut, named
from trunkline_bus.projection import Projection
from trunkline_bus.sharing import Sharing
from trunkline_bus.tasks import end
from trunkline_projector.histories import PagesView
from trunkline_projector.sessions import SessionsView
from trunkline_projector.settings import ProjectorSettings
from trunkline_projector.workspaces import Workspaces
from trunkline_service import Service

NAME: Final = "projector"
WORKSPACES: Final = "workspaces"
"""The piece of work that is not cut in parts: it reads documents of all sessions."""


class Histories:
    """The projections of one part of the log. `run` keeps them until cancelled."""

    def __init__(self, bus: Bus, part: Part = WHOLE) -> None:
        feed = Feed(bus, bus.layout.of_part(part), part.filters)
        self._projections: tuple[Projection[Any], ...] = (
            Projection(bus, SessionsView(), NAME, feed, part),
            Projection(bus, PagesView(), NAME, feed, part),
        )

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for projection in self._projections:
                group.create_task(projection.run())

    @property
    def ready(self) -> bool:
        """Whether everything that the log held at the start is stored."""
        return all(projection.ready.is_set() for projection in self._projections)


class Projector:
    """One replica: takes its share of the work, and knows what of it has caught up."""

    def __init__(self, bus: Bus, parts: int = 1, *, holder: dict[str, Any] | None = None) -> None:
        self._bus = bus
        pieces = [*(part.name for part in cut(parts)), WORKSPACES]
        self._histories: dict[str, Histories] = {}
        self._workspaces: Workspaces | None = None
        self.sharing = Sharing(bus, NAME, pieces, self._work, holder=holder)
        self.run = self.sharing.run

    async def _work(self, piece: str) -> None:
        if piece == WORKSPACES:
            self._workspaces = workspaces = Workspaces(self._bus)
            try:
                await workspaces.run()
            finally:
                self._workspaces = None
        else:
            self._histories[piece] = histories = Histories(self._bus, named(piece))
            try:
                await histories.run()
            finally:
                del self._histories[piece]

    def behind(self) -> str | None:
        """What is not yet, or no longer, caught up with the log; None if all is."""
        names = [piece for piece, histories in self._histories.items() if not histories.ready]
        if self._workspaces is not None and not self._workspaces.ready.is_set():
            names.append(WORKSPACES)
        return f"{', '.join(sorted(names))} catching up" if names else None

    @property
    def role(self) -> str:
        return "at work" if self.sharing.held else "standing by"


async def run_app(service: Service[ProjectorSettings]) -> None:
    """Project until the service stops: this replica's share, or nothing where others do it all."""
    projector = Projector(service.bus, service.settings.parts)
    service.health.add("projections", projector.behind)
    service.health.facts["role"] = lambda: projector.role
    service.health.facts["parts"] = lambda: projector.sharing.held
    sharing = asyncio.create_task(projector.run(), name="sharing")
    stopping = asyncio.create_task(service.stopping.wait(), name="stopping")
    ready = asyncio.create_task(_announce(service, projector), name="ready")
    try:
        await asyncio.wait({sharing, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if sharing.done():
            sharing.result()
    finally:
        stopping.cancel()
        ready.cancel()
        await end(sharing)


async def _announce(service: Service[ProjectorSettings], projector: Projector) -> None:
    await projector.sharing.settled.wait()
    service.ready()

"""A session's life as its owner publishes it, and the same life attacked at one of its points."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from tests.chaos.fence.ground import AGENT, WAIT_S, Ground, Line, claim, created, note

from trunkline_bus.connection import Bus
from trunkline_bus.writer import SessionWriter
from trunkline_testkit import eventually
from trunkline_testkit.chaos.points import Point, at, points, watch
from trunkline_wire import Data, TrunklineError
from trunkline_wire.asks import PermissionRequested
from trunkline_wire.ids import ask_id, new_session_id
from trunkline_wire.session import SessionClosed

KINDS: Final = ("fact", "ask", "delta")


class Life:
    """Create, six facts with an ask and deltas between them, claim, a fact, and the close. `acked` are ids in order."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.session = new_session_id()
        self.acked: list[str] = []
        self.outcome = ""
        self.struck = asyncio.Event()
        self._writer: SessionWriter | None = None
        self._pieces = 0
        self._send = bus.mux.send
        bus.mux.send = self._count  # type: ignore[method-assign]  # the seam of this test

    async def run(self) -> None:
        """To its end: `outcome` is `done`, or the code of the error that ended it."""
        try:
            await self._run()
            self.outcome = "done"
        except TrunklineError as error:
            self.outcome = error.code
        finally:
            if self._writer is not None:
                await self._writer.close(within=0)

    async def _run(self) -> None:
        writer = self._writer = await SessionWriter.create(
            self.bus, created(spawn="spawn"), session=self.session, worker="a", agent=AGENT
        )
        for number in range(3):
            await self._append(note(f"a{number}"))
        await self._piece("some text")
        ask = ask_id(self.session, "i", "k")
        await self._append(PermissionRequested(ask=ask, name="run", incarnation="i", kind="execute"))
        await self._piece(" and more")
        for number in range(3, 6):
            await self._append(note(f"a{number}"))
        await writer.close()
        writer = self._writer = await claim(self.bus, self.session)
        await self._append(note("a6"))
        await self._append(SessionClosed(reason="closed", cmd_seq=0))
        await writer.close()

    async def _append(self, data: Data) -> None:
        assert self._writer is not None
        event = self._writer.append(data)
        await self._writer.flush()
        self.acked.append(event.id)

    async def _piece(self, text: str) -> None:
        """Waits until it has left, so that the marks of all runs are the same."""
        assert self._writer is not None
        writer, before = self._writer, self._pieces
        writer.piece("itm_1", 0, "text", text)
        await eventually(lambda: self._pieces > before or writer.error is not None, WAIT_S)

    def _count(self, subject: str, *args: Any, **options: Any) -> None:
        self._send(subject, *args, **options)
        self._pieces += subject.startswith("trunk.delta.")


async def undisturbed(ground: Ground) -> list[Point]:
    """The points of one life that nobody attacks."""
    async with ground.owner() as (line, bus):
        life, seen = Life(bus), [watch(proxy) for proxy in line.proxies]
        await life.run()
        assert life.outcome == "done"
        # All of a writer's messages go over one connection, and so over one proxy.
        return points(max(seen, key=lambda marks: len(points(marks, KINDS))), KINDS)


def strike(line: Line, point: Point, life: Life, act: Callable[[], None]) -> None:
    """Calls `act` once, when `life` is at `point`."""

    def once() -> None:
        if not life.struck.is_set():
            line.watch_clear()
            life.struck.set()
            act()

    for proxy in line.proxies:
        at(proxy, point, once)

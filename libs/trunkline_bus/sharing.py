"""Several replicas share pieces of work, each piece by a lease. The leases only spare work: compare-and-set is the fence.

Every replica holds a lease of its own, `<name>.replica.<token>`, so that all know how many there are: each takes its
fair share of the pieces (rounded up), and gives back what is above it when another one comes.
"""

import asyncio
import logging
import os
import platform
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from trunkline_bus import kv
from trunkline_bus.connection import Bus
from trunkline_bus.lease import Lease, LeaseInfo, lease_of
from trunkline_bus.shifts import TTL_S, is_gone, take_lease, until_lost
from trunkline_bus.tasks import end
from trunkline_wire import subjects
from trunkline_wire.ids import uuid7_hex

log = logging.getLogger(__name__)

LOOK_S: Final = 1.0
"""Seconds between two looks at what is free. A piece whose holder died is taken up within TTL_S and a look."""

_LATE_S: Final = 1.0
"""Seconds that the server's word of a lease's end may take."""


class Sharing:
    """Runs `work(piece)` for each of `pieces` whose lease `<name>.<piece>` this replica holds. `changed` is called when it
    takes a piece up and when it gives one back. What `work` raises ends `run`. `holder` says who it is, by default this
    process.
    """

    def __init__(
        self,
        bus: Bus,
        name: str,
        pieces: Sequence[str],
        work: Callable[[str], Awaitable[None]],
        changed: Callable[[], None] = lambda: None,
        holder: dict[str, Any] | None = None,
    ) -> None:
        self._bus = bus
        self._name = name
        self._pieces = tuple(pieces)
        self._work = work
        self._changed = changed
        self._holder = holder or {"node": platform.node(), "pid": os.getpid()}
        self._token = uuid7_hex()
        self._held: dict[str, asyncio.Task[None]] = {}
        self._seen: dict[str, tuple[LeaseInfo, float]] = {}
        self._known = asyncio.Event()
        self.settled = asyncio.Event()
        """Set once it has looked for the first time, and taken what was free."""

    @property
    def held(self) -> list[str]:
        """The pieces at work here, in their order."""
        return [piece for piece in self._pieces if piece in self._held]

    async def run(self) -> None:
        """Share until cancelled; then give everything back."""
        presence = Lease(self._bus, f"{self._name}.replica.{self._token}", self._holder, TTL_S)
        watching = asyncio.create_task(self._watch(), name=f"sharing {self._name}")
        try:
            await self._known.wait()
            present = False
            while True:
                if watching.done():
                    watching.result()
                if not present or presence.lost.is_set():
                    present = await take_lease(self._bus, presence)
                await self._look()
                self.settled.set()
                await self._pause()
        finally:
            await asyncio.gather(end(watching), *(end(task) for task in self._held.values()), return_exceptions=True)
            await presence.release()

    async def _watch(self) -> None:
        async with kv.watch(self._bus, subjects.KV_LEASES, (f"{self._name}.>",)) as reader:
            restarts = 0
            async for batch in reader.batches():
                if reader.restarts != restarts:
                    restarts = reader.restarts
                    self._seen.clear()
                for stored in batch:
                    key, lease = lease_of(stored)
                    if lease is None:
                        self._seen.pop(key, None)
                    else:
                        self._seen[key] = (lease, asyncio.get_running_loop().time())
                if reader.caught_up.is_set():
                    self._known.set()

    async def _look(self) -> None:
        for piece, task in list(self._held.items()):
            if task.done():
                del self._held[piece]
                self._changed()
                task.result()
        share = -(-len(self._pieces) // self._replicas())
        for piece in self.held[share:]:
            log.info("sharing.given_back", extra={"piece": f"{self._name}.{piece}", "share": share})
            await end(self._held.pop(piece))
            self._changed()
        # Not all begin with the first: what several want at once, one of them gets.
        start = int(self._token, 16) % len(self._pieces)
        for piece in (*self._pieces[start:], *self._pieces[:start]):
            if len(self._held) < share and piece not in self._held and not self._taken(f"{self._name}.{piece}"):
                await self._try(piece)

    async def _try(self, piece: str) -> None:
        lease = Lease(self._bus, f"{self._name}.{piece}", self._holder, TTL_S)
        if await take_lease(self._bus, lease):
            log.info("sharing.taken", extra={"piece": lease.key})
            self._held[piece] = asyncio.create_task(self._hold(piece, lease), name=lease.key)
            self._changed()

    async def _hold(self, piece: str, lease: Lease) -> None:
        try:
            await until_lost(lease, lambda: self._work(piece))
        finally:
            await lease.release()

    def _replicas(self) -> int:
        mine, others = f"{self._name}.replica.{self._token}", f"{self._name}.replica."
        return 1 + sum(key.startswith(others) and key != mine and self._taken(key) for key in self._seen)

    def _taken(self, key: str) -> bool:
        """Whether somebody who lives holds it, by what the server has told."""
        if key not in self._seen:
            return False
        lease, since = self._seen[key]
        late = asyncio.get_running_loop().time() - since > lease.ttl_s + _LATE_S
        return not late and not is_gone(lease.holder)

    async def _pause(self) -> None:
        """Until the next look, or until a piece has ended."""
        tasks = list(self._held.values())
        if tasks:
            await asyncio.wait(tasks, timeout=LOOK_S, return_when=asyncio.FIRST_COMPLETED)
        else:
            await asyncio.sleep(LOOK_S)

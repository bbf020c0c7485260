"""Three workers that want one session, in interleavings drawn from a seed: one request at a time passes, and which is by chance."""

import asyncio
import random
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from typing import Any, Final

import pytest
from tests.chaos.fence.ground import AGENT, Ground, claim, created, faults, note, texts

from trunkline_bus import leader
from trunkline_bus.client import Received
from trunkline_bus.connection import Bus, BusSettings
from trunkline_bus.mux import NoAnswer
from trunkline_bus.writer import SessionWriter
from trunkline_wire import TrunklineError
from trunkline_wire.ids import new_session_id
from trunkline_wire.session import SessionClaimed

pytestmark = pytest.mark.chaos

WORKERS: Final = 3
CLAIMS: Final = 2
NOTES: Final = 3
LOST: Final = 0.15
"""How likely a request's answer, or the request itself, is lost."""


class Gate:
    """Holds every request of the workers back; one passes at a time, once all of them wait or are done."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._waiting: list[asyncio.Future[None]] = []
        self._busy = 0
        self._still = asyncio.Event()

    async def run(self, work: list[Coroutine[Any, Any, None]]) -> None:
        """Lets `work` go on until all of it is done. One request at a time is outstanding in each."""
        self._busy = len(work)
        async with asyncio.TaskGroup() as group:
            for one in work:
                group.create_task(one).add_done_callback(lambda _: self._stops())
            while True:
                await self._still.wait()
                if not self._waiting:
                    return
                self._still.clear()
                self._busy = 1
                self._waiting.pop(self._chance.randrange(len(self._waiting))).set_result(None)

    def guard(self, bus: Bus) -> None:
        """From now on the requests of `bus` wait here, and some are lost or never answered."""
        real = bus.mux.ask

        async def passed(*args: Any, **options: Any) -> Received:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            self._stops()
            await turn
            fate = self._chance.random()
            if fate < LOST / 2:
                raise NoAnswer
            answer = await real(*args, **options)
            if fate < LOST:
                raise NoAnswer
            return answer

        def ask(*args: Any, **options: Any) -> asyncio.Future[Received]:
            return asyncio.ensure_future(passed(*args, **options))

        bus.mux.ask = ask  # type: ignore[method-assign]  # the seam of this test

    def _stops(self) -> None:
        self._busy -= 1
        if not self._busy:
            self._still.set()


class Worker:
    """Claims and writes until it is fenced; what it was told is in `acked` (event ids) and `claims` (epochs)."""

    def __init__(self, name: str, bus: Bus, session: str) -> None:
        self.name, self.bus, self.session = name, bus, session
        self.acked: list[str] = []
        self.claims: list[int] = []
        self.codes: list[str] = []

    async def work(self) -> None:
        for _ in range(CLAIMS):
            try:
                writer = await claim(self.bus, self.session)
            except TrunklineError as error:
                self.codes.append(error.code)
                continue
            self.claims.append(writer.epoch)
            try:
                for number in range(NOTES):
                    event = writer.append(note(f"{self.name}{number}"))
                    await writer.flush()
                    self.acked.append(event.id)
            except TrunklineError as error:
                self.codes.append(error.code)
            await writer.close(within=0)


async def contest(ground: Ground, buses: list[Bus], seed: int) -> list[str]:
    """What went wrong in the interleaving of this seed."""
    session = new_session_id()
    async with await SessionWriter.create(
        ground.bus, created(), session=session, worker="first", agent=AGENT
    ) as writer:
        await writer.flush()
    gate = Gate(random.Random(seed))
    workers = [Worker(name, bus, session) for name, bus in zip("abc", buses, strict=True)]
    real = [bus.mux.ask for bus in buses]
    for bus in buses:
        gate.guard(bus)
    try:
        await gate.run([worker.work() for worker in workers])
    finally:
        for bus, ask in zip(buses, real, strict=True):
            bus.mux.ask = ask  # type: ignore[method-assign]
    stored = await ground.stored(session)
    found = faults(stored)
    epochs = [one.event().epoch for one in stored if one.type == SessionClaimed.TYPE]
    if epochs != list(range(2, len(epochs) + 2)):
        found.append(f"the claims have the epochs {epochs}")
    known = [epoch for worker in workers for epoch in worker.claims]
    if len(known) != len(set(known)) or not set(known) <= set(epochs):
        found.append(f"the workers own {known}, the log has {epochs}")
    for worker in workers:
        if [one.id for one in stored if one.id in worker.acked] != worker.acked:
            found.append(f"{worker.name}: not all that was acknowledged is stored, in order")
        if strange := [code for code in worker.codes if code != "fenced"]:
            found.append(f"{worker.name} was told {strange}")
    owners: dict[int | None, set[str]] = {}
    for epoch, text in texts(stored):
        owners.setdefault(epoch, set()).add(text[0])
    found += [f"{names} wrote in epoch {epoch}" for epoch, names in owners.items() if len(names) > 1]
    return [f"seed {seed}: {fault}" for fault in found]


async def contests(ground: Ground, seeds: range) -> list[str]:
    async with AsyncExitStack() as stack:
        settings = BusSettings(url=ground.nats.url, name="rival")
        buses = [await stack.enter_async_context(Bus.open(settings)) for _ in range(WORKERS)]
        return [fault for seed in seeds for fault in await contest(ground, buses, seed)]


async def test_one_owner_at_a_time(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    # What is lost here is known at once: nothing has to be waited for.
    monkeypatch.setattr(leader, "_PAUSES", (0.0,))
    found = await contests(ground, range(200 if ground.replicas == 1 else 60))
    assert not found, "\n".join(found)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(1200)
async def test_one_owner_at_a_time_in_many_interleavings(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader, "_PAUSES", (0.0,))
    found = await contests(ground, range(3000))
    assert not found, "\n".join(found)

"""The fence at every suspension point: an owner that freezes there while another claims, a server that dies there."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.integration.bus_write.sessions import claim, events, new_writer, note, unbroken

from trunkline_bus import topology
from trunkline_bus.connection import Bus, BusSettings
from trunkline_bus.mux import Mux
from trunkline_bus.writer import SessionWriter
from trunkline_testkit import eventually
from trunkline_testkit.nats import NatsServer
from trunkline_testkit.nats_cluster import NatsCluster
from trunkline_wire import TrunklineError
from trunkline_wire.session import SessionClaimed

TEXTS = ["one", "two", "three"]
POINTS = 2 * len(TEXTS)
"""Before each request of an undisturbed run, and after each answer; test_an_undisturbed_run counts them."""


class Interrupter:
    """Runs `what` at the suspension point number `at` of a connection's requests, counted from 0."""

    def __init__(self, mux: Mux, what: Callable[[], Awaitable[None]], at: int) -> None:
        self._ask, self._what, self._at = mux.ask, what, at
        self.points = 0
        mux.ask = self.ask  # type: ignore[method-assign]  # the seam of this test

    async def ask(self, *args: Any, **options: Any) -> Any:
        await self._pass()
        answer = await self._ask(*args, **options)
        await self._pass()
        return answer

    async def _pass(self) -> None:
        self.points += 1
        if self.points - 1 == self._at:
            await self._what()


async def undisturbed() -> None:
    pass


async def write(writer: SessionWriter) -> TrunklineError | None:
    try:
        for text in TEXTS:
            writer.append(note(text))
        await writer.flush()
    except TrunklineError as error:
        return error
    return None


def written(found: list[Any]) -> list[str]:
    return [event.data.text for event in found if event.type == "message.system"]


async def test_an_undisturbed_run(bus: Bus) -> None:
    writer = await new_writer(bus)
    counter = Interrupter(bus.mux, undisturbed, -1)
    assert await write(writer) is None
    assert counter.points == POINTS
    await writer.close()


@pytest.mark.parametrize("point", range(POINTS))
async def test_frozen_here_while_another_claims(bus: Bus, point: int) -> None:
    async with Bus.open(bus.settings) as other:
        old = await new_writer(bus)
        heirs: list[SessionWriter] = []

        async def take_over() -> None:
            heir = await claim(other, old.session)
            heir.append(note("heir"))
            await heir.flush()
            heirs.append(heir)

        Interrupter(bus.mux, take_over, point)
        error = await write(old)
        if error is None:  # frozen after its last answer: it learns of it with the next append
            old.append(note("zombie"))
            with pytest.raises(TrunklineError, match="fenced"):
                await old.flush()
        else:
            assert error.code == "fenced"
        found = await events(bus, old.session)
        assert unbroken(found)
        border = next(n for n, event in enumerate(found) if isinstance(event.data, SessionClaimed))
        # Before an answer it was stored, after a freeze before the request it was not.
        assert written(found[:border]) == TEXTS[: (point + 1) // 2]
        assert written(found[border:]) == ["heir"]
        await old.close()
        await heirs[0].close()


@pytest.mark.parametrize("point", range(POINTS))
async def test_a_server_that_dies_here_loses_and_doubles_nothing(bus: Bus, fresh_nats: NatsServer, point: int) -> None:
    writer = await new_writer(bus)

    async def die() -> None:
        fresh_nats.kill()
        await asyncio.to_thread(fresh_nats.restart)

    Interrupter(bus.mux, die, point)
    async with asyncio.timeout(20):
        assert await write(writer) is None
    found = await events(bus, writer.session)
    assert unbroken(found)
    assert written(found) == TEXTS
    await writer.close()


class Rivals:
    """Owners that claim one session from each other and append; `acked` is what they were told is stored."""

    def __init__(self, bus: Bus, session: str) -> None:
        self.bus, self.session = bus, session
        self.acked: list[str] = []
        self.claims = 0
        self.codes: set[str] = set()

    async def work(self, stop: asyncio.Event, name: str) -> None:
        while not stop.is_set():
            try:
                writer = await claim(self.bus, self.session, worker=name)
            except TrunklineError as error:
                self.codes.add(error.code)
                continue
            self.claims += 1
            try:
                for _ in range(20):
                    event = writer.append(note(name))
                    await writer.flush()
                    self.acked.append(event.id)
            except TrunklineError as error:
                self.codes.add(error.code)
            await writer.close()


async def more(rivals: list[Rivals]) -> None:
    """Wait until together they have appended 150 more."""
    before = sum(len(rival.acked) for rival in rivals)
    await eventually(lambda: sum(len(rival.acked) for rival in rivals) >= before + 150, 60)


@pytest.mark.chaos
@pytest.mark.slow
async def test_rivals_on_a_cluster_whose_leader_dies(cluster: NatsCluster) -> None:
    async with Bus.open(BusSettings(url=cluster.url)) as one, Bus.open(BusSettings(url=cluster.url)) as two:
        await topology.apply(one.js, replicas=3, max_bytes=100_000_000)
        sessions = [await new_writer(one) for _ in range(3)]
        for writer in sessions:
            await writer.close()
        rivals = [Rivals(bus, writer.session) for writer in sessions for bus in (one, two)]
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for number, rival in enumerate(rivals):
                group.create_task(rival.work(stop, f"w{number}"))
            for _ in range(2):
                await more(rivals)
                leader = await asyncio.to_thread(cluster.stream_leader, "EVENTS")
                leader.kill()
                await asyncio.to_thread(leader.start)
                await asyncio.to_thread(cluster.wait_ready)
            await more(rivals)
            stop.set()
        for writer in sessions:
            found = await events(one, writer.session)
            assert unbroken(found)
            ids = [event.id for event in found]
            assert len(ids) == len(set(ids))
            acked = [id for rival in rivals if rival.session == writer.session for id in rival.acked]
            assert set(acked) <= set(ids)
            claims = sum(rival.claims for rival in rivals if rival.session == writer.session)
            assert found[-1].epoch == claims + 1
        assert set[str]().union(*(rival.codes for rival in rivals)) <= {"fenced", "timeout", "log_unavailable"}

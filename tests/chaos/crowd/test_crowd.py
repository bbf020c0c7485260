"""A crowd on two gateways: clients that freeze, leave and come back by cursor while the gateways are killed in turn."""

import asyncio
import contextlib
import itertools
import os
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import psutil
import pytest
from tests.chaos.soak.line import DROPPED
from tests.chaos.soak.load import stretch

from trunkline_bus.connection import Bus
from trunkline_bus.reader import Reader
from trunkline_bus.writer import SessionWriter
from trunkline_testkit import eventually
from trunkline_testkit.chaos.stage import Part, Stage
from trunkline_testkit.nats import NatsServer
from trunkline_testkit.product import Client, Frame
from trunkline_wire import AgentRef, TrunklineError, subjects
from trunkline_wire.ids import new_session_id
from trunkline_wire.session import SessionCreated
from trunkline_wire.turn import MessageSystem

pytestmark = [pytest.mark.chaos, pytest.mark.slow]

PADDING: Final = "é😀" * 200
EVERY_S: Final = 0.02
"""Between two facts of a session."""
COME_BACK_S: Final = 0.1
"""Ten clients a second leave and come back."""
GREW: Final = 50 * 1024 * 1024
PASSING: Final = frozenset({"log_unavailable", "timeout", "unknown_session"})


class Member:
    """A client of one session. `facts` are the ids it got, over all of its visits; `freezes` stops reading now and then."""

    def __init__(self, gateways: Sequence[Part], session: str, chance: random.Random, *, freezes: bool) -> None:
        self.session = session
        self.facts: list[str] = []
        self.gaps: list[str] = []
        self.visits = 0
        self._gateways = gateways
        self._chance = chance
        self._freezes = freezes
        self._cursor: str | None = None
        self._client: Client | None = None
        self._leaving = asyncio.Event()

    async def run(self) -> None:
        """Be there until cancelled; whoever is thrown out comes back."""
        while True:
            with contextlib.suppress(*DROPPED):
                try:
                    await self._visit()
                except TrunklineError as error:
                    if error.code not in PASSING:
                        raise
            await asyncio.sleep(0.05)

    def leave(self) -> None:
        self._leaving.set()

    async def _visit(self) -> None:
        self._leaving.clear()
        socket = self._chance.choice(self._gateways).socket
        early: list[Frame] | None = []

        def take(frame: Frame) -> None:
            if early is not None:
                early.append(frame)
            else:
                self._take(frame)

        client = await Client.connect("http://localhost", socket=socket, on_frame=take)
        try:
            where: dict[str, Any] = {"from": "start"} if self._cursor is None else {"cursor": self._cursor}
            opened = await client.call("subscribe", session=self.session, deltas=False, **where)
            self.visits += 1
            self._cursor = opened["cursor"]
            frames, early = early, None
            for frame in frames:
                self._take(frame)
            ended = asyncio.create_task(client.ended())
            left = asyncio.create_task(self._leaving.wait())
            try:
                await asyncio.wait((ended, left), return_when=asyncio.FIRST_COMPLETED)
            finally:
                ended.cancel()
                left.cancel()
            if self._leaving.is_set() and self._freezes:
                # It hangs, with its connection open, while the session goes on.
                client.mute()
                await asyncio.sleep(self._chance.uniform(0.5, 3.0))
        finally:
            client.drop()
            await client.close()

    def _take(self, frame: Frame) -> None:
        if frame["type"] != "event":
            return
        if frame["event"] == "gap":
            self.gaps.append(frame["payload"]["reason"])
            return
        self.facts.append(frame["payload"]["id"])
        self._cursor = frame["cursor"]


async def facts_of(bus: Bus, session: str) -> list[str]:
    found: list[str] = []
    async with Reader(bus, subjects.EVENTS, [subjects.session_events(session)]) as reader:
        async for batch in reader.batches():
            if not batch:
                return found
            found += [stored.id or "" for stored in batch]
    return found


async def write(bus: Bus, session: str, facts: int, enough: asyncio.Event) -> None:
    """At least so many facts, and more until `enough` is set."""
    created = SessionCreated(adapter="fake", cwd="/", host="hst_x", workspace="ws_x")
    agent = AgentRef(adapter="fake", agent="fake", version="1")
    async with await SessionWriter.create(bus, created, session=session, worker="wrk_x", agent=agent) as writer:
        for number in itertools.count():
            if number >= facts and enough.is_set():
                return
            writer.append(MessageSystem(text=f"{number} {PADDING}"))
            await writer.flush()
            await asyncio.sleep(EVERY_S)


def resident(gateway: Part) -> int:
    return psutil.Process(gateway.pid).memory_info().rss


async def crowd(home: Path, *, clients: int, sessions: int, facts: int, kills: int) -> dict[str, float]:
    """What came out; raises AssertionError for a client that missed or repeated something."""
    seed = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(1_000_000))
    sys.stdout.write(f"CHAOS_SEED={seed}\n")
    chance = random.Random(seed)
    async with Stage(NatsServer(sync_interval="always"), home) as stage, stage.bus() as bus:
        gateways = [await stage.start("gateway", name=f"gateway{n}") for n in (1, 2)]
        names = [new_session_id() for _ in range(sessions)]
        members = [
            Member(gateways, names[n % sessions], random.Random(chance.random()), freezes=n % 3 == 0)
            for n in range(clients)
        ]
        killed = asyncio.Event()
        writing = [asyncio.create_task(write(bus, name, facts, killed)) for name in names]
        running = [asyncio.create_task(member.run()) for member in members]
        before = [resident(gateway) for gateway in gateways]
        grew = 0
        try:
            while not all(task.done() for task in writing):
                for _ in range(int(1 / COME_BACK_S)):
                    chance.choice(members).leave()
                    await asyncio.sleep(COME_BACK_S)
                grew = max(grew, *(resident(gateway) - was for gateway, was in zip(gateways, before, strict=True)))
                if kills:
                    kills -= 1
                    await gateways[kills % 2].restart()
                else:
                    killed.set()
            await asyncio.gather(*writing)
            logged = {name: await facts_of(bus, name) for name in names}
            await eventually(
                lambda: all(len(member.facts) >= len(logged[member.session]) for member in members),
                30 * stretch(),
            )
        finally:
            for task in (*writing, *running):
                task.cancel()
            await asyncio.gather(*writing, *running, return_exceptions=True)
        for member in members:
            assert member.gaps == []
            assert member.facts == logged[member.session]
        assert grew < GREW
    return {"visits": sum(member.visits for member in members), "grew": grew}


@pytest.mark.timeout(300)
async def test_a_crowd_misses_nothing_and_gets_nothing_twice(chaos_home: Path) -> None:
    told = await crowd(chaos_home, clients=40, sessions=8, facts=120, kills=2)
    assert told["visits"] > 40


@pytest.mark.long
@pytest.mark.timeout(900)
async def test_two_hundred_clients_on_twenty_sessions(chaos_home: Path) -> None:
    told = await crowd(chaos_home, clients=200, sessions=20, facts=1_500, kills=10)
    sys.stdout.write(f"{told}\n")
    assert told["visits"] > 400

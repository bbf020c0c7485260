"""A client that comes back two hundred times ends with what one that never left has: the log is what that one has."""

import asyncio
import contextlib
import json
import os
import random
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import pytest
from tests.chaos.cursor.line import Line
from tests.chaos.cursor.resumer import Resumer
from tests.chaos.soak.conversation import Conversation
from tests.chaos.soak.ground import PYTHONPATH
from tests.chaos.soak.load import stretch

from trunkline_bus.connection import Bus
from trunkline_bus.reader import Reader
from trunkline_bus.writer import SessionWriter
from trunkline_testkit.chaos.stage import Part, Stage
from trunkline_testkit.model_client import Frame, ModelClient
from trunkline_testkit.nats import NatsServer
from trunkline_testkit.nats_cluster import NatsCluster
from trunkline_wire import AgentRef, subjects
from trunkline_wire.ids import new_session_id
from trunkline_wire.session import SessionCreated
from trunkline_wire.turn import MessageSystem

pytestmark = [pytest.mark.chaos, pytest.mark.slow]

SOME: Final = ("turn.*", "ask.*", "permission.*", "message.assistant")
FLOOD: Final = 1_000
"""Facts, more than any queue of the gateway holds."""
PADDING: Final = "é😀" * 1_000


def seed() -> int:
    chosen = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(1_000_000))
    sys.stdout.write(f"CHAOS_SEED={chosen}\n")
    return chosen


async def events_of(bus: Bus, session: str | None, patterns: Sequence[str] = ("*",)) -> list[Frame]:
    """What the log holds for a subscription."""
    found: list[Frame] = []
    filters = [subjects.ALL_EVENTS if session is None else subjects.session_events(session)]
    async with Reader(bus, subjects.EVENTS, filters) as reader:
        async for batch in reader.batches():
            if not batch:
                break
            found += [json.loads(stored.raw) for stored in batch]
    return [event for event in found if any(_wanted(event["type"], pattern) for pattern in patterns)]


def _wanted(type_: str, pattern: str) -> bool:
    return pattern in {"*", type_} or (pattern.endswith(".*") and type_.startswith(pattern[:-1]))


def never_left(events: Sequence[Frame], *, gapless: bool) -> ModelClient:
    """The model with all of that in order and no connection ever lost."""
    model = ModelClient(gapless=gapless)
    for event in events:
        model.feed({"type": "event", "event": event["type"], "payload": event})
    return model


class Ground:
    """Gateways, a worker and a permission service, sessions under way, and clients that come and go."""

    def __init__(self, stage: Stage, chance: random.Random) -> None:
        self.stage = stage
        self.chance = chance
        self.gateways: list[Part] = []
        self.worker: Part
        self.bus: Bus
        self.talks: list[Conversation] = []
        self.resumers: list[tuple[Resumer, dict[str, Any]]] = []
        self._stack = AsyncExitStack()

    @contextlib.asynccontextmanager
    async def open(self, sessions: int) -> AsyncGenerator[None]:
        async with self._stack:
            await self._stack.enter_async_context(self.stage)
            self.bus = await self._stack.enter_async_context(self.stage.bus())
            parts = [await self.stage.start("adapters", wait=False), await self.stage.start("permissions", wait=False)]
            self.gateways = [await self.stage.start("gateway", wait=False, name=f"gateway{n}") for n in (1, 2)]
            for part in (*parts, *self.gateways):
                await part.ready()
            self.worker = parts[0]
            for _ in range(sessions):
                talk = Conversation(
                    self.gateways,
                    self.stage.home,
                    random.Random(self.chance.random()),
                    drop_every=1e6,
                    pythonpath=PYTHONPATH,
                )
                self._stack.push_async_callback(talk.leave)
                self.talks.append(talk)
                await talk.open(authors=1)
            yield

    async def resumer(self, name: str, *, pace: int = 0, **wants: Any) -> None:
        line = await self._stack.enter_async_context(Line(self.stage.home / f"{name}.line"))
        chance = random.Random(self.chance.random())
        self.resumers.append((Resumer(name, self.gateways, line, chance, pace=pace, **wants), wants))

    async def flood(self, facts: int) -> None:
        """A session of many big facts."""
        created = SessionCreated(adapter="fake", cwd="/", host="hst_x", workspace="ws_x")
        agent = AgentRef(adapter="fake", agent="fake", version="1")
        async with await SessionWriter.create(
            self.bus, created, session=new_session_id(), worker="wrk_x", agent=agent
        ) as writer:
            for number in range(facts):
                writer.append(MessageSystem(text=f"{number} {PADDING}"))
                if number % 100 == 0:
                    await writer.flush()
            await writer.flush()

    async def strike(self) -> None:
        """Kills something, and has it back."""
        what = self.chance.choice(("gateway", "gateway", "worker", "nats"))
        if what == "gateway":
            await self.chance.choice(self.gateways).restart()
        elif what == "worker":
            await self.worker.restart()
        elif isinstance(self.stage.nats, NatsCluster):
            leader = await asyncio.to_thread(self.stage.nats.stream_leader, subjects.EVENTS)
            await asyncio.to_thread(leader.kill)
            await asyncio.to_thread(leader.start)
            await asyncio.to_thread(self.stage.nats.wait_ready)
        else:
            server = self.stage.servers[0]
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)

    async def judge(self) -> None:
        """Everyone gets the rest, and is held against the log."""
        for resumer, wants in self.resumers:
            patterns = wants.get("patterns", ("*",))
            events = await events_of(self.bus, wants.get("session"), patterns)
            never = never_left(events, gapless=resumer.model.state()["missing"] == [] and "patterns" not in wants)
            last = next(reversed(never.facts))
            await resumer.stay(lambda model, last=last: last in model.facts, 30)
            assert resumer.faults == []
            assert resumer.model.gaps == []
            assert list(resumer.model.facts) == list(never.facts), resumer.name
            assert resumer.model.facts == never.facts
            assert resumer.model.texts == never.texts
            assert (resumer.model.missing, resumer.model.wrong, resumer.model.replayed) == ([], [], 0), resumer.name
            assert resumer.model.blocks == {}


async def resume(stage: Stage, resumes: int, *, strikes: int, facts: int = FLOOD) -> None:
    """Every kind of client comes back so often while things are killed so often."""
    ground = Ground(stage, random.Random(seed()))
    async with ground.open(sessions=2):
        one, two = (talk.session for talk in ground.talks)
        await ground.resumer("one", session=one)
        await ground.resumer("two", session=two, patterns=SOME)
        await ground.resumer("all")
        await ground.resumer("slow", pace=150_000)
        await ground.resumer("part", patterns=SOME)
        share = -(-resumes // len(ground.resumers))
        async with asyncio.TaskGroup() as group:
            flooding = group.create_task(ground.flood(facts))
            running = [group.create_task(resumer.run(share)) for resumer, _ in ground.resumers]
            for _ in range(strikes):
                await asyncio.sleep(ground.chance.uniform(0.3, 1.2) * stretch())
                await ground.strike()
            await asyncio.gather(flooding, *running)
        for talk in ground.talks:
            talk.failed()
            await talk.close()
        await ground.judge()
        assert all(resumer.resumes >= share for resumer, _ in ground.resumers)


@pytest.mark.timeout(240)
async def test_who_comes_back_fifty_times_has_what_one_has_who_never_left(chaos_home: Path) -> None:
    await resume(on(NatsServer(sync_interval="always"), chaos_home), 50, strikes=3)


@pytest.mark.timeout(240)
async def test_who_comes_back_over_elections_has_what_one_has_who_never_left(chaos_home: Path) -> None:
    await resume(on(NatsCluster(sync_interval="always"), chaos_home), 15, strikes=2, facts=100)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", [NatsServer, NatsCluster])
async def test_who_comes_back_two_thousand_times(kind: type[NatsServer | NatsCluster], chaos_home: Path) -> None:
    await resume(on(kind(sync_interval="always"), chaos_home), 2_000, strikes=40)


def on(nats: NatsServer | NatsCluster, home: Path) -> Stage:
    """With the agent that keeps a journal."""
    return Stage(nats, home, environment={"PYTHONPATH": PYTHONPATH})

"""Three deciders, policies, an expiry, a withdrawal, a claim, under replicas that stall and die: one end each, and all
know which.
"""

import asyncio
import contextlib
import os
import random
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeVar

import pytest
from tests.chaos.asks.judge import Verdict, judge
from tests.chaos.asks.replicas import Replica, replicas
from tests.chaos.asks.rivals import POLICY, Play
from tests.chaos.asks.session import Session

from trunkline_bus import topology
from trunkline_bus.connection import Bus, BusSettings
from trunkline_bus.reader import Reader, read_session
from trunkline_fold.asks import AsksState, fold_asks
from trunkline_gateway.methods.asks import Answered
from trunkline_gateway.methods.asks import judge as told
from trunkline_permissions.settings import PermissionsSettings
from trunkline_testkit import eventually
from trunkline_testkit.nats import NatsServer
from trunkline_testkit.nats_cluster import NatsCluster
from trunkline_wire import TrunklineError, subjects

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(600)]

S = TypeVar("S", NatsServer, NatsCluster)

BATCH: Final = 20
"""Seeds that are played at the same time, under the same faults."""

SETTLED_S: Final = 90.0


@pytest.fixture
def settings(chaos_home: Path) -> PermissionsSettings:
    made = PermissionsSettings(home=chaos_home, poll_s=1.0)
    made.policy_path.write_text(POLICY)
    return made


def _first() -> int:
    return int(os.environ.get("CHAOS_SEED", "0"))


def batches(count: int) -> Iterator[Sequence[int]]:
    """The seeds, `count` from CHAOS_SEED on, in batches."""
    for start in range(_first(), _first() + count, BATCH):
        yield range(start, min(start + BATCH, _first() + count))


class Watch:
    """Every event as the log's own Reader brings it, by session: to know when to look closely."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._seen: dict[str, list[tuple[int, bytes]]] = {}

    async def run(self) -> None:
        async with Reader(self._bus, subjects.EVENTS, [subjects.ALL_EVENTS]) as reader:
            async for stored in reader:
                if stored.session is not None:
                    self._seen.setdefault(stored.session, []).append((stored.sequence, stored.raw))

    def verdict(self, play: Play) -> Verdict:
        return judge(self._seen.get(play.session.id, []), frozenset(play.bad))


def settled(verdict: Verdict, play: Play) -> bool:
    """Every ask has an end, every answer its outcome, and the agent in office knows what it has to know."""
    agent = play.session.owner.agent
    mine = {ask for ask, incarnation in verdict.incarnations.items() if incarnation == agent.incarnation}
    due = {ask for ask in mine & verdict.ends.keys() if verdict.ends[ask].behaviour is not None} - verdict.withdrawals
    return (
        verdict.incarnations.keys() == verdict.ends.keys()
        and play.answers <= verdict.outcomes.keys()
        and due <= verdict.delivered.keys()
    )


async def check(bus: Bus, play: Play) -> None:
    """Everything that has to hold once a seed is over, from the log itself."""
    messages = await read_session(bus, play.session.id)
    verdict = judge([(one.sequence, one.raw) for one in messages], frozenset(play.bad))
    assert verdict.faults == []
    assert set(play.asks) <= verdict.ends.keys() == verdict.incarnations.keys()
    # The agents' own records against the log.
    heard: set[str] = set()
    for incarnation, ask, decision in play.session.told:
        end = verdict.ends[ask]
        assert ask not in heard, f"{ask} was decided twice for its agent"
        heard.add(ask)
        assert incarnation == verdict.incarnations[ask]
        assert end.behaviour is not None, f"{ask} is {end.how}, and its agent was told {decision.behaviour}"
        assert (decision.behaviour, decision.updated_input, decision.answer) == (
            end.behaviour,
            end.updated_input,
            end.answer,
        )
    assert verdict.delivered.keys() <= heard
    # One outcome an answer, and who asks again is told by the fold what the judge says.
    assert {answer: len(outcome) for answer, outcome in verdict.outcomes.items()} == dict.fromkeys(play.answers, 1)
    state = AsksState()
    for stored in messages:
        state = fold_asks(state, stored.event(), stored.sequence)
    for ask, end in verdict.ends.items():
        record = state.asks[ask]
        assert (record.status, record.ended_sequence) == (end.how, end.sequence)
        for answer in play.answers:
            expected = {"decided": "already_decided", "expired": "expired"}.get(end.how, "withdrawn")
            if end.how == "decided" and answer == end.answer:
                expected = "decided"
            assert _told(lambda record=record, answer=answer: told(record, answer)) == expected


def _told(ask: Callable[[], Answered | None]) -> str | None:
    try:
        outcome = ask()
    except TrunklineError as error:
        return error.code
    return None if outcome is None else str(outcome["outcome"])


async def batch(
    url: str,
    targets: list[str],
    settings: PermissionsSettings,
    seeds: Sequence[int],
    upset: Callable[[random.Random], Coroutine[None, None, None]],
) -> int:
    """Play the seeds side by side, with one replica a target harmed all the time, and the server by `upset` once.
    Returns how many faults there were.
    """
    chance = random.Random(seeds[0])
    async with Bus.open(BusSettings(url=url)) as bus, replicas(targets, settings, chance) as services:
        plays = [Play(bus, await Session.open(bus), random.Random(seed)) for seed in seeds]
        watch = Watch(bus)
        watching = asyncio.create_task(watch.run())
        harming = asyncio.create_task(_harm(services, chance))
        try:
            async with asyncio.TaskGroup() as group:
                for play in plays:
                    group.create_task(play.run())
                group.create_task(upset(chance))
            harming.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await harming
            for seed, play in zip(seeds, plays, strict=True):
                try:
                    await eventually(lambda play=play: settled(watch.verdict(play), play), SETTLED_S)
                    await check(bus, play)
                except AssertionError as error:
                    raise AssertionError(f"CHAOS_SEED={seed} ({play.session.id}): {error}") from error
                assert all(owner.fault is None for owner in play.session.owners)
        finally:
            harming.cancel()
            watching.cancel()
            await asyncio.gather(harming, watching, return_exceptions=True)
            for play in plays:
                await play.session.close()
        return sum(service.faults for service in services)


async def _harm(services: list[Replica], chance: random.Random) -> None:
    while True:
        for service in services:
            service.proxy.heal()
        await asyncio.sleep(chance.random() * 0.1)
        await chance.choice(services).harm()


@contextlib.asynccontextmanager
async def started(server: S) -> AsyncGenerator[S]:
    try:
        await asyncio.to_thread(server.start)
        yield server
    finally:
        await asyncio.to_thread(server.stop)


async def one_server(settings: PermissionsSettings, count: int) -> None:
    async with started(NatsServer(sync_interval="always")) as server:
        async with Bus.open(BusSettings(url=server.url)) as bus:
            await topology.apply(bus.js)

        async def kill(chance: random.Random) -> None:
            await asyncio.sleep(chance.random() * 0.6)
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)

        async def spare(_: random.Random) -> None:
            pass

        faults = 0
        for number, seeds in enumerate(batches(count)):
            upset = kill if number % 2 else spare
            faults += await batch(server.url, [server.url] * 3, settings, seeds, upset)
        assert faults > count // BATCH


async def three_servers(settings: PermissionsSettings, count: int) -> None:
    async with started(NatsCluster(sync_interval="always")) as cluster:
        async with Bus.open(BusSettings(url=cluster.url)) as bus:
            await topology.apply(bus.js, replicas=3)

        async def depose(chance: random.Random) -> None:
            await asyncio.sleep(chance.random() * 0.5)
            leader = await asyncio.to_thread(cluster.stream_leader, subjects.EVENTS)
            await asyncio.to_thread(leader.kill)
            await asyncio.sleep(1.0)  # how long the node is away
            await asyncio.to_thread(leader.start)
            await asyncio.to_thread(cluster.wait_ready, 60.0)

        faults = 0
        for seeds in batches(count):
            faults += await batch(cluster.url, cluster.urls, settings, seeds, depose)
        assert faults > 0


async def test_every_ask_ends_once_and_all_know_how(settings: PermissionsSettings) -> None:
    await one_server(settings, 40)


async def test_every_ask_ends_once_while_leaders_die(settings: PermissionsSettings) -> None:
    await three_servers(settings, 10)


@pytest.mark.long
@pytest.mark.timeout(3600)
async def test_four_hundred_seeds_on_one_server(settings: PermissionsSettings) -> None:
    await one_server(settings, 400)


@pytest.mark.long
@pytest.mark.timeout(3600)
async def test_a_hundred_seeds_on_three_servers(settings: PermissionsSettings) -> None:
    await three_servers(settings, 100)

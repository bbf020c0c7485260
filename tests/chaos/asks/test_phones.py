"""Two phones, two gateways, two permission services of which one is killed: one decision, one delivery, and the loser is told."""

import asyncio
import contextlib
import os
import random
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final

import pytest
from tests.chaos.asks.judge import judge
from tests.chaos.asks.session import Session

from trunkline_bus import topology
from trunkline_bus.connection import Bus, BusSettings
from trunkline_bus.reader import read_session
from trunkline_gateway.app import Running, serving
from trunkline_gateway.settings import GatewaySettings
from trunkline_testkit import eventually
from trunkline_testkit.nats import NatsServer
from trunkline_testkit.product import Client
from trunkline_wire import TrunklineError

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(300)]

RUNS: Final = 30
LONG_RUNS: Final = 500
PER_SESSION: Final = 50
LATEST_S: Final = 0.03
"""The answers and the kill come within this time of the ask, in any order."""


class Replicas:
    """Two permission services as processes. `ready` are those that decide."""

    def __init__(self, zygote: Process) -> None:
        self._zygote = zygote
        self.ready: set[int] = set()
        self._started: set[int] = set()
        self._reading = asyncio.create_task(self._read())

    async def start(self) -> None:
        assert self._zygote.stdin is not None
        self._zygote.stdin.write(b"\n")
        await self._zygote.stdin.drain()

    async def both(self) -> None:
        await eventually(lambda: len(self.ready) == 2, 30.0)

    async def kill_one(self, chance: random.Random) -> None:
        """Kill either, and start another in its place."""
        pid = chance.choice(sorted(self.ready))
        self.ready.discard(pid)
        self._started.discard(pid)
        os.kill(pid, signal.SIGKILL)
        await self.start()

    async def stop(self) -> None:
        assert self._zygote.stdin is not None
        self._zygote.stdin.close()
        for pid in self._started:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await self._zygote.wait()
        await self._reading  # the pipe ends with the last of them

    async def _read(self) -> None:
        assert self._zygote.stdout is not None
        async for line in self._zygote.stdout:
            word, pid = line.split()
            (self.ready if word == b"ready" else self._started).add(int(pid))


@contextlib.asynccontextmanager
async def two_replicas(url: str, home: Path) -> AsyncGenerator[Replicas]:
    script = str(Path(__file__).parent / "zygote.py")
    zygote = await asyncio.create_subprocess_exec(sys.executable, script, url, str(home), stdin=PIPE, stdout=PIPE)
    replicas = Replicas(zygote)
    try:
        for _ in range(2):
            await replicas.start()
        yield replicas
    finally:
        await replicas.stop()


@contextlib.asynccontextmanager
async def gateway(url: str, home: Path) -> AsyncGenerator[Running]:
    await asyncio.to_thread(home.mkdir)
    async with (
        Bus.open(BusSettings(url=url, name="gateway")) as bus,
        serving(bus, GatewaySettings(home=home, port=0)) as one,
    ):
        yield one


async def answer(phone: Client, ask: str, behaviour: str, after: float) -> tuple[str, str]:
    """What the phone is told: (`decided` or the error's code, the behaviour that counts)."""
    await asyncio.sleep(after)
    try:
        told = await phone.call("ask.answer", ask=ask, behaviour=behaviour)
    except TrunklineError as error:
        return error.code, str(error.details.get("behaviour"))
    return told["outcome"], told["decision"]["behaviour"]


async def play(runs: int, first_seed: int, server: NatsServer, home: Path) -> None:
    async with contextlib.AsyncExitStack() as stack:
        bus = await stack.enter_async_context(Bus.open(BusSettings(url=server.url)))
        await topology.apply(bus.js)
        replicas = await stack.enter_async_context(two_replicas(server.url, home))
        gateways = [await stack.enter_async_context(gateway(server.url, home / name)) for name in ("g1", "g2")]
        phones: list[Client] = []
        owner = await Client.connect("http://localhost", socket=str(gateways[0].socket))
        stack.push_async_callback(owner.close)
        for person, at in zip(("ann", "bob"), gateways, strict=True):
            token = (await owner.call("token.create", actor=person, role="approver"))["token"]

            async def sign_in(at: Running = at, token: str = token) -> Client:
                return await Client.connect(at.url, headers={"Authorization": f"Bearer {token}"})

            phones.append(await eventually(sign_in, ignore=(Exception,)))
            stack.push_async_callback(phones[-1].close)
        for begin in range(0, runs, PER_SESSION):
            session = await Session.open(bus)
            stack.push_async_callback(session.close)
            seeds = range(first_seed + begin, first_seed + min(begin + PER_SESSION, runs))
            for seed in seeds:
                await replicas.both()
                try:
                    await one_run(random.Random(seed), seed, session, replicas, gateways, phones)
                except AssertionError as error:
                    raise AssertionError(f"CHAOS_SEED={seed} ({session.id}): {error}") from error
            await check(bus, session, len(seeds))


async def one_run(
    chance: random.Random,
    number: int,
    session: Session,
    replicas: Replicas,
    gateways: list[Running],
    phones: list[Client],
) -> None:
    ask = await session.ask(number, "ls")
    assert ask is not None
    for one in gateways:
        await eventually(lambda one=one, ask=ask: one.gateway.directory.ask(ask))

    async def kill() -> None:
        await asyncio.sleep(chance.random() * LATEST_S)
        await replicas.kill_one(chance)

    behaviours = chance.sample(["allow", "deny"], 2)
    delays = [chance.random() * LATEST_S for _ in phones]
    killing = asyncio.create_task(kill())
    told = await asyncio.gather(
        *(answer(phone, ask, said, after) for phone, said, after in zip(phones, behaviours, delays, strict=True))
    )
    await killing
    assert sorted(code for code, _ in told) == ["already_decided", "decided"]
    # both know the same, and the agent was told that
    (behaviour,) = {known for _, known in told}
    assert told[behaviours.index(behaviour)][0] == "decided"
    await eventually(lambda: ask not in session.owner.agent.waiting)
    heard = [decision.behaviour for heard, decision in session.owner.agent.record if heard == ask]
    assert heard == [behaviour]


async def check(bus: Bus, session: Session, asks: int) -> None:
    """The log, by a judge that shares nothing with the product."""

    async def delivered() -> bool:
        messages = await read_session(bus, session.id)
        return len(judge([(one.sequence, one.raw) for one in messages]).delivered) == asks

    await eventually(delivered, 20.0)
    verdict = judge([(one.sequence, one.raw) for one in await read_session(bus, session.id)])
    assert verdict.faults == []
    assert len(verdict.ends) == asks
    assert {end.how for end in verdict.ends.values()} == {"decided"}
    assert set(verdict.delivered.values()) == {1}
    outcomes = Counter(outcome for (outcome,) in verdict.outcomes.values())
    assert outcomes["decided"] == asks
    # Of the losers some were told by their gateway, which knew already; the others' answers raced to the log.
    assert outcomes.keys() == {"decided", "already_decided"}


def _first() -> int:
    return int(os.environ.get("CHAOS_SEED", "0"))


async def test_one_of_two_phones_decides_while_a_service_dies(fresh_nats: NatsServer, chaos_home: Path) -> None:
    await play(RUNS, _first(), fresh_nats, chaos_home)


@pytest.mark.long
@pytest.mark.timeout(3600)
async def test_one_of_two_phones_decides_five_hundred_times(fresh_nats: NatsServer, chaos_home: Path) -> None:
    await play(LONG_RUNS, _first(), fresh_nats, chaos_home)

"""The worker killed at every step on the way to a running agent: nothing is left, and the session goes on."""

import asyncio
import random
import sys
from pathlib import Path

import pytest
from tests.chaos.orphans.conftest import Zoo, belonging
from tests.chaos.orphans.test_take_over import watched
from tests.integration.agentkit.hand import those

from trunkline_testkit.chaos.points import at, points, watch
from trunkline_testkit.chaos.stage import Part, Stage
from trunkline_testkit.proxy import NatsProxy
from trunkline_wire import Event
from trunkline_wire.ids import new_session_id
from trunkline_wire.session import SessionOptions

pytestmark = [pytest.mark.chaos, pytest.mark.slow]

WORKER = str(Path(__file__).with_name("dying_worker.py"))
WITHIN = 20.0
"""Seconds from the moment when a worker runs again until it has answered a prompt, on a machine with much else to do."""


async def spawn(zoo: Zoo) -> str:
    session = new_session_id()
    zoo.sessions.append(session)
    creatures = zoo.home / f"zoo-{session}"
    creatures.mkdir()
    options = SessionOptions(prompt="zoo child daemon bare; slow 10", environment={"UNRULY_DIR": str(creatures)})
    return await zoo.hand.spawn("unruly", session=session, cwd=str(zoo.home), options=options)


async def recovers(zoo: Zoo, session: str, worker: Part) -> None:
    """A worker runs again: at once the session answers, and of its former agents nothing is left."""
    assert not worker.running
    environment(worker).pop("DIE_AT", None)
    await worker.launch()
    await worker.ready()
    begin = asyncio.get_running_loop().time()
    await zoo.hand.has(session, "session.created", within=20)
    prompt = await zoo.hand.prompt(session, "history")

    def done(events: list[Event]) -> bool:
        turns = [event.turn for event in those(events, "turn.started") if event.cause == prompt]
        return any(event.turn in turns for event in those(events, "turn.completed"))

    events = await zoo.hand.until(session, done, within=40)
    took = asyncio.get_running_loop().time() - begin
    assert len(those(events, "turn.started")) == len(those(events, "turn.completed"))
    assert took < WITHIN, f"{took:.1f} s"
    await zoo.hand.verify(session)


def environment(worker: Part) -> dict[str, str]:
    """Of its next life."""
    return worker._environment  # pyright: ignore[reportPrivateUsage]


async def dying(stage: Stage, zoo: Zoo) -> Part:
    """A worker whose process can be told where to die."""
    worker = await stage.start("adapters", only="unruly", wait=False)
    await worker.end()
    worker._argv[:] = [sys.executable, WORKER]  # pyright: ignore[reportPrivateUsage]
    environment(worker)["POINTS"] = str(zoo.home / "points")
    return worker


async def steps_of_one_run(zoo: Zoo, worker: Part) -> list[str]:
    await worker.launch()
    await worker.ready()
    await zoo.hand.has(await spawn(zoo), "turn.completed", within=40)
    await worker.end()
    return (zoo.home / "points").read_text().splitlines()


async def die_at_steps(stage: Stage, zoo: Zoo, sample: int | None) -> None:
    worker = await dying(stage, zoo)
    steps = await steps_of_one_run(zoo, worker)
    assert {step.rpartition(" ")[0] for step in steps} >= {"after lock", "after write", "after give", "after open_gate"}
    for step in steps if sample is None else random.Random(4).sample(steps, sample):
        async with watched() as found:
            environment(worker)["DIE_AT"] = step
            await worker.launch()
            session = await spawn(zoo)
            async with asyncio.timeout(30):
                assert await worker.gone() == -9, step
            await zoo.empty(session)
            await recovers(zoo, session, worker)
        assert found == [], step
        await worker.end()
        await zoo.empty(session)


async def die_at_events(stage: Stage, zoo: Zoo, sample: int | None) -> None:
    async with NatsProxy(stage.nats.url) as proxy:
        worker = await stage.start("adapters", only="unruly", via=proxy)
        marks = watch(proxy)
        await zoo.hand.has(await spawn(zoo), "turn.completed", within=40)
        moments = points(marks, ["fact"])
        assert moments
        for moment in moments if sample is None else random.Random(4).sample(moments, sample):
            async with watched() as found:
                reached = at(proxy, moment, worker.kill)
                session = await spawn(zoo)
                async with asyncio.timeout(30):
                    await reached.wait()
                    await worker.gone()
                await zoo.empty(session)
                await recovers(zoo, session, worker)
            assert found == [], str(moment)
            await worker.restart()
            await zoo.empty(session)
            assert belonging(session) == []


async def test_killed_at_some_steps(host_stage: Stage, zoo: Zoo) -> None:
    await die_at_steps(host_stage, zoo, 1)


async def test_killed_at_some_events(host_stage: Stage, zoo: Zoo) -> None:
    await die_at_events(host_stage, zoo, 1)


@pytest.mark.long
@pytest.mark.timeout(1800)
async def test_killed_at_every_step(host_stage: Stage, zoo: Zoo) -> None:
    await die_at_steps(host_stage, zoo, None)


@pytest.mark.long
@pytest.mark.timeout(1800)
async def test_killed_at_every_event(host_stage: Stage, zoo: Zoo) -> None:
    await die_at_events(host_stage, zoo, None)

"""Locks and take-over: several workers on one host, workers that hang, workers that lost their session."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from tests.chaos.orphans.conftest import Zoo, belonging
from tests.integration.agentkit.hand import those

from trunkline_agentkit.hung import HungWorkers
from trunkline_bus import kv
from trunkline_bus.lease import Lease
from trunkline_bus.writer import SessionWriter
from trunkline_testkit import eventually
from trunkline_testkit.chaos.census import Being, census, rivals
from trunkline_testkit.chaos.stage import Part, Stage
from trunkline_testkit.proxy import NatsProxy
from trunkline_wire import AgentRef, subjects

pytestmark = [pytest.mark.chaos]


@asynccontextmanager
async def watched() -> AsyncGenerator[list[tuple[Being, Being]]]:
    """Samples the process table all the time: what is yielded must stay empty."""
    found: list[tuple[Being, Being]] = []

    async def sample() -> None:
        while True:
            found.extend(rivals(await asyncio.to_thread(census)))
            await asyncio.sleep(0.02)

    task = asyncio.create_task(sample())
    try:
        yield found
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def owner_of(zoo: Zoo, session: str, workers: list[Part]) -> Part | None:
    mark = zoo.record(session).worker
    return next((worker for worker in workers if mark is not None and worker.pid == mark.pid), None)


async def owned(zoo: Zoo, session: str, workers: list[Part]) -> Part:
    return await eventually(lambda: owner_of(zoo, session, workers))


async def test_of_three_workers_the_others_take_over_what_a_killed_one_had(host_stage: Stage, zoo: Zoo) -> None:
    workers = [await host_stage.start("adapters", only="unruly", wait=False) for _ in range(3)]
    for worker in workers:
        await worker.ready()
    async with watched() as found:
        sessions = [await zoo.begin(["child", "daemon"]) for _ in range(4)]
        killed = await owned(zoo, sessions[0], workers)
        orphaned = [session for session in sessions if await owned(zoo, session, workers) is killed]
        begin = asyncio.get_running_loop().time()
        killed.kill()
        await killed.gone()
        others = [worker for worker in workers if worker is not killed]
        for session in orphaned:
            events = await zoo.hand.has(session, "turn.completed")
            assert len(those(events, "session.claimed")) == 1
        assert asyncio.get_running_loop().time() - begin < 10, "recovery takes less than ten seconds"
        for session in orphaned:
            await owned(zoo, session, others)
            await zoo.hand.prompt(session, "history")
            await zoo.hand.has(session, "turn.completed", 2)
            await zoo.hand.verify(session)
        for session in set(sessions) - set(orphaned):
            assert not those(await zoo.hand.events(session), "turn.completed"), "the others' turns go on"
    assert all(worker.running for worker in others)
    assert found == []


async def test_a_worker_that_hangs_is_ended_by_its_peers_and_its_sessions_go_on(host_stage: Stage, zoo: Zoo) -> None:
    hanging = await host_stage.start("adapters", only="unruly")
    session = await zoo.begin(["child", "daemon", "bare"])
    peer = await host_stage.start("adapters", only="unruly")
    mark = zoo.record(session).worker
    assert mark is not None
    async with watched() as found:
        hanging.stop()
        # As the bucket does half a minute after the last sign of life.
        await kv.delete(zoo.hand.bus, subjects.KV_WORKERS, mark.worker)
        peers = HungWorkers(zoo.hand.bus, zoo.home, absent_for=1.0)
        task = asyncio.create_task(peers.run())
        try:
            assert await hanging.gone() == -9
        finally:
            task.cancel()
            await asyncio.wait({task})
        await zoo.hand.has(session, "turn.completed", outcome="aborted")
        assert await owned(zoo, session, [peer]) is peer
        await zoo.empty(session, of="zoo.py")
        await zoo.hand.verify(session)
    assert found == []


async def test_a_worker_that_waits_for_a_peer_neither_takes_its_session_nor_harms_it(
    host_stage: Stage, zoo: Zoo
) -> None:
    stopped = await host_stage.start("adapters", only="unruly")
    session = await zoo.begin(["child"], then="say two")
    await zoo.hand.has(session, "turn.completed")
    peer = await host_stage.start("adapters", only="unruly")
    stopped.stop()
    await zoo.hand.prompt(session, "history")
    # The peer has seen the command when it does what came after it.
    other = await zoo.begin([], then="say other")
    await zoo.hand.has(other, "turn.completed")
    assert not those(await zoo.hand.events(session), "session.claimed")
    stopped.cont()
    events = await zoo.hand.has(session, "turn.completed", 2)
    assert not those(events, "session.claimed")
    assert stopped.running
    assert peer.running


async def test_a_worker_that_was_fenced_while_it_hung_stops_its_agent_and_never_claims_back(
    host_stage: Stage, zoo: Zoo
) -> None:
    worker = await host_stage.start("adapters", only="unruly")
    session = await zoo.begin(["child", "daemon", "bare"])
    worker.stop()
    bus = zoo.hand.bus
    rival = await SessionWriter.claim(
        bus, session, worker="wrk_" + "1" * 32, host="hst_" + "1" * 32, agent=AgentRef(adapter="unruly")
    )
    holder = {"worker": rival.session, "host": "hst_" + "1" * 32}
    lease = Lease(bus, session, holder, 30.0)
    old = await kv.get(bus, subjects.KV_LEASES, session)
    assert old is not None
    assert await lease.take_over(old.revision)
    try:
        worker.cont()
        await zoo.empty(session)
        await zoo.hand.prompt(session, "say something")
        # The worker has seen the prompt when it does what came after it.
        other = await zoo.begin([], then="say other")
        await zoo.hand.has(other, "turn.completed")
        events = await zoo.hand.events(session)
        assert [event.epoch for event in those(events, "session.claimed")] == [2]
        assert events[-1].type == "session.claimed", "nothing of the fenced worker is stored"
        assert belonging(session) == []
        # Nor after a restart.
        await worker.restart()
        third = await zoo.begin([], then="say third")
        await zoo.hand.has(third, "turn.completed")
        assert len(those(await zoo.hand.events(session), "session.claimed")) == 1
    finally:
        await lease.release()
        await rival.close()


async def test_three_moves_between_hosts_within_five_minutes_close_the_session(host_stage: Stage, zoo: Zoo) -> None:
    worker = await host_stage.start("adapters", only="unruly", idle_after=0.1)
    session = await zoo.begin([], then="say one")
    await eventually(lambda: zoo.record(session).worker is None, 20)
    for number in (1, 2, 3):
        rival = await SessionWriter.claim(
            zoo.hand.bus,
            session,
            worker="wrk_" + f"{number}" * 32,
            host="hst_" + f"{number}" * 32,
            agent=AgentRef(adapter="unruly"),
        )
        await rival.close()
    await zoo.hand.prompt(session, "say more")
    events = await zoo.hand.has(session, "session.closed")
    assert those(events, "session.closed")[0].data.reason == "ownership_flapping"
    assert worker.running
    assert belonging(session) == []


@pytest.mark.slow
@pytest.mark.long
async def test_a_session_for_any_host_stops_its_agent_when_neither_log_nor_lease_answers(
    host_stage: Stage, zoo: Zoo
) -> None:
    async with NatsProxy(host_stage.nats.url) as proxy:
        await host_stage.start("adapters", only="unruly", via=proxy)
        session = await zoo.begin(["child", "bare"])
        begin = asyncio.get_running_loop().time()
        proxy.cut()
        await zoo.empty(session, within=30)
        # Half a lease is 15 s; the last renewal may be up to 10 s old.
        assert 4 < asyncio.get_running_loop().time() - begin < 25
        await eventually(lambda: zoo.record(session).agent is None, 20)  # it has given up telling the log
        proxy.reset()  # what it has sent meanwhile never arrives
        proxy.heal()
        events = await zoo.hand.has(session, "turn.completed", outcome="aborted", within=30)
        assert those(events, "session.claimed")
        await zoo.hand.prompt(session, "history")
        await zoo.hand.has(session, "turn.completed", 2)
        await zoo.hand.verify(session)

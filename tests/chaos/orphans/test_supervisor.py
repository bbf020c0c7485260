"""`trunkline up` killed part by part and all at once, with an agent that has started what it likes."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.chaos.orphans.conftest import ALL, ENVIRONMENT, belonging, kill_pids

from trunkline_agentkit.place import Place, Record
from trunkline_testkit import eventually
from trunkline_testkit.processes import kill_all
from trunkline_testkit.product import Client, Product, running

pytestmark = [pytest.mark.chaos, pytest.mark.slow]


class Ground:
    def __init__(self, product: Product) -> None:
        self.product = product
        self.session = ""

    async def begin(self, client: Client) -> None:
        creatures = self.product.home / "zoo"
        creatures.mkdir()
        options = {"prompt": f"zoo {' '.join(ALL)}; slow", "environment": {"UNRULY_DIR": str(creatures)}}
        created = await client.call(
            "session.create", adapter="unruly", cwd=str(self.product.home), options=options, within=60
        )
        self.session = created["session"]
        await client.subscribe(self.session, start="start")
        await client.wait("message.assistant")
        assert len(belonging(self.session)) > len(ALL)

    def pid(self, service: str) -> int:
        process = self.product.find(service)
        assert process is not None
        return process.pid

    def record(self) -> Record:
        record = Place(self.product.trunkline_home, self.session).record
        assert record is not None
        return record

    def holder(self) -> int:
        agent = self.record().agent
        assert agent is not None
        assert agent.holder is not None
        return agent.holder[0]

    async def empty(self) -> None:
        def none_left() -> bool:
            assert not (left := belonging(self.session)), left
            return True

        await eventually(none_left, 10, interval=0.1)


@pytest_asyncio.fixture
async def ground(chaos_home: Path) -> AsyncIterator[Ground]:
    environment: dict[str, Any] = {**ENVIRONMENT}
    async with running(chaos_home, environment) as product:
        ground = Ground(product)
        try:
            yield ground
        finally:
            while ground.session and (left := belonging(ground.session)):
                kill_all(left)


@pytest.mark.long
async def test_what_lost_its_holder_and_its_worker_is_ended_by_the_supervisor(ground: Ground) -> None:
    async with await ground.product.client() as client:
        await ground.begin(client)
        worker = ground.pid("adapters")
        kill_pids(ground.holder(), worker)
        await ground.product.restarted("adapters", worker)
        await client.wait("turn.completed")
        await ground.empty()
        assert [event["data"]["outcome"] for event in client.events("turn.completed")] == ["aborted"]


async def test_all_killed_at_once_leaves_nothing_and_the_session_goes_on(ground: Ground) -> None:
    product = ground.product
    async with await product.client() as client:
        await ground.begin(client)
    agent = ground.record().agent
    assert agent is not None
    assert product.process is not None
    services = [ground.pid(name) for name in ("adapters", "gateway", "projector", "permissions", "nats-server")]
    kill_pids(product.process.pid, agent.pid, *services)
    await product.process.wait()
    await ground.empty()

    await product.start()
    async with await product.client_when_up() as client:
        await client.subscribe(ground.session, start="start")
        ended = await client.wait("turn.completed")
        assert ended["data"]["outcome"] == "aborted"
        await client.call("session.prompt", session=ground.session, text="history")
        await client.wait("turn.completed", count=2)
        texts = [event["data"]["content"][0]["text"] for event in client.events("message.assistant")]
        assert texts[-1] == "prompts:2"


@pytest.mark.long
async def test_a_killed_supervisor_leaves_nothing(ground: Ground) -> None:
    async with await ground.product.client() as client:
        await ground.begin(client)
    assert ground.product.process is not None
    os.kill(ground.product.process.pid, 9)
    await ground.product.process.wait()
    await ground.empty()


async def test_a_worker_that_hangs_can_not_ignore_kill(ground: Ground) -> None:
    async with await ground.product.client() as client:
        await ground.begin(client)
        worker = ground.pid("adapters")
        os.kill(worker, 19)
        try:
            await client.call("session.command", session=ground.session, verb="kill")
            closed = await client.wait("session.closed", within=15)
            await ground.empty()
        finally:
            os.kill(worker, 18)
        assert closed["data"]["reason"] == "killed"
        # When it goes on, the worker has lost the session, and does not take it back.
        await eventually(lambda: ground.record().worker is None, 15)
        assert ground.record().closed
        assert ground.record().cmd_seq > 0
        assert belonging(ground.session) == []
        claims = client.events("session.claimed")
        assert len(claims) == 1
        await client.call("session.command", session=ground.session, verb="resume")
        await client.wait("session.resumed")
        await client.call("session.prompt", session=ground.session, text="history")
        await client.wait("turn.completed", count=2)

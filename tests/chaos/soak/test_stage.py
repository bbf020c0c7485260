"""The stage itself: real services on one server and on three, killed and back."""

import pytest

from trunkline_testkit.chaos.stage import Stage
from trunkline_testkit.nats import NatsServer
from trunkline_testkit.nats_cluster import NatsCluster

pytestmark = pytest.mark.chaos


async def converse(stage: Stage) -> None:
    whole = await stage.whole()
    second = await stage.start("gateway")
    async with await second.client() as client:
        created = await client.call(
            "session.create", adapter="demo", cwd=str(stage.home), options={"prompt": "say hello"}
        )
        await client.subscribe(created["session"], start="start")
        await client.wait("turn.completed")
        whole.worker.kill()
        await whole.worker.gone()
        await whole.worker.restart()
        await client.call("session.prompt", session=created["session"], text="say again")
        await client.wait("turn.completed", count=2)
    assert whole.worker.starts == 2
    assert await whole.projector.terminate() == 0


async def test_the_services_run_on_one_server(stage: Stage) -> None:
    await converse(stage)
    assert isinstance(stage.nats, NatsServer)


async def test_the_services_run_on_three(stage3: Stage) -> None:
    await converse(stage3)
    assert isinstance(stage3.nats, NatsCluster)
    assert stage3.replicas == 3

"""Suspension points of a real worker: counted in one run, reached in the next."""

import pytest

from trunkline_testkit.chaos.points import Mark, Point, at, points, watch
from trunkline_testkit.chaos.stage import Stage
from trunkline_testkit.product import Client
from trunkline_testkit.proxy import NatsProxy
from trunkline_wire.ids import new_session_id

pytestmark = pytest.mark.chaos


async def begin(stage: Stage, client: Client) -> str:
    session = new_session_id()
    options = {"prompt": "slow 10"}
    await client.call("session.create", session=session, adapter="demo", cwd=str(stage.home), options=options)
    await client.subscribe(session, start="start")
    return session


async def test_points_of_one_run_are_reached_in_the_next(stage: Stage) -> None:
    async with NatsProxy(stage.nats.url) as proxy:
        worker = await stage.start("adapters", via=proxy)
        gateway = await stage.start("gateway")
        async with await gateway.client() as client:
            marks = watch(proxy)
            await client.wait("turn.completed", session=await begin(stage, client))
            assert next(mark.type for mark in marks if mark.kind == "fact") == "session.created"
            lost_ack = Point(Mark("fact", "turn.started", 1), "stored")
            assert lost_ack in points(marks)
            assert {point.when for point in points(marks, ["delta"])} == {"before", "after"}

            reached = at(proxy, lost_ack, worker.kill)
            second = await begin(stage, client)
            await reached.wait()
            await worker.gone()
            await client.wait("turn.started", session=second)
            await worker.restart()
            ended = await client.wait("turn.completed", session=second)
            assert ended["data"]["outcome"] == "aborted"

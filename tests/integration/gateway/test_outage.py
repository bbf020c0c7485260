"""NATS goes away: the gateway says so, its clients stay, and nothing is missed when it is back."""

import asyncio

import pytest
from tests.integration.gateway.rig import Rig, begin_turn

from trunkline_testkit import eventually
from trunkline_wire import TrunklineError


async def test_clients_stay_and_miss_nothing(rig: Rig) -> None:
    async with await rig.session() as writer, await rig.client() as client:
        await client.call("subscribe", session=writer.session, **{"from": "start"})  # type: ignore[arg-type]  # a keyword
        begin_turn(writer)
        await client.wait("turn.started")
        await asyncio.to_thread(rig.server.kill)
        await eventually(lambda: not rig.running.gateway.bus.commands.is_connected)
        # what is known is still answered
        assert (await client.call("session.list"))["total"] == 1
        prompt = asyncio.create_task(client.call("session.prompt", session=writer.session, text="meanwhile"))
        begin_turn(writer, 2)
        await asyncio.to_thread(rig.server.start)
        await client.wait("turn.started", count=2, within=30)
        assert [event["seq"] for event in client.events() if "seq" in event] == [1, 2, 3, 4, 5]
        # a command that was asked for during the outage is in the log once it is over
        sent = await prompt
        assert [command.id for _, command in await rig.commands(writer.session)] == [sent["command"]]


async def test_what_needs_the_log_says_that_it_is_away(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline_bus.patience.PATIENCE", 0.5)
    monkeypatch.setattr("trunkline_bus.patience.patiently.__kwdefaults__", {"patience": 0.5})
    async with await rig.session() as writer, await rig.client() as client:
        await asyncio.to_thread(rig.server.kill)
        for method, params in [
            ("session.get", {"session": writer.session}),
            ("session.prompt", {"session": writer.session, "text": "x"}),
            ("subscribe", {"session": writer.session}),
        ]:
            with pytest.raises(TrunklineError) as refused:
                await client.call(method, within=10, **params)
            assert refused.value.code == "log_unavailable", method
        await asyncio.to_thread(rig.server.start)

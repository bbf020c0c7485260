"""A claim ends what the former owner's agent has asked, whatever is decided before that owner notices."""

import logging

import pytest
from tests.chaos.asks.session import Session

from trunkline_bus import topology
from trunkline_bus.connection import Bus, BusSettings
from trunkline_bus.derived import DerivedWriter
from trunkline_testkit import eventually
from trunkline_testkit.nats import NatsServer
from trunkline_wire.asks import AskDecided

pytestmark = pytest.mark.chaos


async def test_a_fenced_owner_delivers_no_decision_that_came_after_the_claim(
    fresh_nats: NatsServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "trunkline_agentkit.answers")
    async with Bus.open(BusSettings(url=fresh_nats.url)) as bus:
        await topology.apply(bus.js)
        session = await Session.open(bus)
        ask = await session.ask(1, "ls")
        assert ask is not None
        former = session.owner
        await session.take_over()
        decided = AskDecided(ask=ask, behaviour="allow", by="ann")
        assert await DerivedWriter(bus, "permissions").append(
            session.id, "permission", decided, expected=0, src=("COMMANDS", 1, 0)
        )
        await eventually(lambda: "decision_after_fence" in caplog.text or former.agent.record)
        assert former.agent.record == []
        await session.close()

"""What reaches the agent of a decision that is remembered: this once, so that it asks again, and Trunkline answers."""

from tests.chaos.asks.session import Session

from trunkline_bus.connection import Bus
from trunkline_bus.derived import DerivedWriter
from trunkline_testkit import eventually
from trunkline_wire.asks import AskDecided, SessionRule


async def test_the_agent_is_told_of_this_once_alone(bus: Bus) -> None:
    session = await Session.open(bus)
    try:
        ask = await session.ask(1, "ls")
        assert ask is not None
        rule = SessionRule(rule="session-0", tool="Bash", command=["ls"])
        decided = AskDecided(ask=ask, behaviour="allow", by="ann", option="always", remembers=rule)
        writer = DerivedWriter(bus, "permissions")
        assert await writer.append(session.id, "permission", decided, expected=0, src=("COMMANDS", 1, 0))
        await eventually(lambda: session.owner.agent.record)
        ((told, decision),) = session.owner.agent.record
        assert (told, decision.behaviour, decision.option, decision.remembers) == (ask, "allow", "once", None)
    finally:
        await session.close()

"""Sessions in a log, as an owner writes them."""

from trunkline_bus.connection import Bus
from trunkline_bus.writer import SessionWriter
from trunkline_wire import AgentRef
from trunkline_wire.ids import new_session_id
from trunkline_wire.session import SessionClosed, SessionCreated
from trunkline_wire.turn import MessageSystem

AGENT = AgentRef(adapter="fake", agent="fake", version="1")


async def session(bus: Bus, *texts: str, closed: bool = True) -> str:
    """The id of a session that said `texts`."""
    made = new_session_id()
    created = SessionCreated(adapter="fake", cwd="/src", host="hst_x", workspace="ws_" + "a" * 32)
    async with await SessionWriter.create(bus, created, session=made, worker="wrk_x", agent=AGENT) as writer:
        for text in texts:
            writer.append(MessageSystem(text=text))
        if closed:
            writer.append(SessionClosed(reason="closed"))
        await writer.flush()
    return made

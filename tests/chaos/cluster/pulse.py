"""The pulse of the log: a session that appends ten facts a second, and how long the longest append had to wait."""

import asyncio
import time
from typing import Final

from trunkline_bus.connection import Bus
from trunkline_bus.writer import SessionWriter
from trunkline_wire import AgentRef
from trunkline_wire.ids import new_session_id
from trunkline_wire.session import SessionCreated
from trunkline_wire.turn import MessageSystem

EVERY_S: Final = 0.1


class Pulse:
    """`run` until cancelled. `acked` is the number of facts that the log has acknowledged, `longest` in seconds."""

    def __init__(self, bus: Bus) -> None:
        self.session = new_session_id()
        self.acked = 0
        self.stalls: list[float] = []
        self._bus = bus

    @property
    def longest(self) -> float:
        return max(self.stalls, default=0.0)

    async def run(self) -> None:
        created = SessionCreated(adapter="fake", cwd="/", host="hst_x", workspace="ws_x")
        agent = AgentRef(adapter="fake", agent="fake", version="1")
        writer = await SessionWriter.create(self._bus, created, session=self.session, worker="wrk_x", agent=agent)
        async with writer:
            while True:
                begin = time.monotonic()
                writer.append(MessageSystem(text=f"{self.acked}"))
                await writer.flush()
                self.stalls.append(time.monotonic() - begin)
                self.acked += 1
                await asyncio.sleep(EVERY_S)

"""Three workers that want one session, in interleavings drawn from a seed: one request at a time passes, and which is by chance."""

import asyncio
import random
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from typing import Any, Final

import pytest
from nats.aio.msg import Msg
from tests.chaos.fence.ground import AGENT, Ground, claim, created, faults, note, texts

from trunkline_bus.connection import Bus, BusSettings
from trunkline_bus.mux import NoAnswer
from trunkline_bus.writer import SessionWriter
from trunkline_wire import TrunklineError
from trunkline_wire.ids import new_session_id
from trunkline_wire.session import SessionClaimed

pytestmark = pytest.mark.chaos

WORKERS: Final = 3
CLAIMS: Final = 2
NOTES: Final = 3
LOST: Final = 0.15
"""How likely a request's answer, or the request itself, is lost."""


class Gate:
    """Holds every request of the workers back until the chance lets it pass, one at a time."""

    def __init__(self, buses: list[Bus]) -> None:
        self.chance = random.Random(0)
        self.waiting: list[asyncio.Future[None]] = []
        self.working = 0
        self._moved = asyncio.Event()
        for bus in buses:
            self._guard(bus)

    async def run(self, work: list[Awaitable[None]]) -> None:
        """Lets `work` go on until it is all done."""
        tasks = [asyncio.ensure_future(one) for one in work]
        self.working = len(tasks)
        for task in tasks:
            task.add_done_callback(self._done)
        try:
            while self.working:
                if len(self.waiting) < self.working:
                    self._moved.clear()
                    await self._moved.wait()
                else:
                    self.waiting.pop(self.chance.randrange(len(self.waiting))).set_result(None)
                    self.working -= 1  # until it comes back to the gate
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

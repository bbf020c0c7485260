"""The server's whole store is nearly full of something else than facts: the same limits as for a full log, and the same ends."""

import asyncio
import os

import pytest

from trunkline_bus import topology
from trunkline_bus.blobs import Blobs
from trunkline_bus.capacity import ALMOST_FULL, NEARLY_FULL
from trunkline_bus.connection import Bus, BusSettings
from trunkline_testkit.nats import NatsServer
from trunkline_wire import TrunklineError, subjects

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(120)]

STORE = 40_000_000
MB = 1_000_000


async def test_blobs_fill_the_store_and_the_log_says_so_before_it_refuses() -> None:
    with NatsServer(max_file_store=f"{STORE}") as server:
        async with Bus.open(BusSettings(url=server.url)) as bus:
            assert await topology.apply(bus.js, max_bytes=10 * MB, store=STORE)
            assert await topology.apply(bus.js, store=STORE) == []
            capacity, blobs = bus.capacity, Blobs(bus)
            assert await capacity.look(bus.js) < 0.1
            assert capacity.condition is None
            while await capacity.look(bus.js) < NEARLY_FULL:
                await blobs.put(os.urandom(MB))
            assert capacity.condition is not None
            assert capacity.condition.code == "log_full"
            # The log itself is all but empty: it is the store that is full.
            assert (await bus.js.stream_info(subjects.EVENTS)).state.bytes == 0
            while await capacity.look(bus.js) < ALMOST_FULL:
                await blobs.put(os.urandom(MB))
            refused: asyncio.Future[TrunklineError] = asyncio.get_running_loop().create_future()

            def hear(condition: TrunklineError | None) -> None:
                if condition is not None and not refused.done():
                    refused.set_result(condition)

            async def fill() -> None:
                while True:
                    await blobs.put(os.urandom(MB), condition=hear)

            filling = asyncio.create_task(fill())
            try:
                assert (await asyncio.wait_for(refused, 30)).code == "log_full"
            finally:
                filling.cancel()

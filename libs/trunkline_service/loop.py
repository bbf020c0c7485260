"""How busy the event loop is: a timer that comes late says that other work kept the process from it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from trunkline_bus import metrics
from trunkline_bus.tasks import end

EVERY_S: Final = 1.0


@asynccontextmanager
async def watched_loop() -> AsyncGenerator[None]:
    """Measures for as long as the block runs."""
    watching = asyncio.create_task(_watch(), name="loop lag")
    try:
        yield
    finally:
        await end(watching)


async def _watch() -> None:
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + EVERY_S
        await asyncio.sleep(EVERY_S)
        metrics.LOOP_LAG.observe(max(0.0, loop.time() - due))

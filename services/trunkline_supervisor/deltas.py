"""The stream of streaming text is kept there: where it is lost while Trunkline runs, it is made anew."""

import asyncio
import logging
from collections.abc import Callable

import nats.errors

from trunkline_bus import topology
from trunkline_bus.connection import Bus
from trunkline_wire import TrunklineError

log = logging.getLogger(__name__)

LOOK_EVERY_S = 5.0
"""Seconds between two looks: a lost stream is noticed within them, and a silent one after two more tries of 5 s."""


async def keep_deltas(bus: Bus, tell: Callable[[str], None]) -> None:
    """Look for ever. `bus` needs an administrator's rights; without them it says so in the log and goes on."""
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        try:
            changes = await topology.mend(bus.js)
        except (TrunklineError, nats.errors.Error) as error:
            log.warning("deltas_unmended", extra={"error": str(error)})
            continue
        if changes:
            log.warning("deltas_lost", extra={"changes": changes})
            tell("the stream of streaming text was lost; it is there again, and no finished text is missing")

"""Of several replicas one works, by lease. The lease only spares work: two that work at once change nothing."""

import asyncio
import logging
import os
import platform
from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal

from trunkline_bus.connection import Bus
from trunkline_bus.lease import Lease, read_lease
from trunkline_wire import TrunklineError

log = logging.getLogger(__name__)

Role = Literal["standing by", "at work"]

TTL_S: Final = 10.0
_LOOK_S: Final = 1.0


async def take_shifts(bus: Bus, key: str, work: Callable[[], Awaitable[None]], on_role: Callable[[Role], None]) -> None:
    """Run `work` whenever this replica holds the lease `key`, until cancelled. What `work` raises ends it."""
    holder = {"node": platform.node(), "pid": os.getpid()}
    while True:
        lease = Lease(bus, key, holder, TTL_S)
        if not await take_lease(bus, lease):
            on_role("standing by")
            await _await_turn(bus, lease)
        on_role("at work")
        log.info("shift.begins", extra={"lease": key})
        try:
            await until_lost(lease, work)
        finally:
            await lease.release()
        log.warning("shift.ended", extra={"lease": key})


async def _await_turn(bus: Bus, lease: Lease) -> None:
    while True:
        await asyncio.sleep(_LOOK_S)
        if await take_lease(bus, lease):
            return


async def take_lease(bus: Bus, lease: Lease) -> bool:
    """Take it where nobody holds it, or a process of this machine that no longer runs; False too where nobody answers."""
    try:
        held = await read_lease(bus, lease.key)
        if held is not None and is_gone(held.holder):
            return await lease.take_over(held.revision)
        return held is None and await lease.acquire()
    except TrunklineError as error:
        if bus.writing.is_closed:
            raise
        log.warning("shift.waiting", extra={"lease": lease.key, "error": error.message})
        return False


def is_gone(holder: dict[str, Any]) -> bool:
    """Whether the holder was a process of this machine that no longer runs."""
    pid = holder.get("pid")
    if holder.get("node") != platform.node() or not isinstance(pid, int):
        return False
    if pid == os.getpid():
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


async def until_lost(lease: Lease, work: Callable[[], Awaitable[None]]) -> None:
    """Run `work` until the lease is lost. What `work` raises ends it."""
    working = asyncio.ensure_future(work())
    lost = asyncio.ensure_future(lease.lost.wait())
    try:
        await asyncio.wait({working, lost}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
    finally:
        for task in (working, lost):
            task.cancel()
        await asyncio.gather(working, lost, return_exceptions=True)

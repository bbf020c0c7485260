"""The lease of a session that a worker owns: it tells other hosts that the session has an owner."""

import asyncio
from typing import Final

from trunkline_agentkit.owner import SessionOwner
from trunkline_bus import ownership
from trunkline_bus.connection import Bus
from trunkline_bus.lease import Lease, read_lease
from trunkline_bus.writer import SessionWriter

_TRY_EVERY: Final = 1.0


async def keep_lease(bus: Bus, lease: Lease, owner: SessionOwner, writer: SessionWriter, host: str) -> None:
    """Holds the lease until cancelled; ends the owner where another host has the session.

    A foreign lease of this host is of a dead worker: whoever holds the session's lock takes it. One of another host
    says that somebody may have claimed the session while this process hung: then the log knows, and an owner that
    has nothing to write would not find out.
    """
    while True:
        if await lease.acquire():
            await lease.lost.wait()
            continue
        info = await read_lease(bus, lease.key)
        if info is not None and info.holder.get("host") == host and await lease.take_over(info.revision):
            await lease.lost.wait()
        elif await ownership.last_epoch(bus, writer.session) > writer.epoch:
            owner.finish("fenced")
            return
        else:
            await asyncio.sleep(_TRY_EVERY)


async def let_go_in_silence(lease: Lease, owner: SessionOwner, writer: SessionWriter) -> None:
    """Ends an owner when neither lease nor log has answered for half the lease: then another host may take the session.

    A session of one host needs no such care: its lock guards it.
    """
    loop = asyncio.get_running_loop()
    begun = loop.time()
    while True:
        silent = loop.time() - max(begun, lease.renewed_at, writer.stored_at)
        if silent > lease.ttl / 2:
            owner.finish("stopping")
            return
        await asyncio.sleep(max(0.1, min(_TRY_EVERY, lease.ttl / 2 - silent)))

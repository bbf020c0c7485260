"""Looking for the agents' programs."""

import asyncio
from typing import TYPE_CHECKING

import msgspec

from trunkline_wire import TrunklineError

if TYPE_CHECKING:
    from trunkline_agentkit.protocol import BackendAdapter

PROBE_S = 20.0


class Probed(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's program and version, or why there is none. `note`: what else there is to know."""

    path: str | None = None
    version: str | None = None
    note: str | None = None
    error: str | None = None


async def probe(adapter: "BackendAdapter") -> Probed:
    """Ask an adapter for its agent; whatever hinders it is the answer, too."""
    try:
        async with asyncio.timeout(PROBE_S):
            found = await adapter.probe()
    except TrunklineError as error:
        return Probed(error=str(error))
    except TimeoutError:
        return Probed(error=f"timeout: the program did not say its version within {PROBE_S:g} s")
    return Probed(path=found.path, version=found.version, note=found.note)

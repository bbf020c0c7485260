"""A worker's entry in `trunk_workers`: who it is, which agents it can run, how many sessions it has, and how many of them are at work."""

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Mapping
from importlib import metadata
from typing import Any, Final, Self

from trunkline_agentkit.agents import ManyAgents, agents_of
from trunkline_agentkit.protocol import BackendAdapter
from trunkline_agentkit.workers import WorkerMark
from trunkline_bus import kv
from trunkline_bus.connection import Bus
from trunkline_wire import encode, subjects

log = logging.getLogger(__name__)

EVERY: Final = 10.0
"""Seconds between two signs of life; an entry expires 30 s after the last."""
_PROBE_WITHIN: Final = 20.0


class Enrolment:
    def __init__(
        self, bus: Bus, host: str, mark: WorkerMark, adapters: Mapping[str, BackendAdapter], found: list[dict[str, Any]]
    ) -> None:
        self._bus = bus
        self._host = host
        self._mark = mark
        self._adapters = adapters
        self._found = found
        self._told = asyncio.Event()
        self._stopping = False
        self._version = metadata.version("trunkline")

    @classmethod
    async def of(cls, bus: Bus, host: str, mark: WorkerMark, adapters: Mapping[str, BackendAdapter]) -> Self:
        """Asks each adapter where its agent's program is."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_describe(adapter)) for adapter in adapters.values()]
        return cls(bus, host, mark, adapters, [task.result() for task in tasks])

    async def keep(self, sessions: Callable[[], int], busy: Callable[[], int]) -> None:
        """Says so until cancelled; `busy` counts the sessions whose turn runs."""
        while True:
            self._told.clear()
            entry = {
                "worker": self._mark.worker,
                "host": self._host,
                "version": self._version,
                "hostname": os.uname().nodename,
                "pid": self._mark.pid,
                "started": self._mark.started,
                "adapters": self._found,
                "sessions": sessions(),
                "busy": busy(),
                "stopping": self._stopping,
            }
            await kv.put(self._bus, subjects.KV_WORKERS, self._mark.worker, encode(entry))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(EVERY):
                    await self._told.wait()
            await self._look_again()

    def stop(self) -> None:
        """Says at once that the worker takes no new sessions; it is there until its last agent has ended."""
        self._stopping = True
        self._told.set()

    async def _look_again(self) -> None:
        """Agents come and go, where an adapter has several: one is installed, a terminal of the user's own is opened."""
        for number, adapter in enumerate(self._adapters.values()):
            if isinstance(adapter, ManyAgents):
                self._found[number] = await _describe(adapter)


async def _describe(adapter: BackendAdapter) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": adapter.name,
        "title": adapter.manifest.title,
        "protocol": adapter.manifest.protocol,
        "way": adapter.manifest.way,
        "capabilities": adapter.capabilities,
    }
    try:
        async with asyncio.timeout(_PROBE_WITHIN):
            agents = await agents_of(adapter)
    except Exception as error:
        log.exception("probe_failed", extra={"adapter": adapter.name})
        return found | {"error": {"code": "internal", "message": repr(error)}}
    if isinstance(adapter, ManyAgents):
        return found | {"agents": agents}
    return found | {"agents": agents, "path": agents[0].path, "version": agents[0].version, "error": agents[0].error}

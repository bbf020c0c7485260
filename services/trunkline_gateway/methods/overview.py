"""`overview.get`: the whole installation at a glance, for who runs it."""

from typing import Any

import msgspec

from trunkline_bus import direct, kv
from trunkline_bus.connection import Bus
from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.registry import Params, method
from trunkline_gateway.workers import Worker
from trunkline_wire import subjects


class Nothing(Params, frozen=True, kw_only=True):
    pass


@method("overview.get", "owner", Nothing)
async def get(gateway: Gateway, _: Caller, params: Nothing) -> dict[str, Any]:
    """Sessions by status, open asks and the oldest, events a second, how far projections are behind the log, workers, spend
    by agent and workspace, native messages that no adapter understood, and the dashboards that the settings name.

    `events.last` counts the events of each of the last 60 seconds. A projection is `behind` by that many events.
    """
    log = await direct.info(gateway.bus, subjects.EVENTS)
    return {
        "version": gateway.version,
        "host": gateway.host,
        **gateway.overview.look(),
        "log": {"last": log.last, "messages": log.messages, "fill": round(gateway.bus.capacity.fill, 3)},
        "projections": await _projections(gateway.bus, log.last),
        "workers": [_worker(worker) for worker in gateway.workers.all()],
        "dashboards": gateway.settings.dashboards,
    }


class _Place(msgspec.Struct, frozen=True):
    position: int = 0
    frozen: list[str] = []


async def _projections(bus: Bus, last: int) -> list[dict[str, Any]]:
    """Where each projection stands, its newest version."""
    found: dict[str, tuple[int, _Place]] = {}
    for entry in await kv.entries(bus, subjects.KV_POSITIONS):
        name, _, version = entry.key.rpartition(".v")
        if entry.value is None or not version.isdecimal() or found.get(name, (0,))[0] > int(version):
            continue
        found[name] = int(version), msgspec.json.decode(entry.value, type=_Place)
    return [
        {
            "name": name,
            "version": version,
            "position": place.position,
            "behind": max(0, last - place.position),
            "frozen": len(place.frozen),
        }
        for name, (version, place) in sorted(found.items())
    ]


def _worker(worker: Worker) -> dict[str, Any]:
    """A worker without what its agents can do."""
    return {
        "worker": worker.worker,
        "host": worker.host,
        "hostname": worker.hostname,
        "version": worker.version,
        "started": worker.started,
        "sessions": worker.sessions,
        "busy": worker.busy,
        "agents": [
            {"name": one.name, "version": one.version, "error": None if one.error is None else one.error.code}
            for one in worker.adapters
        ],
    }

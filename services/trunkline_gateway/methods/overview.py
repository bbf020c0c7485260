"""`overview.get`: the whole installation at a glance, for who runs it."""

from typing import TypedDict

from trunkline_bus import direct, places
from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.overview import Counted
from trunkline_gateway.registry import Params, method
from trunkline_gateway.workers import Worker
from trunkline_wire import subjects


class Nothing(Params, frozen=True, kw_only=True):
    pass


class LogFill(TypedDict):
    """`fill`: the share of its room that is used, 0 to 1."""

    last: int
    messages: int
    fill: float


class ProjectionLag(TypedDict):
    name: str
    version: int
    position: int
    behind: int
    frozen: int


class WorkerAgent(TypedDict):
    name: str
    version: str | None
    error: str | None


class WorkerShown(TypedDict):
    """`started` is in seconds since 1970."""

    worker: str
    host: str
    hostname: str | None
    version: str | None
    started: float
    sessions: int
    busy: int
    agents: list[WorkerAgent]


class Glance(Counted):
    version: str
    host: str
    log: LogFill
    projections: list[ProjectionLag]
    workers: list[WorkerShown]
    dashboards: dict[str, str]


@method("overview.get", "owner", Nothing)
async def get(gateway: Gateway, _: Caller, __: Nothing) -> Glance:
    """Sessions by status, open asks and the oldest, events a second, how far projections are behind the log, workers, spend
    by agent and workspace, native messages that no adapter understood, and the dashboards that the settings name.

    `events.last` counts the events of each of the last 60 seconds. A projection is `behind` by that many events, of
    those that it reads; it has folded everything up to `position`.
    """
    log = await direct.info(gateway.bus, subjects.EVENTS)
    return {
        "version": gateway.version,
        "host": gateway.host,
        **gateway.overview.look(),
        "log": {"last": log.last, "messages": log.messages, "fill": round(gateway.bus.capacity.fill, 3)},
        "projections": [_projection(lag) for lag in await places.lags(gateway.bus)],
        "workers": [_worker(worker) for worker in gateway.workers.all()],
        "dashboards": gateway.settings.dashboards,
    }


def _projection(lag: places.Lag) -> ProjectionLag:
    return {
        "name": lag.name,
        "version": lag.version,
        "position": lag.position,
        "behind": lag.behind,
        "frozen": len(lag.frozen),
    }


def _worker(worker: Worker) -> WorkerShown:
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

"""The workers that are there, as they announce themselves in the bucket `trunk_workers`."""

import hashlib
from collections.abc import Callable
from typing import Final

import msgspec

from trunkline_bus.connection import Bus
from trunkline_gateway.peers import WorkerProcess
from trunkline_gateway.records import Records
from trunkline_wire import ErrorInfo
from trunkline_wire.session import Capabilities
from trunkline_wire.subjects import KV_WORKERS

ANY: Final = "any"
"""In place of a host: whichever worker takes the session."""


class InstalledAgent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An agent that an adapter can run on a host, or why it can't. `profile` is what a session names it by."""

    name: str
    title: str | None = None
    profile: str | None = None
    path: str | None = None
    version: str | None = None
    error: ErrorInfo | None = None
    login: str = ""
    signed_in: bool = False


class InstalledAdapter(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An adapter on a host: its agent's version and program, or why it can't be used."""

    name: str
    title: str | None = None
    protocol: str | None = None
    way: str = "native"
    agents: list[InstalledAgent] = []
    capabilities: Capabilities | None = None
    version: str | None = None
    path: str | None = None
    error: ErrorInfo | None = None


class Worker(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A worker process: `version` is Trunkline's, `started` seconds since the epoch."""

    worker: str
    host: str
    pid: int
    hostname: str | None = None
    version: str | None = None
    started: float = 0.0
    sessions: int = 0
    busy: int = 0
    stopping: bool = False
    """Whether it takes no sessions any more."""
    adapters: list[InstalledAdapter] = []

    def adapter(self, name: str) -> InstalledAdapter | None:
        return next((adapter for adapter in self.adapters if adapter.name == name), None)


class Workers:
    """The living workers, watched."""

    def __init__(self, bus: Bus) -> None:
        self.records = Records(bus, KV_WORKERS, Worker)

    def all(self) -> list[Worker]:
        return sorted(self.records.known.values(), key=lambda worker: (worker.host, worker.worker))

    def place(self, own: str, fits: Callable[[list[InstalledAdapter]], bool] | None = None, key: str = "") -> str:
        """The host that is meant where none is named: `own`, unless only others have workers.

        Then one of those whose adapters `fits`, if any do. `key` spreads, and the same key leads to the same host from
        every gateway: a request that is repeated goes where it went.
        """
        hosts = {worker.host for worker in self.all() if not worker.stopping}
        if own in hosts or not hosts:
            return own
        able = {host for host in hosts if fits is None or fits(self.adapters(host))}
        return max(able or hosts, key=lambda host: hashlib.sha256(f"{host}/{key}".encode()).digest())

    def adapters(self, host: str) -> list[InstalledAdapter]:
        """The adapters of one host, or of `any`, each once: where it works, if it does anywhere."""
        workers = [worker for worker in self.all() if host in (worker.host, ANY)]
        found = sorted((one for worker in workers for one in worker.adapters), key=lambda one: one.error is None)
        return list({adapter.name: adapter for adapter in found}.values())

    def processes(self, host: str) -> set[WorkerProcess]:
        """The worker processes of one host."""
        return {(worker.pid, worker.started) for worker in self.records.known.values() if worker.host == host}

    def hosts_with(self, adapter: str) -> set[str]:
        """The hosts whose workers have the adapter."""
        return {worker.host for worker in self.records.known.values() if worker.adapter(adapter) is not None}

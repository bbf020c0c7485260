"""Any number of each service as real processes on one nats-server or a cluster, to be killed, stopped and started at will.

    async with Stage(NatsCluster(), home) as stage:
        whole = await stage.whole()
        second = await stage.start("gateway", via=proxy, drain_s=2)
        whole.worker.kill()
        await whole.worker.restart()

All parts share one home, as on one host; `home=` of `start` makes one of another host.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Self

import aiohttp

from trunkline_bus import topology
from trunkline_bus.connection import Bus, BusSettings
from trunkline_testkit.forbidden import TRUST_NOBODY
from trunkline_testkit.nats_cluster import NatsCluster
from trunkline_testkit.ports import free_port
from trunkline_testkit.processes import Guard
from trunkline_testkit.product import Client
from trunkline_testkit.proxy import NatsProxy
from trunkline_wire import TrunklineError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from trunkline_testkit.nats import NatsServer

Service = Literal["adapters", "projector", "permissions", "teams", "gateway"]
SERVICES: Final[tuple[Service, ...]] = ("adapters", "projector", "permissions", "gateway")

READY_WITHIN: Final = 30.0
"""Seconds that a part may take to be ready on a busy machine."""

_TAIL: Final = 2000
_LOOK: Final = 0.03


class Part:
    """One service's process over all of its lives: same name, ports, socket and log."""

    def __init__(self, name: str, service: Service, argv: list[str], environment: dict[str, str], home: Path) -> None:
        self.name = name
        self.service = service
        self.home = home
        self.starts = 0
        self._argv = argv
        self._environment = environment
        self._process: asyncio.subprocess.Process | None = None
        self._guard: Guard | None = None
        self._log = home / f"{name}.log"

    @property
    def running(self) -> bool:
        """Whether its process exists; a stopped one does."""
        return self._process is not None and self._process.returncode is None

    @property
    def pid(self) -> int:
        """Of the present or last process."""
        assert self._process is not None, f"{self.name} was never started"
        return self._process.pid

    @property
    def health_url(self) -> str:
        """Where `/health`, `/ready` and `/metrics` are."""
        return f"http://127.0.0.1:{self._environment['TRUNKLINE_HTTP_PORT']}"

    @property
    def socket(self) -> str:
        """The gateway's unix socket."""
        return self._environment["TRUNKLINE_GATEWAY_SOCKET"]

    def kill(self) -> None:
        """SIGKILL; nothing if it does not run."""
        self._signal(signal.SIGKILL)

    def stop(self) -> None:
        """SIGSTOP: it hangs where it is, its sockets stay open."""
        self._signal(signal.SIGSTOP)

    def cont(self) -> None:
        """SIGCONT."""
        self._signal(signal.SIGCONT)

    async def gone(self) -> int:
        """Waits until the process has ended; its exit code."""
        assert self._process is not None, f"{self.name} was never started"
        code = await self._process.wait()
        self._release()
        return code

    async def terminate(self, within: float = 15.0) -> int:
        """SIGTERM and wait; its exit code. What does not end in time is killed and fails."""
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)
        try:
            async with asyncio.timeout(within):
                return await self.gone()
        except TimeoutError:
            await self.end()
            raise AssertionError(f"{self.name} did not end within {within:g} s of SIGTERM\n{self.log_end()}") from None

    async def end(self) -> None:
        """SIGKILL and wait, whatever state it is in."""
        if self._process is not None:
            self.kill()
            await self.gone()

    async def launch(self) -> None:
        """Starts a process where none runs, without waiting for it to be ready."""
        if self.running:
            return
        self._release()
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._argv,
                env=self._environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._guard = Guard(self._process.pid)
        self.starts += 1

    async def restart(self, within: float = READY_WITHIN) -> None:
        """Kills what runs, starts it again and waits until it is ready."""
        await self.end()
        await self.launch()
        await self.ready(within)

    async def ready(self, within: float = READY_WITHIN) -> None:
        """Waits until `/ready` answers 200. Raises AssertionError with the end of its log."""
        deadline = time.monotonic() + within
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(2)) as http:
            while not await self._says_ready(http):
                if not self.running:
                    raise AssertionError(f"{self.name} ended, code {await self.gone()}\n{self.log_end()}")
                if time.monotonic() > deadline:
                    raise AssertionError(f"{self.name} was not ready within {within:g} s\n{self.log_end()}")
                await asyncio.sleep(_LOOK)

    async def client(self, within: float = READY_WITHIN) -> Client:
        """A client of this gateway over its unix socket, as soon as it answers."""
        deadline = time.monotonic() + within
        while True:
            try:
                return await Client.connect("http://localhost", socket=self.socket)
            except (OSError, aiohttp.ClientError):
                if time.monotonic() > deadline:
                    raise AssertionError(f"{self.name} takes no client\n{self.log_end()}") from None
                await asyncio.sleep(_LOOK)

    def log_text(self) -> str:
        """What it wrote, over all of its lives."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def log_end(self) -> str:
        """The end of its log under its name, for the message of a failure."""
        return f"--- {self.name}\n{self.log_text()[-_TAIL:]}"

    async def _says_ready(self, http: aiohttp.ClientSession) -> bool:
        try:
            async with http.get(f"{self.health_url}/ready") as answer:
                return answer.status == 200 and json.loads(await answer.text()).get("service") == self.service
        except (OSError, aiohttp.ClientError, TimeoutError, ValueError):
            return False

    def _signal(self, number: signal.Signals) -> None:
        if self.running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def _release(self) -> None:
        if self._guard is not None:
            self._guard.release()
            self._guard = None


@dataclass(frozen=True, slots=True)
class Whole:
    """One of each service."""

    worker: Part
    projector: Part
    permissions: Part
    gateway: Part

    @property
    def parts(self) -> tuple[Part, ...]:
        return (self.worker, self.projector, self.permissions, self.gateway)


class Stage:
    """The ground that parts stand on: the servers with their topology (R3 on a cluster), a home, and an end for everything.

    A server that does not run is started, and stopped at the end. `environment` is added to every part's;
    `max_bytes` is the limit of the log.
    """

    def __init__(
        self,
        nats: NatsServer | NatsCluster,
        home: Path,
        *,
        environment: Mapping[str, str] | None = None,
        max_bytes: int = 1024**3,
    ) -> None:
        self.nats = nats
        self.home = home
        self.parts: dict[str, Part] = {}
        self._environment = dict(environment or {})
        self._max_bytes = max_bytes
        self._started_nats = False

    @property
    def replicas(self) -> int:
        """Copies of each event: 1, or 3 on a cluster."""
        return len(self.nats.nodes) if isinstance(self.nats, NatsCluster) else 1

    @property
    def servers(self) -> list[NatsServer]:
        """The nats-server, or every node."""
        return self.nats.nodes if isinstance(self.nats, NatsCluster) else [self.nats]

    async def __aenter__(self) -> Self:
        try:
            if not any(server.running for server in self.servers):
                self._started_nats = True
                await asyncio.to_thread(self.nats.start)
            self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
            async with self.bus() as bus:
                await self._apply(bus)
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if error is not None and kind is not asyncio.CancelledError:
            error.add_note("\n".join(part.log_end() for part in self.parts.values()))
        await self._end()

    @contextlib.asynccontextmanager
    async def bus(self, via: NatsProxy | Sequence[NatsProxy] | None = None, name: str = "stage") -> AsyncGenerator[Bus]:
        """A connection of the test's own."""
        async with Bus.open(BusSettings(url=self._url(via), name=name)) as bus:
            yield bus

    async def start(
        self,
        service: Service,
        *,
        name: str | None = None,
        via: NatsProxy | Sequence[NatsProxy] | None = None,
        home: Path | None = None,
        wait: bool = True,
        within: Sequence[str] = (),
        **settings: object,
    ) -> Part:
        """A new part, by default named as its service, `gateway2` for the second and so on.

        `via` are proxies between it and NATS; on a cluster one for each node that it may use. `settings` are the
        service's, as in `idle_after=5`. It is ready on return unless `wait` is false. `within` is a command that its own is
        given to (`ip netns exec NAME`).
        """
        part = self._make(service, name, via, home or self.home, settings, within)
        await part.launch()
        if wait:
            await part.ready()
        return part

    async def whole(self, settings: Mapping[Service, Mapping[str, object]] | None = None) -> Whole:
        """One worker, projector, permission service and gateway, started side by side; `settings` by service."""
        given = settings or {}
        parts = [self._make(service, None, None, self.home, given.get(service, {})) for service in SERVICES]
        for part in parts:
            await part.launch()
        for part in parts:
            await part.ready()
        return Whole(*parts)

    def _make(
        self,
        service: Service,
        name: str | None,
        via: NatsProxy | Sequence[NatsProxy] | None,
        home: Path,
        settings: Mapping[str, object],
        within: Sequence[str] = (),
    ) -> Part:
        if name is None:
            others = sum(part.service == service for part in self.parts.values())
            name = service if not others else f"{service}{others + 1}"
        assert name not in self.parts, f"there is a part {name!r} already"
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        environment = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "PYTHONUNBUFFERED": "1",
            "TRUNKLINE_HOME": str(home),
            "TRUNKLINE_NATS_URL": self._url(via),
            "TRUNKLINE_HTTP_PORT": str(free_port()),
            **TRUST_NOBODY,
            **self._environment,
            **{f"TRUNKLINE_{service.upper()}_{key.upper()}": _text(value) for key, value in settings.items()},
        }
        if service == "gateway":
            environment.setdefault("TRUNKLINE_GATEWAY_PORT", "0")
            environment.setdefault("TRUNKLINE_GATEWAY_SOCKET", str(home / f"{name}.sock"))
        argv = [*within, sys.executable, "-m", f"trunkline_{service}"]
        part = self.parts[name] = Part(name, service, argv, environment, home)
        return part

    def _url(self, via: NatsProxy | Sequence[NatsProxy] | None) -> str:
        if via is None:
            return self.nats.url
        return via.url if isinstance(via, NatsProxy) else ",".join(proxy.url for proxy in via)

    async def _apply(self, bus: Bus) -> None:
        # A cluster that has just elected its first leader refuses for some seconds.
        deadline = time.monotonic() + READY_WITHIN
        while True:
            try:
                await topology.apply(bus.js, replicas=self.replicas, max_bytes=self._max_bytes)
                await bus.read_log_id()
            except TrunklineError:
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.2)
            else:
                return

    async def _end(self) -> None:
        for part in self.parts.values():
            part.kill()
        for part in self.parts.values():
            await part.end()
        if self._started_nats:
            await asyncio.to_thread(self.nats.stop)


def _text(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))  # pyright: ignore[reportUnknownArgumentType]
    return str(value).lower() if isinstance(value, bool) else str(value)

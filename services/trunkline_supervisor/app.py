"""The composition root of `trunkline up`: lock, nats-server, log, services, state file; and all of it down again."""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib import metadata

from trunkline_agentkit.death import end_strays
from trunkline_agentkit.held import held_sessions
from trunkline_agentkit.hung import HungWorkers
from trunkline_bus.connection import Bus, BusSettings
from trunkline_supervisor import logs, processes, state
from trunkline_supervisor.awake import Awake
from trunkline_supervisor.broker import Broker
from trunkline_supervisor.child import Child
from trunkline_supervisor.console import Console
from trunkline_supervisor.deltas import keep_deltas
from trunkline_supervisor.home import Home, host_id
from trunkline_supervisor.killer import Killer
from trunkline_supervisor.lock import HomeLock
from trunkline_supervisor.ports import gateway_port
from trunkline_supervisor.services import SERVICES, Endpoint, Service, child_spec
from trunkline_supervisor.settings import SupervisorSettings
from trunkline_wire import TrunklineError

log = logging.getLogger(__name__)

LEFTOVER_GRACE = 3.0
NATS = "nats-server"
PROGRAMS = (NATS,)
"""Programs other than the services that the supervisor starts."""
ORPHANS_EVERY = 2.0
BEAT_EVERY = 60.0
BAD_SETTINGS = 2
"""The exit code of a service that can't be helped by starting it again."""


class Supervisor:
    """One run of the services. `ready` is set once all of them answer; `gateway` is the URL they answer at.

    `services` may be others than the product's own: for tests, and for hosts that run only some of them.
    `on_ready` is awaited once, beside the watching.
    """

    def __init__(
        self,
        settings: SupervisorSettings,
        broker: Broker,
        console: Console,
        *,
        version: str,
        environment: Mapping[str, str],
        flags: Sequence[str] = (),
        services: Sequence[Service] = SERVICES,
        on_ready: Callable[["Supervisor"], Awaitable[None]] | None = None,
    ) -> None:
        self.settings = settings
        self.home = Home(settings.home)
        self.ready = asyncio.Event()
        self.gateway = ""
        self.children: list[Child] = []
        self._broker = broker
        self._console = console
        self._version = version
        self._environment = environment
        self._flags = tuple(flags)
        self._installed = version
        self._services = services
        self._on_ready = on_ready
        self._host = ""
        self._awake: Awake | None = None
        self._news = asyncio.Event()

    async def run(self, stopping: asyncio.Event) -> None:
        """Everything up, until `stopping` is set; then everything down, also when starting fails.

        Raises TrunklineError: `already_running`, `log_unavailable`, `topology_conflict`, `bad_settings`, `crash_loop`,
        `timeout`.
        """
        self.home.prepare()
        with HomeLock(self.home):
            self._console.title(f"Trunkline {self._version} in {self.home.root}")
            await self._clean_up()
            self._host = host_id(self.home)
            if self.settings.keep_awake:
                self._awake = Awake(self._host, self.home.log("supervisor"), self._console.trouble)
            try:
                await self._broker.start()
                self._console.step(NATS, self._broker.url)
                port = gateway_port(self.settings.port)
                self.gateway = f"http://127.0.0.1:{port}"
                changes = await self._broker.make_topology()
                self._console.step("log", f"{len(changes)} changes to streams and buckets" if changes else "as it was")
                endpoint = Endpoint(
                    nats_url=self._broker.url,
                    seeds=self._broker.seeds,
                    gateway_port=port,
                    drain_s=max(1.0, self.settings.drain_s - 1),
                )
                await self._serve(endpoint, stopping)
            finally:
                await self._broker.stop()
                state.remove_socket(self.home.socket)
                state.remove(self.home)
            held = await asyncio.to_thread(held_sessions, self.home.root)
            goes_on = f"but what is held on purpose: {', '.join(held)}" if held else "any more"
            self._console.line(f"stopped; nothing runs {goes_on}")

    def hurry(self) -> None:
        """Kill what still runs, at once: for a second Ctrl-C."""
        for child in self.children:
            if child.process is not None:
                processes.kill_group(child.process.pid)

    async def _clean_up(self) -> None:
        """End what an instance left that was killed with SIGKILL, so that nobody meets its own past."""
        before = state.read(self.home)
        if before is not None:
            ended = await processes.end_leftovers(before.children.values(), LEFTOVER_GRACE)
            if ended:
                log.warning("leftovers_ended", extra={"pids": ended})
            self._console.step("cleaned up", f"after process {before.pid}, which was killed")
        state.remove_socket(self.home.socket)

    async def _serve(self, endpoint: Endpoint, stopping: asyncio.Event) -> None:
        self.children = [
            Child(child_spec(service, self.home, endpoint, self._environment), self._changed)
            for service in self._services
        ]
        failure: TrunklineError | None = None
        async with asyncio.TaskGroup() as group:
            keeping = [
                group.create_task(self._enforce_kills(endpoint)),
                group.create_task(self._broker.keep(self._broker_restarted)),
                group.create_task(logs.keep_bounded(self.home.logs)),
                group.create_task(self._end_orphans()),
                group.create_task(self._beat()),
            ]
            for child in self.children:
                group.create_task(child.run())
            try:
                if await self._all_ready(stopping):
                    keeping.append(group.create_task(self._announce()))
                    await stopping.wait()
            except TrunklineError as error:
                failure = error
            finally:
                await self._drain()
                for task in keeping:
                    task.cancel()
        if failure is not None:
            raise failure

    async def _all_ready(self, stopping: asyncio.Event) -> bool:
        """Wait for every service; False if told to stop meanwhile. Raises `bad_settings`, `crash_loop`, `timeout`."""
        stop = asyncio.create_task(stopping.wait())
        try:
            async with asyncio.timeout(self.settings.start_s):
                while not all(child.ready.is_set() for child in self.children):
                    for child in self.children:
                        if child.last_exit == BAD_SETTINGS:
                            raise _failed("bad_settings", f"{child.name} refuses its settings", child)
                        if child.restarts.looping:
                            raise _failed("crash_loop", f"{child.name} died {child.restarts.deaths} times", child)
                    self._news.clear()
                    news = asyncio.create_task(self._news.wait())
                    try:
                        await asyncio.wait({news, stop}, return_when=asyncio.FIRST_COMPLETED)
                    finally:
                        news.cancel()
                    if stop.done():
                        return False
        except TimeoutError:
            slow = next(child for child in self.children if not child.ready.is_set())
            raise _failed("timeout", f"{slow.name} was not ready within {self.settings.start_s:g} s", slow) from None
        finally:
            stop.cancel()
        return True

    async def _announce(self) -> None:
        self.ready.set()
        self._write_state()
        log.info("ready", extra={"gateway": self.gateway, "nats": self._broker.url})
        self._console.line()
        self._console.title(f"Ready at {self.gateway}")
        self._console.line(f"  the token for browsers is in {self.home.token}")
        self._console.line('  try:  trunkline run claude "What does this repository do?"')
        self._console.line("        trunkline ls · trunkline attach last · trunkline asks · trunkline doctor")
        if self._console.attended:
            self._console.line("  Ctrl-C stops it.")
        if self._on_ready is not None:
            await self._on_ready(self)

    async def _drain(self) -> None:
        for child in self.children:
            await child.retire()
        running = [child for child in self.children if child.process is not None]
        if running:
            self._console.line(f"stopping {', '.join(child.name for child in running)} …")
        live = [child.process for child in running if child.process is not None]
        killed = await processes.stop(live, self.settings.drain_s)
        await end_strays(self._known(), PROGRAMS)
        for child in running:
            if child.process_id in killed:
                self._console.trouble(f"{child.name} did not end within {self.settings.drain_s:g} s and was killed")

    async def _enforce_kills(self, endpoint: Endpoint) -> None:
        settings = BusSettings(url=endpoint.nats_url, seed_file=endpoint.seeds.get("admin"), name="supervisor")
        while True:
            try:
                async with Bus.open(settings) as bus, asyncio.TaskGroup() as group:
                    group.create_task(Killer(bus, self.home.root, self._host, self.settings.kill_s).run())
                    group.create_task(HungWorkers(bus, self.home.root).run())
                    group.create_task(keep_deltas(bus, self._console.trouble))
                    if self._awake is not None:
                        group.create_task(self._awake.run(bus))
            except* TrunklineError as errors:
                log.warning("killer_restarts", extra={"error": str(errors.exceptions[0])})
            await asyncio.sleep(1)

    async def _end_orphans(self) -> None:
        """Ends what agents started, when it has lost both its holder and its worker and so became ours."""
        while True:
            await asyncio.sleep(ORPHANS_EVERY)
            async with contextlib.AsyncExitStack() as starts:
                for child in self.children:
                    await starts.enter_async_context(child.starting)  # or what is being started would look like one
                ended = await end_strays(self._known(), PROGRAMS)
            if ended:
                log.warning("orphans_ended", extra={"processes": ended})

    async def _beat(self) -> None:
        """Says once a minute that it lives, and whether another version has been installed meanwhile."""
        while True:
            await asyncio.sleep(BEAT_EVERY)
            installed = await asyncio.to_thread(installed_version)
            if installed not in {self._installed, self._version}:
                self._console.trouble(f"version {installed} is installed now: `trunkline daemon restart` runs it")
            self._installed = installed
            self._write_state()

    def _known(self) -> list[int]:
        awake = [] if self._awake is None else self._awake.pids
        return [child.process.pid for child in self.children if child.process is not None] + awake

    def _broker_restarted(self) -> None:
        self._write_state()
        self._console.step(NATS, f"{self._broker.url}, again")

    def _changed(self, child: Child) -> None:
        self._news.set()
        if child.name == "gateway" and child.process is not None and child.ready.is_set():
            self.gateway = state.gateway_url(self.home, child.process.pid) or self.gateway
        self._write_state()
        if child.process is None:
            again = f"starting it again in {child.restarts.delay:g} s"
            if child.restarts.hopeless:
                again = "it is not started again: mend what it says there, then `trunkline daemon restart`"
            if child.restarts.looping:
                again = f"it died {child.restarts.deaths} times in a row; see {child.spec.log}; {again}"
            self._console.trouble(f"{child.name} ended with status {child.last_exit}; {again}")
        elif child.ready.is_set():
            self._console.step(child.name, "ready" if child.starts == 1 else "ready again")

    def _write_state(self) -> None:
        children: dict[str, state.Process] = {}
        pids = {child.name: child.process.pid for child in self.children if child.process is not None}
        if self._broker.pid is not None:
            pids[NATS] = self._broker.pid
        for name, pid in pids.items():
            process = state.Process.of(pid)
            if process is not None:
                children[name] = process
        own = state.Process.of(os.getpid())
        assert own is not None
        with contextlib.suppress(OSError):  # a full disk must not end what runs
            state.write(
                self.home,
                state.State(
                    pid=own.pid,
                    start=own.start,
                    version=self._version,
                    host=self._host,
                    gateway=self.gateway,
                    nats=self._broker.url,
                    socket=str(self.home.socket),
                    ready=self.ready.is_set(),
                    children=children,
                    services={
                        child.name: state.ServiceState(
                            ready=child.ready.is_set(),
                            starts=child.starts,
                            deaths=child.restarts.deaths,
                            exit=child.last_exit,
                            given_up=child.restarts.hopeless,
                        )
                        for child in self.children
                    },
                    beat=time.time(),
                    installed=self._installed,
                    flags=self._flags,
                ),
            )


def installed_version() -> str:
    """Of the package as it is installed now, which may be another than the one that runs."""
    return metadata.version("trunkline")


def _failed(code: str, what: str, child: Child) -> TrunklineError:
    tail = child.log_tail()
    return TrunklineError(
        code, f"{what}; the end of {str(child.spec.log)!r}:\n{tail or '(it wrote nothing)'}", service=child.name
    )

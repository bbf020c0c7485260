"""The one way in: settings, logging, NATS, health, discovery, signals; then the service's own `main`.

Exit codes: 0 after an orderly end (SIGTERM, SIGINT, or `main` returned); 1 when the service failed; 2 for bad settings;
3 when it could not start for a reason that has a code (such as `topology_conflict`); 128 + n when a second signal n
ended it without draining.
"""

import asyncio
import contextlib
import enum
import gc
import json
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import AsyncExitStack
from importlib import metadata
from typing import Generic, NoReturn, TypeVar

import nats.errors
import uvloop
from prometheus_client import REGISTRY

from trunkline_bus import topology as streams
from trunkline_bus.connection import Bus, BusSettings
from trunkline_bus.tasks import end
from trunkline_service.discovery import discoverable
from trunkline_service.health import Health, HealthServer
from trunkline_service.logs import configure_logging
from trunkline_service.loop import watched_loop
from trunkline_service.settings import Settings, effective, load, mask_url
from trunkline_service.telemetry import tracing
from trunkline_wire import TrunklineError

log = logging.getLogger(__name__)

S = TypeVar("S", bound=Settings)

RETRY_LOG_S = 3.0
LOG_POLL_S = 0.5


class ExitCode(enum.IntEnum):
    """How a service's process ends."""

    OK = 0
    FAILED = 1
    BAD_SETTINGS = 2
    NOT_STARTED = 3
    SIGNALLED = 128


class Service(Generic[S]):
    """What a service's `main` is given. It returns soon after `stopping` is set; after `drain_s` it is cancelled."""

    def __init__(self, name: str, settings: S, bus: Bus, health: Health, stopping: asyncio.Event) -> None:
        self.name = name
        self.settings = settings
        self.bus = bus
        self.health = health
        self.stopping = stopping

    def ready(self) -> None:
        """Say that the service does its work now: /ready answers 200."""
        self.health.set_ready()
        log.info("ready")


Main = Callable[[Service[S]], Awaitable[None]]
Apart = Callable[[S, Health, asyncio.Event], Awaitable[None]]
"""The main of a program without NATS: given its settings, its health, and the event that tells it to stop."""


def version() -> str:
    """The version of the installed distribution."""
    return metadata.version("trunkline")


def run(
    name: str,
    main: Main[S],
    settings_type: type[S] = Settings,
    *,
    topology: bool = False,
    argv: Sequence[str] | None = None,
) -> None:
    """The whole of a service's `__main__`: runs `main` until it returns or a signal comes, then ends the process.

    `topology` creates or updates the streams first (for a service that runs as the administrator).
    """
    settings = _begin(name, settings_type, argv)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner, tracing(name, version(), settings.otlp_endpoint):
        code = runner.run(serve(name, main, settings, topology=topology))
    leave(code)


def run_apart(name: str, main: Apart[S], settings_type: type[S], *, argv: Sequence[str] | None = None) -> None:
    """As `run`, for a program that has health and metrics but no bus."""
    settings = _begin(name, settings_type, argv)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve_apart(name, main, settings))
    leave(ExitCode.OK)


def _begin(name: str, settings_type: type[S], argv: Sequence[str] | None) -> S:
    """Settings and logging; ends the process where it was only asked what is in force."""
    settle()
    try:
        settings, check = load(settings_type, name, argv=sys.argv[1:] if argv is None else argv)
    except TrunklineError as error:
        print(error, file=sys.stderr)  # noqa: T201 - there is no logging before there are settings
        raise SystemExit(ExitCode.BAD_SETTINGS) from error
    if check:
        print(json.dumps(effective(settings), indent=2, sort_keys=True))  # noqa: T201 - this is the command's output
        raise SystemExit(ExitCode.OK)
    configure_logging(name, settings.log_level, settings.log_format)
    return settings


def settle() -> None:
    """What has been loaded stays: no collection looks at it. Whoever has put collecting off while loading has it again."""
    gc.freeze()
    gc.enable()


def leave(code: int) -> NoReturn:
    """End this process when its work is done and closed, without the interpreter's taking apart of every module.

    That takes as long as a third of loading them.
    """
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # nobody reads it any more
            stream.flush()
    os._exit(code)


async def _serve_apart(name: str, main: Apart[S], settings: S) -> None:
    stopping, health = asyncio.Event(), Health(name, version())
    with _signals(stopping):
        prepare_home(settings)
        async with HealthServer(health, REGISTRY, host=settings.http_host, port=settings.http_port) as server:
            log.info("starting", extra={"version": version(), "pid": os.getpid(), "health": server.url})
            async with watched_loop():
                await main(settings, health, stopping)
    log.info("stopped")


async def serve(name: str, main: Main[S], settings: S, *, topology: bool = False) -> ExitCode:
    """Run one service in this loop until it ends; the exit code says how."""
    stopping = asyncio.Event()
    started = False
    try:
        async with AsyncExitStack() as stack:
            stack.enter_context(_signals(stopping))
            prepare_home(settings)
            health = Health(name, version())
            server = await stack.enter_async_context(
                HealthServer(health, REGISTRY, host=settings.http_host, port=settings.http_port)
            )
            log.info("starting", extra={"version": version(), "pid": os.getpid(), "health": server.url})
            bus = await _connected(stack, name, settings, stopping, topology=topology)
            if bus is None:
                return ExitCode.OK
            health.add("nats", lambda: None if bus.writing.is_connected else "disconnected")
            await stack.enter_async_context(watched_loop())
            await stack.enter_async_context(discoverable(bus.writing, health, {"health": server.url}))
            started = True
            await _until_stopped(main, Service(name, settings, bus, health, stopping), settings.drain_s)
    except TrunklineError as error:
        log.exception("failed", extra={"code": error.code})
        return ExitCode.FAILED if started else ExitCode.NOT_STARTED
    except Exception:
        log.exception("failed")
        return ExitCode.FAILED
    log.info("stopped")
    return ExitCode.OK


def prepare_home(settings: Settings) -> None:
    """Create the home directory, for its owner's eyes only."""
    try:
        settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise TrunklineError("bad_settings", f"home {str(settings.home)!r} can't be made: {error}") from error


async def _until_stopped(main: Main[S], service: Service[S], drain_s: float) -> None:
    """Runs `main` until it returns, a signal comes or NATS has closed the connection for good (`log_unavailable`)."""
    task = asyncio.ensure_future(main(service))
    stop = asyncio.create_task(service.stopping.wait())
    ended = asyncio.create_task(service.bus.wait_ended())
    try:
        await asyncio.wait({task, stop, ended}, return_when=asyncio.FIRST_COMPLETED)
        service.health.set_ready(False)
        service.stopping.set()
        if not task.done():
            log.info("draining", extra={"seconds": drain_s})
            await asyncio.wait({task}, timeout=drain_s)
        if not task.done():
            log.warning("drain_cut", extra={"seconds": drain_s})
        if ended.done():
            ended.result()
    finally:
        for each in (stop, ended):
            each.cancel()
        await asyncio.gather(stop, ended, return_exceptions=True)
        await end(task)


async def _connected(
    stack: AsyncExitStack, name: str, settings: Settings, stopping: asyncio.Event, *, topology: bool
) -> Bus | None:
    """The open bus, with a log; None when the process was told to stop before there was one."""
    wanted = BusSettings(
        url=settings.nats_url, seed_file=settings.nats_seed, name=f"trunkline-{name}", connect_within=None
    )
    scope = asyncio.timeout(None)
    watcher = asyncio.create_task(_watch_connecting(scope, stopping, mask_url(settings.nats_url)))
    try:
        async with scope:
            bus = await stack.enter_async_context(Bus.open(wanted))
            if topology:
                for change in await streams.apply(bus.js):
                    log.info("topology_changed", extra={"change": change})
            await _wait_for_log(bus)
            return bus
    except TimeoutError:
        if scope.expired():
            return None
        raise
    finally:
        watcher.cancel()


async def _wait_for_log(bus: Bus) -> None:
    while True:
        try:
            await bus.read_log_id()
        except (TrunklineError, nats.errors.Error) as error:
            if bus.ended:
                await bus.wait_ended()
            log.info("no_log", extra={"error": str(error)})
            await asyncio.sleep(LOG_POLL_S)
        else:
            return


async def _watch_connecting(scope: asyncio.Timeout, stopping: asyncio.Event, url: str) -> None:
    """Says what is being waited for, and lets a signal end the wait: the scope runs out at once."""
    while True:
        try:
            async with asyncio.timeout(RETRY_LOG_S):
                await stopping.wait()
        except TimeoutError:
            log.warning("nats_unreachable", extra={"url": url, "hint": "is it running? `trunkline up` starts one"})
        else:
            scope.reschedule(asyncio.get_running_loop().time())
            return


@contextlib.contextmanager
def _signals(stopping: asyncio.Event) -> Generator[None, None, None]:
    loop = asyncio.get_running_loop()

    def on_signal(number: int) -> None:
        if stopping.is_set():
            os._exit(ExitCode.SIGNALLED + number)
        log.info("signal", extra={"signal": signal.Signals(number).name})
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)

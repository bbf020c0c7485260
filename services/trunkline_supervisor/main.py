"""The process of `trunkline up`: settings, log file, signals, exit code."""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from trunkline_agentkit.death import become_subreaper
from trunkline_bus import guests
from trunkline_bus.leaf import Leaf, leaf_key
from trunkline_service.logs import configure_logging
from trunkline_service.run import leave, settle
from trunkline_service.settings import load
from trunkline_supervisor.app import Supervisor, installed_version
from trunkline_supervisor.broker import Broker, OtherBroker, OwnBroker
from trunkline_supervisor.console import Console
from trunkline_supervisor.demo import start_demo
from trunkline_supervisor.home import Home
from trunkline_supervisor.services import EXTENSION_RIGHTS, chosen, configured_extensions, configured_relay
from trunkline_supervisor.settings import SupervisorSettings
from trunkline_wire import TrunklineError
from trunkline_wire.ids import check_token

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_BAD_SETTINGS = 2


def main(argv: Sequence[str] | None = None) -> None:
    """Run until a signal; exit code 0 after an orderly end, 1 for a failure, 2 for bad settings."""
    settle()
    flags = sys.argv[1:] if argv is None else argv
    try:
        settings, check = load(SupervisorSettings, "supervisor", argv=flags)
        if check:
            raise SystemExit(0)
        Home(settings.home).prepare()
    except TrunklineError as error:
        sys.stderr.write(f"error: {error}\n")
        raise SystemExit(EXIT_BAD_SETTINGS) from error
    with Home(settings.home).log("supervisor").open("a", encoding="utf-8") as log:
        configure_logging("supervisor", settings.log_level, settings.log_format, log)
        try:
            asyncio.run(_run(settings, flags))
        except TrunklineError as error:
            sys.stderr.write(f"error: {error}\n")
            raise SystemExit(EXIT_FAILED) from error
    leave(EXIT_OK)


async def _run(settings: SupervisorSettings, flags: Sequence[str]) -> None:
    become_subreaper()
    console = Console()
    stopping = asyncio.Event()
    home = Home(settings.home)
    extensions = [] if settings.nats_url else configured_extensions(home)
    for one in extensions:
        guests.add(home.root / "nats", one.name.removeprefix("ext-"), EXTENSION_RIGHTS)
    optional = [] if settings.services else [*extensions, *configured_relay(home)]
    services = [*chosen(settings.services), *optional]
    supervisor = Supervisor(
        settings,
        _broker(settings, console),
        console,
        version=installed_version(),
        environment=os.environ,
        flags=flags,
        services=services,
        on_ready=(lambda up: _demo(up, console)) if settings.demo else None,
    )

    def on_signal() -> None:
        if stopping.is_set():
            supervisor.hurry()
        stopping.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # under nohup it is to go on
        loop.add_signal_handler(signal.SIGHUP, on_signal)
    await supervisor.run(stopping)


def _broker(settings: SupervisorSettings, console: Console) -> Broker:
    if settings.nats_url:
        return OtherBroker(settings.nats_url, settings.nats_seed, {})
    home = Home(settings.home)
    directory = home.root / "nats"
    leaf = None
    if settings.leaf_url:
        if not settings.leaf_name:
            raise TrunklineError("bad_settings", "leaf_url wants a leaf_name, by which the hub knows this log")
        name = check_token(settings.leaf_name)
        leaf = Leaf(url=settings.leaf_url, name=name, seed_file=leaf_key(directory), ca_file=settings.leaf_ca)
    log_file = home.log("nats-server")
    return OwnBroker(directory, log_file, console.trouble, store_key=settings.store_key, leaf=leaf)


async def _demo(supervisor: Supervisor, console: Console) -> None:
    try:
        session = await start_demo(supervisor.home.socket, Path.cwd())
    except TrunklineError as error:
        console.trouble(str(error))
    else:
        console.line(f"  demo: trunkline attach {session[:16]}, and from another terminal: trunkline approve last")

"""The composition root: the one place where the gateway's parts meet."""

import asyncio
import contextlib
import json
import logging
import os
from collections.abc import AsyncGenerator, Coroutine, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from trunkline_bus import metrics
from trunkline_bus.connection import Bus
from trunkline_bus.cursor import CursorCodec
from trunkline_bus.requests import Requests
from trunkline_gateway import api, links, signin
from trunkline_gateway.access import Access
from trunkline_gateway.audit import Audit
from trunkline_gateway.boards import Boards
from trunkline_gateway.cursors import Cursors
from trunkline_gateway.devices import Devices
from trunkline_gateway.directory import Directory
from trunkline_gateway.extensions import Extensions
from trunkline_gateway.gateway import Gateway
from trunkline_gateway.http import Routes
from trunkline_gateway.hub import Hub
from trunkline_gateway.listen import announced, tcp_socket, unix_socket
from trunkline_gateway.overview import Overview
from trunkline_gateway.presence import Presence
from trunkline_gateway.settings import GatewaySettings
from trunkline_gateway.terminals import Terminals
from trunkline_gateway.tickets import Tickets
from trunkline_gateway.tokens import Tokens, cursor_secret
from trunkline_gateway.workers import Workers
from trunkline_service import Service
from trunkline_service.run import version
from trunkline_wire.ids import new_host_id

log = logging.getLogger(__name__)

SHUTDOWN_S = 3.0


class Running(msgspec.Struct, frozen=True):
    """A gateway that listens: `url` is its TCP address, `socket` its unix socket."""

    gateway: Gateway
    routes: Routes
    parts: "Parts"
    url: str
    socket: Path


async def run_app(service: Service[GatewaySettings]) -> None:
    """The gateway as a service."""
    async with serving(service.bus, service.settings) as running:
        metrics.GATEWAY_TOKEN_EXPIRY.labels("created").set_function(running.gateway.tokens.next_expiry)
        service.health.facts["clients"] = lambda: running.routes.clients
        service.health.facts["sessions"] = lambda: len(running.gateway.directory.states)
        service.health.add(
            "directory", lambda: None if running.gateway.directory.ready.is_set() else "still reads the log"
        )
        log.info("listening", extra={"url": running.url, "socket": str(running.socket)})
        service.ready()
        await _first(service.stopping.wait(), running.parts.failed())


@asynccontextmanager
async def serving(bus: Bus, settings: GatewaySettings) -> AsyncGenerator[Running]:
    """A gateway on `bus`, listening once the log is read, until the block ends. Tests use it as it is."""
    host = await asyncio.to_thread(host_id, settings.home)
    secret = await cursor_secret(bus)
    cursors = Cursors(bus, CursorCodec(secret))
    requests = Requests(bus, "gateway")
    directory, devices, workers, audit = Directory(bus), Devices(bus), Workers(bus), Audit(requests)
    tokens = Tokens(bus, devices)
    presence, terminals, extensions, boards = Presence(bus), Terminals(bus), Extensions(bus), Boards(bus)
    watched = (tokens.records, devices.records, workers.records, presence.records)
    bus.capacity.watch(bus.js_read)
    async with AsyncExitStack() as stack:
        parts = Parts([part.run() for part in (directory, audit, boards, terminals, extensions, *watched)])
        stack.push_async_callback(parts.stop)
        for ready in (directory.ready, boards.ready, *(records.ready for records in watched)):
            await _first(ready.wait(), parts.failed())
        await tokens.ensure_owner(settings.home / "token")
        await devices.forget_orphans()
        await tokens.forget_expired()
        await signin.forget_expired(bus)
        await links.forget_expired(bus)
        gateway = Gateway(
            bus=bus,
            settings=settings,
            version=version(),
            host=host,
            directory=directory,
            boards=boards,
            hub=Hub(bus, directory, cursors),
            overview=Overview(directory),
            cursors=cursors,
            tokens=tokens,
            devices=devices,
            presence=presence,
            workers=workers,
            extensions=extensions,
            audit=audit,
            requests=requests,
            terminals=terminals,
            tickets=Tickets(secret),
        )
        parts.add(api.serve(gateway))
        access = Access(settings, tokens, audit, bus.log_id)
        routes = Routes(gateway, access)
        url = await _listen(routes, settings, stack)
        yield Running(gateway, routes, parts, url, settings.socket_path)


async def _listen(routes: Routes, settings: GatewaySettings, stack: AsyncExitStack) -> str:
    # Undone in the opposite order: clients are told, the server stops, then its sockets go.
    tcp = tcp_socket(settings.bind, settings.port)
    stack.callback(tcp.close)
    unix = stack.enter_context(unix_socket(settings.socket_path))
    runner = web.AppRunner(routes.application(), access_log=None, handle_signals=False, shutdown_timeout=SHUTDOWN_S)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    stack.callback(routes.end_all)
    for listening in (tcp, unix):
        await web.SockSite(runner, listening).start()
    name, port = tcp.getsockname()[:2]
    url = f"http://{f'[{name}]' if ':' in name else name}:{port}"
    stack.enter_context(announced(settings.home, url, settings.socket_path))
    return url


class Parts:
    """The running parts of a gateway: none may end before the gateway does."""

    def __init__(self, parts: Iterable[Coroutine[Any, Any, None]]) -> None:
        self._tasks = [asyncio.create_task(part) for part in parts]

    def add(self, part: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.create_task(part))

    async def failed(self) -> None:
        """Returns never; raises what the first part to fail raised."""
        await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in self._tasks:
            if task.done():
                task.result()

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _first(*awaitables: Coroutine[Any, Any, Any]) -> None:
    """Wait for the first to end; raises what it raised."""
    tasks = [asyncio.create_task(each) for each in awaitables]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def host_id(home: Path) -> str:
    """This host's id, kept in `host.json`; made here if no other service was first."""
    path = home / "host.json"
    if not path.exists():
        beside = path.with_name(f".host.json.{os.getpid()}")
        beside.write_text(json.dumps({"id": new_host_id()}))
        # A link is all or nothing, and whoever is first wins.
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(beside)
        beside.unlink()
    return str(json.loads(path.read_text())["id"])

"""The composition root of the relay itself: `python -m trunkline_relay.server`."""

import asyncio
import logging
import resource
import ssl
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec
import nats.errors
from aiohttp import web

from trunkline_bus import metrics
from trunkline_relay.gate import Gate
from trunkline_relay.replicas import Replicas, replicated
from trunkline_relay.serve import MAX_CONNECTIONS, Elsewhere, Relay, refused
from trunkline_relay.server_settings import ServerSettings
from trunkline_relay.switch import Switch
from trunkline_service import Health, run_apart
from trunkline_service.run import ExitCode
from trunkline_service.web import HEADERS, AppFiles, Handler
from trunkline_wire import TrunklineError

log = logging.getLogger(__name__)

NAME: Final = "relay_server"
SHUTDOWN_S: Final = 5.0
_BUILT: Final = Path(__file__).parent.parent / "trunkline_gateway" / "static" / "app"
"""Beside us in the tree and in the wheel."""
_PAGE: Final = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Trunkline relay</title>
<p>This is a relay of Trunkline. Hosts and their devices meet here; what they say to each other is encrypted, and the relay can't read it.
<p>The app for browsers was not built here. `trunkline pair` on a host says how to connect.
"""


class Serving(msgspec.Struct, frozen=True):
    """A relay that listens at `url`."""

    url: str
    switch: Switch
    replicas: Replicas | None


async def run_app(settings: ServerSettings, health: Health, stopping: asyncio.Event) -> None:
    """The relay as a service."""
    _allow_files()
    try:
        async with serving(settings) as relay:
            metrics.RELAY_HOSTS.set_function(lambda: len(relay.switch.hosts))
            metrics.RELAY_VISITS.labels("here").set_function(lambda: relay.switch.visits)
            replicas = relay.replicas
            if replicas is not None:
                metrics.RELAY_VISITS.labels("elsewhere").set_function(lambda: len(replicas.guests))
                health.add("nats", lambda: replicas.trouble)
            log.info("listening", extra={"url": relay.url})
            health.set_ready()
            await stopping.wait()
            health.set_ready(False)
    except TrunklineError as error:
        log.error("failed", extra={"code": error.code, "reason": error.message})  # noqa: TRY400 - its words say all
        raise SystemExit(ExitCode.BAD_SETTINGS if error.code == "bad_settings" else ExitCode.NOT_STARTED) from error


@asynccontextmanager
async def serving(settings: ServerSettings) -> AsyncGenerator[Serving]:
    """A relay, listening until the block ends. Tests use it as it is.

    Raises TrunklineError `bad_settings`, `already_running`, `log_unavailable`.
    """
    tls = await asyncio.to_thread(_tls, settings.checked())
    gate = Gate(
        time.monotonic,
        hosts=settings.hosts,
        origins=settings.origins,
        tokens=settings.tokens,
        proxies=settings.proxies,
        rate=settings.rate,
        burst=settings.burst,
    )
    switch = Switch(time.monotonic)
    async with AsyncExitStack() as stack:
        replicas: Replicas | None = None
        if settings.nats_url:
            seed = str(settings.nats_seed) if settings.nats_seed else None
            try:
                replicas = await stack.enter_async_context(replicated(settings.nats_url, seed, switch, time.monotonic))
            except (nats.errors.Error, OSError) as error:
                raise TrunklineError("log_unavailable", f"NATS can't be reached: {error}") from error
        app = relay_app(
            switch,
            gate,
            elsewhere=replicas,
            url=settings.url,
            app=settings.app,
            max_connections=settings.max_connections,
        )
        # Connections are ended by the app's own shutdown; it then waits for their handlers.
        runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=SHUTDOWN_S)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        try:
            await web.TCPSite(runner, settings.bind, settings.port, ssl_context=tls, backlog=1024).start()
        except OSError as error:
            raise TrunklineError(
                "already_running", f"can't listen on {settings.bind}:{settings.port}: {error.strerror or error}"
            ) from error
        name, port = runner.addresses[0][:2]
        shown = f"[{name}]" if ":" in name else name
        yield Serving(f"{'https' if tls else 'http'}://{shown}:{port}", switch, replicas)


def relay_app(
    switch: Switch,
    gate: Gate,
    *,
    elsewhere: Elsewhere | None = None,
    url: str = "",
    app: Path | None = None,
    max_connections: int = MAX_CONNECTIONS,
) -> web.Application:
    """The relay's routes and the app's files. `url` is the relay's address for people, `app` the folder of a built app."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            gate.check(request)
            response = await handler(request)
        except TrunklineError as error:
            response = refused(error)
        if not response.prepared:
            for name, value in HEADERS.items():
                response.headers.setdefault(name, value)
        return response

    made = web.Application(middlewares=[guard])
    Relay(switch, gate, elsewhere=elsewhere, url=url, max_connections=max_connections).add(made)
    AppFiles(app or _BUILT, _no_app).add_to(made.router)
    return made


async def _no_app(_: web.Request) -> web.StreamResponse:
    return web.Response(text=_PAGE, content_type="text/html", charset="utf-8")


def _allow_files() -> None:
    """Each connection is an open file, of which a process may have but a thousand unless it asks."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _tls(settings: ServerSettings) -> ssl.SSLContext | None:
    if settings.certificate is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(settings.certificate, settings.key)
    except (OSError, ssl.SSLError) as error:
        raise TrunklineError("bad_settings", f"the certificate can't be used: {error}") from error
    return context


def main() -> None:
    run_apart(NAME, run_app, ServerSettings)


if __name__ == "__main__":
    main()

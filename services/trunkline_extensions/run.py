"""The process of an extension that ships with Trunkline: its configuration, readiness, signals, exit code."""

import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import metadata
from typing import Any, Final, TypeVar

import msgspec
from nats.micro import add_service
from prometheus_client import REGISTRY

from trunkline_extensions.client import Client
from trunkline_extensions.place import Place, read_place
from trunkline_extensions.sender import Cursor, Deliver, Sender, SenderConfig
from trunkline_service import Health, HealthServer, configure_logging
from trunkline_wire import TrunklineError

log = logging.getLogger(__name__)

C = TypeVar("C", bound=SenderConfig)

FAILED: Final = 1
BAD_SETTINGS: Final = 2

Opened = Callable[[C, Client], AbstractAsyncContextManager[Deliver]]


def run(name: str, config: type[C], opened: Opened[C]) -> None:
    """The whole of an extension's `__main__`. Exit codes: 0 after a signal, 1 failed, 2 for bad settings."""
    try:
        place = read_place()
        configure_logging(f"ext-{name}", place.log_level)
        asyncio.run(_until_signal(name, place, config, opened))
    except TrunklineError as error:
        sys.stderr.write(f"error: {error}\n")
        raise SystemExit(BAD_SETTINGS if error.code == "bad_settings" else FAILED) from error


async def _until_signal(name: str, place: Place, config: type[C], opened: Opened[C]) -> None:
    task = asyncio.ensure_future(serve(name, place, config, opened))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def serve(name: str, place: Place, config: type[C], opened: Opened[C]) -> None:
    """Run until cancelled. Raises TrunklineError `bad_settings`."""
    health = Health(f"ext-{name}", metadata.version("trunkline"))
    async with HealthServer(health, REGISTRY, port=place.http_port), Client(name, place) as client:
        answer = await client.insist("itself", "extension.config")
        wanted = read_config(name, config, answer["config"])
        health.add("nats", lambda: None if client.nats.is_connected else "disconnected")
        async with _listed(client, health), opened(wanted, client) as deliver:
            cursor = Cursor(client.files / f"{name}.cursor")
            sender = Sender(client, wanted, deliver, cursor=cursor, gateway=place.gateway)
            await sender.run(health.set_ready)


def read_config(name: str, config: type[C], raw: dict[str, Any]) -> C:
    """Raises TrunklineError `bad_settings`."""
    try:
        return msgspec.convert(raw, config)
    except msgspec.ValidationError as error:
        raise TrunklineError("bad_settings", f"[extensions.{name}] of trunkline.toml: {error}") from error


@asynccontextmanager
async def _listed(client: Client, health: Health) -> AsyncGenerator[None]:
    client.service = await add_service(client.nats, name=f"ext-{client.name}", version=health.version)
    try:
        yield
    finally:
        if client.nats.is_connected:
            await client.service.stop()

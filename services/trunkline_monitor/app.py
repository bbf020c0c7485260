"""The composition root: looks at every server and certificate again and again; `/metrics` has what was seen last."""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Any, Final

import aiohttp

from trunkline_bus import metrics
from trunkline_monitor.certificates import expiry
from trunkline_monitor.server import Server
from trunkline_monitor.settings import MonitorSettings
from trunkline_service import Health

log = logging.getLogger(__name__)

NAME: Final = "monitor"
ANSWER_S: Final = 5.0
CERTIFICATES_EVERY_S: Final = 300.0


async def run_app(settings: MonitorSettings, health: Health, stopping: asyncio.Event) -> None:
    """Watches until told to stop. A server that does not answer is a metric, no fault of the monitor's."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=ANSWER_S)) as http:
        watching = [
            *(_watch_server(http, url, settings.every_s) for url in settings.servers),
            *(_watch_certificate(name) for name in settings.certificates),
        ]
        health.set_ready()
        await _until(stopping, watching)


async def _until(stopping: asyncio.Event, work: Sequence[Coroutine[Any, Any, None]]) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one) for one in work]
        await stopping.wait()
        for task in tasks:
            task.cancel()


async def _watch_server(http: aiohttp.ClientSession, url: str, every: float) -> None:
    server = Server(url)
    while True:
        try:
            # All before anything is told: half a look would be a server that does not exist.
            varz = await _get(http, f"{url}/varz")
            jsz = await _get(http, f"{url}/jsz?consumers=true&config=true")
            healthy = (await _get(http, f"{url}/healthz")).get("status") == "ok"
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            log.warning("server_silent", extra={"url": url, "error": str(error) or type(error).__name__})
            server.silent()
        else:
            server.saw(varz, jsz, healthy=healthy)
        await asyncio.sleep(every)


async def _get(http: aiohttp.ClientSession, url: str) -> dict[str, Any]:
    # An unhealthy server says so with a status of 503 and a body.
    async with http.get(url) as answer:
        return await answer.json(content_type=None)


async def _watch_certificate(name: str) -> None:
    while True:
        try:
            metrics.CERTIFICATE_EXPIRY.labels(name).set(await expiry(name, ANSWER_S))
        except (OSError, TimeoutError, ValueError) as error:
            log.warning("no_certificate", extra={"endpoint": name, "error": str(error) or type(error).__name__})
        await asyncio.sleep(CERTIFICATES_EVERY_S)

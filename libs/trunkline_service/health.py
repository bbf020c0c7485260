"""Health: `/health` (the process lives), `/ready` (it can do its work) and `/metrics`, on loopback."""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Self

import msgspec
from aiohttp import web
from prometheus_client import CollectorRegistry, disable_created_metrics
from prometheus_client.exposition import choose_encoder

from trunkline_bus import metrics

log = logging.getLogger(__name__)

Check = Callable[[], str | None] | Callable[[], Awaitable[str | None]]
"""Says what is wrong, or None when all is well. An exception counts as its text."""

CHECK_TIMEOUT_S = 2.0

disable_created_metrics()  # a second series for each counter, which no question needs


class Health:
    """The named checks of one service, and whether it is ready. `facts` are shown on /health as they are."""

    def __init__(self, service: str, version: str) -> None:
        self.service = service
        self.version = version
        self.facts: dict[str, Callable[[], Any]] = {}
        self._checks: dict[str, Check] = {}
        self._ready = False
        metrics.SERVICE_INFO.labels(service, version).set(1)
        metrics.SERVICE_READY.labels(service).set_function(lambda: self._ready)

    def add(self, name: str, check: Check) -> None:
        """Register a check; a later one of the same name takes its place."""
        self._checks[name] = check

    def set_ready(self, ready: bool = True) -> None:
        """Say that the service does (or no longer does) its work."""
        self._ready = ready

    async def report(self) -> tuple[bool, dict[str, Any]]:
        """Whether the service is ready, and the report for people and probes."""
        names = list(self._checks)
        found = await asyncio.gather(*(self._run(name) for name in names))
        checks = {name: result or "ok" for name, result in zip(names, found, strict=True)}
        ready = self._ready and not any(found)
        body: dict[str, Any] = {
            "status": "ok" if ready else "starting" if not self._ready else "failing",
            "service": self.service,
            "version": self.version,
            "checks": checks,
        }
        for name, fact in self.facts.items():
            body[name] = fact()
        return ready, body

    async def _run(self, name: str) -> str | None:
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_S):
                result = self._checks[name]()
                return await result if inspect.isawaitable(result) else result
        except TimeoutError:
            return f"no answer in {CHECK_TIMEOUT_S:g} s"
        except Exception as error:  # noqa: BLE001 - a check that fails is a finding, not a fault of the server
            return str(error) or type(error).__name__


class HealthServer:
    """Serves `health` and the metrics of `registry` over HTTP. Use as an async context manager; `url` once open."""

    def __init__(self, health: Health, registry: CollectorRegistry, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self._health = health
        self._registry = registry
        self._host = host
        self._port = port
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get("/health", self._on_health)
        app.router.add_get("/ready", self._on_ready)
        app.router.add_get("/metrics", self._on_metrics)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self._port)
        try:
            await site.start()
        except OSError as error:
            if self._port == 0:
                raise
            # Observation must not keep a service from its work: another port is found in the log.
            log.warning("health_port_taken", extra={"port": self._port, "error": str(error)})
            site = web.TCPSite(self._runner, self._host, 0)
            await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _on_health(self, _: web.Request) -> web.Response:
        _ready, body = await self._health.report()
        return _json(200, body)

    async def _on_ready(self, _: web.Request) -> web.Response:
        ready, body = await self._health.report()
        return _json(200 if ready else 503, body)

    async def _on_metrics(self, request: web.Request) -> web.Response:
        # Exemplars exist in the OpenMetrics format alone, for those who ask for it.
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=encode(self._registry), headers={"Content-Type": content_type})


def _json(status: int, body: dict[str, Any]) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(body), content_type="application/json")

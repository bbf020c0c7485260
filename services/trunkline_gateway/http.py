"""HTTP: the routes. `POST /api/v1/<method>` is any method, `GET /api/v1/events` a subscription, `/ws` the WebSocket."""

import json
from collections.abc import Callable
from typing import Any, Final

import msgspec
from aiohttp import web

from trunkline_gateway.access import Access, peer_of
from trunkline_gateway.dispatch import call
from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.openapi import document
from trunkline_gateway.page import asset
from trunkline_gateway.sse import EventStream
from trunkline_gateway.ws import Connection
from trunkline_wire import TrunklineError, encode, replace_lone_surrogates

Client = Connection | EventStream

GOING_AWAY: Final = 1001
POLICY: Final = 1008


class Routes:
    """The handlers of one gateway, and its open connections."""

    def __init__(self, gateway: Gateway, access: Access) -> None:
        self._gateway = gateway
        self._access = access
        self._clients: set[Client] = set()
        gateway.tokens.on_revoked.append(self._on_revoked)

    @property
    def clients(self) -> int:
        return len(self._clients)

    def end_all(self) -> None:
        """Tell every client that the gateway goes away: they resume at the next one, by cursor."""
        for client in list(self._clients):
            client.end(GOING_AWAY, "stopping")

    def application(self) -> web.Application:
        app = web.Application(middlewares=[self._access.middleware], client_max_size=self._gateway.settings.max_frame)
        app.router.add_get("/ws", self._on_ws)
        app.router.add_get("/api/v1/events", self._on_events)
        app.router.add_get("/api/v1/openapi.json", self._on_openapi)
        app.router.add_post("/api/v1/{method}", self._on_method)
        app.router.add_get("/health", self._on_health)
        for path in ("/", "/app.js", "/app.css"):
            app.router.add_get(path, self._on_page)
        return app

    async def _on_ws(self, request: web.Request) -> web.StreamResponse:
        return await self._run(request, Connection)

    async def _on_events(self, request: web.Request) -> web.StreamResponse:
        return await self._run(request, EventStream)

    async def _run(
        self, request: web.Request, kind: Callable[[Gateway, Access, web.Request], Client]
    ) -> web.StreamResponse:
        client = kind(self._gateway, self._access, request)
        self._clients.add(client)
        try:
            return await client.run()
        finally:
            self._clients.discard(client)

    async def _on_method(self, request: web.Request) -> web.Response:
        principal = self._access.principal(request)
        if principal is None:
            raise TrunklineError("unauthorized", "send the header `Authorization: Bearer <token>`")
        raw = await request.read()
        if raw and request.content_type != "application/json":
            raise TrunklineError("bad_frame", "the body must be JSON: send Content-Type: application/json")
        params: Any = {}
        if raw:
            try:
                params = msgspec.json.decode(replace_lone_surrogates(raw))
            except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
                raise TrunklineError("bad_frame", f"the body is not JSON: {error}") from error
        caller = Caller(principal=principal, peer=peer_of(request))
        payload = await call(self._gateway, caller, request.match_info["method"], params)
        return web.Response(body=encode(payload), content_type="application/json")

    async def _on_health(self, _: web.Request) -> web.Response:
        ready = self._gateway.directory.ready.is_set()
        return web.json_response(
            {
                "status": "ok" if ready else "starting",
                "version": self._gateway.version,
                "sessions": len(self._gateway.directory.states),
                "clients": self.clients,
                "extensions": [],
            },
            status=200 if ready else 503,
        )

    async def _on_openapi(self, _: web.Request) -> web.Response:
        return web.Response(text=json.dumps(document(self._gateway.version)), content_type="application/json")

    async def _on_page(self, request: web.Request) -> web.Response:
        content, media_type = asset(request.path)
        return web.Response(body=content, content_type=media_type, charset="utf-8")

    def _on_revoked(self, token: str) -> None:
        for client in list(self._clients):
            if client.token == token:
                client.end(POLICY, "revoked")

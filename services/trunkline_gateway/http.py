"""HTTP: the routes. `POST /api/v1/<method>` is any method, `GET /api/v1/events` a subscription, `/ws` the WebSocket."""

import json
import time
from collections.abc import Callable
from typing import Any, Final, Protocol

import msgspec
from aiohttp import web

from trunkline_gateway import asyncapi, signin
from trunkline_gateway.access import Access, peer_of
from trunkline_gateway.blobs import BlobRoute
from trunkline_gateway.calls import all_methods
from trunkline_gateway.deciding import Deciding
from trunkline_gateway.dispatch import call
from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.openapi import document
from trunkline_gateway.page import Pages
from trunkline_gateway.pages import ExtensionPages
from trunkline_gateway.registry import Params, read_params
from trunkline_gateway.roles import Principal
from trunkline_gateway.sse import EventStream
from trunkline_gateway.terminal_ws import TerminalConnection
from trunkline_gateway.ws import Connection
from trunkline_wire import TrunklineError, encode, replace_lone_surrogates
from trunkline_wire.secret import Secret


class Client(Protocol):
    """A connection that lasts."""

    @property
    def token(self) -> str | None: ...
    def end(self, code: int, reason: str, /) -> None: ...
    async def run(self) -> web.StreamResponse: ...


GOING_AWAY: Final = 1001
POLICY: Final = 1008


class SignIn(Params, frozen=True, kw_only=True):
    """`key` registers the browser as a device: base64 of 32 random bytes that it keeps."""

    code: Secret
    device: str | None = None
    key: Secret | None = None


class Routes:
    """The handlers of one gateway, and its open connections."""

    def __init__(self, gateway: Gateway, access: Access) -> None:
        self._gateway = gateway
        self._access = access
        self._clients: set[Client] = set()
        gateway.tokens.records.on_gone.append(self._on_revoked)
        gateway.devices.records.on_gone.append(self._on_device_gone)

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
        app.router.add_get("/ws/terminal/{session}", self._on_terminal)
        if self._gateway.settings.acp:
            app.router.add_get("/acp", self._on_acp)
        app.router.add_get("/api/v1/events", self._on_events)
        app.router.add_get("/api/v1/blobs/{sha256}", BlobRoute(self._gateway, self._access).get)
        app.router.add_get("/api/v1/openapi.json", self._on_openapi)
        app.router.add_get("/api/v1/asyncapi.json", self._on_asyncapi)
        app.router.add_post("/api/v1/{method}", self._on_method)
        app.router.add_post("/sign-in", self._on_sign_in)
        app.router.add_post("/sign-out", self._on_sign_out)
        app.router.add_get("/health", self._on_health)
        Deciding(self._gateway, self._body).add_to(app.router)
        ExtensionPages(self._gateway, self._access).add_to(app.router)
        Pages(self._gateway.settings.app).add_to(app.router)
        return app

    async def _on_ws(self, request: web.Request) -> web.StreamResponse:
        return await self._run(request, Connection)

    async def _on_terminal(self, request: web.Request) -> web.StreamResponse:
        return await self._run(request, TerminalConnection)

    async def _on_acp(self, request: web.Request) -> web.StreamResponse:
        from trunkline_gateway.acp_ws import AcpConnection

        return await self._run(request, AcpConnection)

    async def _on_events(self, request: web.Request) -> web.StreamResponse:
        return await self._run(request, EventStream)

    async def _run(
        self, request: web.Request, kind: Callable[[Gateway, Access, web.Request, Principal | None], Client]
    ) -> web.StreamResponse:
        client = kind(self._gateway, self._access, request, await self._access.principal(request))
        self._clients.add(client)
        try:
            return await client.run()
        finally:
            self._clients.discard(client)

    async def _on_method(self, request: web.Request) -> web.Response:
        principal = await self._access.require(request)
        params = await self._body(request, principal)
        caller = Caller(principal=principal, peer=peer_of(request))
        payload = await call(self._gateway, caller, request.match_info["method"], params)
        return web.Response(body=encode(payload), content_type="application/json")

    async def _body(self, request: web.Request, principal: Principal | None) -> Any:
        raw = await request.read()
        self._access.count(request, principal, len(raw))
        if raw and request.content_type != "application/json":
            raise TrunklineError("bad_frame", "the body must be JSON: send Content-Type: application/json")
        if not raw:
            return {}
        try:
            return msgspec.json.decode(replace_lone_surrogates(raw))
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise TrunklineError("bad_frame", f"the body is not JSON: {error}") from error

    async def _on_sign_in(self, request: web.Request) -> web.Response:
        """A code of a sign-in link becomes a cookie that scripts can't read."""
        if request.headers.get("Origin") is None:
            raise TrunklineError("bad_origin", "signing in is for browsers: programs send a token")
        params = read_params(SignIn, await self._body(request, None))
        code = await signin.redeem(self._gateway.bus, params.code)
        if not self._gateway.devices.stands(code.parent):
            raise TrunklineError("unauthorized", "the link was made on a device that was revoked: ask for another one")
        device = None
        if params.key is not None:
            device = await self._gateway.devices.register(
                code.actor, params.device or "browser", params.key, parent=code.parent
            )
        token, record = await self._gateway.tokens.create(
            code.actor,
            code.role,
            scope=code.scope,
            expires=time.time() + code.lasts,
            device=device.id if device is not None else None,
            parent=code.parent if device is None else None,
            via="sign-in",
        )
        self._gateway.audit.note("sign_in", record.actor, via="link", token=record.id, device=record.device or "")
        answer = {"actor": record.actor, "role": record.role, "device": record.device, "expires": record.expires}
        response = web.Response(body=encode(answer), content_type="application/json")
        response.set_cookie(
            self._access.cookie,
            token,
            max_age=int(code.lasts),
            httponly=True,
            samesite="Strict",
            secure=request.headers["Origin"].startswith("https:"),
        )
        return response

    async def _on_sign_out(self, request: web.Request) -> web.Response:
        principal = await self._access.require(request)
        if principal.token is not None and self._access.cookie in request.cookies:
            await self._gateway.tokens.revoke(principal.token)
        response = web.Response(body=b"{}", content_type="application/json")
        response.del_cookie(self._access.cookie)
        return response

    async def _on_health(self, _: web.Request) -> web.Response:
        ready = self._gateway.directory.ready.is_set()
        return web.json_response(
            {
                "status": "ok" if ready else "starting",
                "version": self._gateway.version,
                "sessions": len(self._gateway.directory.states),
                "clients": self.clients,
                "extensions": sorted(self._gateway.extensions.known),
            },
            status=200 if ready else 503,
        )

    async def _on_openapi(self, _: web.Request) -> web.Response:
        return web.Response(
            text=json.dumps(document(self._gateway.version, all_methods(self._gateway))),
            content_type="application/json",
        )

    async def _on_asyncapi(self, _: web.Request) -> web.Response:
        found = asyncapi.document(self._gateway.version)
        return web.Response(body=encode(found), content_type="application/json")

    def _on_revoked(self, token: str) -> None:
        for client in list(self._clients):
            if client.token == token:
                client.end(POLICY, "revoked")

    def _on_device_gone(self, _: str) -> None:
        """Whoever came by its rights goes with it, whether what they came with is still written down or not."""
        for client in list(self._clients):
            if client.token is not None and not self._gateway.tokens.stands(client.token):
                client.end(POLICY, "revoked")

"""Who may come in: Host and Origin, tokens, cookies, and the unix socket's peer. Every refusal is counted and recorded."""

import os
import pwd
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from aiohttp import web

from trunkline_bus import metrics
from trunkline_gateway import peers
from trunkline_gateway.audit import Audit
from trunkline_gateway.limits import Limits
from trunkline_gateway.peers import Peer
from trunkline_gateway.problems import problem
from trunkline_gateway.roles import Principal
from trunkline_gateway.settings import GatewaySettings
from trunkline_gateway.tokens import Tokens, digest_of
from trunkline_service.web import FOR_DEVICE, HEADERS, LOOPBACK, host_of, same_origin
from trunkline_wire import TrunklineError

if TYPE_CHECKING:
    from trunkline_gateway.oidc import Oidc

SECRET_KEYS: Final = frozenset({"token", "access_token", "authorization", "auth"})
SANDBOX: Final = "sandbox"
"""The name of the route whose pages have no origin, and load what belongs to them from it."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Access:
    """The checks of one gateway, used by the middleware and by `hello`."""

    def __init__(self, settings: GatewaySettings, tokens: Tokens, audit: Audit, log_id: str) -> None:
        self._hosts = LOOPBACK | set(settings.hosts)
        self._origins = set(settings.origins)
        self._tokens = tokens
        self._audit = audit
        self._oidc = _oidc(settings)
        self.limits = Limits(settings.rate_messages, settings.rate_bytes, settings.rate_burst)
        # Browsers don't tell ports apart in cookies: two instances of one machine need two names.
        self.cookie: Final = f"trunkline_{digest_of(log_id)[:8]}"

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuses what must not come in, and puts security headers on what goes out."""
        try:
            self._check(request)
            response = await handler(request)
        except TrunklineError as error:
            if error.status in (401, 403):
                self.note_refusal(error, request)
            response = problem(error)
        except web.HTTPRequestEntityTooLarge:
            response = problem(TrunklineError("too_large", "the body is over the limit"))
        except web.HTTPException as error:
            if error.status < 400:
                raise
            code = "unknown_method" if error.status in (404, 405) else "bad_params"
            response = problem(TrunklineError(code, f"{request.method} {request.path}: {error.reason}"))
        if not response.prepared:
            for name, value in HEADERS.items():
                response.headers.setdefault(name, value)
        return response

    async def principal(self, request: web.Request) -> Principal | None:
        """Who sent the request; None where a TCP client has shown nothing yet. Raises `unauthorized`."""
        peer = peer_of(request)
        if peer.uid is not None:
            if peer.uid not in (os.geteuid(), 0):
                raise TrunklineError("unauthorized", "the socket is its owner's alone")
            return Principal(actor=_user_name(peer.uid), role="owner", via="socket")
        header = request.headers.get("Authorization")
        if header is not None:
            scheme, _, token = header.partition(" ")
            if scheme.lower() != "bearer" or not token.strip():
                raise TrunklineError("unauthorized", "the Authorization header must be `Bearer <token>`")
            return await self.sign_in(token.strip(), request)
        cookie = request.cookies.get(self.cookie)
        if cookie is None:
            return None
        if request.headers.get("Origin") is None and (request.method != "GET" or "Upgrade" in request.headers):
            raise TrunklineError(
                "bad_origin", "a cookie counts only with the Origin that browsers send: programs send a token"
            )
        try:
            return self._tokens.check(cookie).principal()
        except TrunklineError:
            return None  # as if it had none: its page then asks for another sign-in

    async def sign_in(self, token: str, request: web.Request) -> Principal:
        """Who a token stands for; in a paired device's channel its own alone does. Raises TrunklineError `unauthorized`, `forbidden`."""
        principal = await self._principal_of(token)
        if request.headers.get(FOR_DEVICE, principal.device) != principal.device:
            raise TrunklineError("unauthorized", "a paired device comes with the token that it was paired with")
        return principal

    async def _principal_of(self, token: str) -> Principal:
        if self._oidc is not None and self._oidc.looks_like(token):
            return await self._oidc.principal(token)
        record = self._tokens.check(token)
        self._audit.token_used(record.id, record.actor)
        return record.principal()

    async def require(self, request: web.Request) -> Principal:
        """Who sent the request. Raises TrunklineError `unauthorized` for nobody."""
        principal = await self.principal(request)
        if principal is None:
            raise TrunklineError("unauthorized", "send the header `Authorization: Bearer <token>`, or sign in")
        return principal

    def count(self, request: web.Request, principal: Principal | None, size: int) -> None:
        """Count a request against the limits of who sends it. Raises TrunklineError `rate_limited`.

        Whoever comes over the unix socket is not limited.
        """
        if principal is not None and principal.via == "socket":
            return
        client = str(request.remote) if principal is None else principal.token or principal.actor
        self.limits.take(client, size, time.monotonic())

    def note_refusal(self, error: TrunklineError, request: web.Request) -> None:
        """Count and record a refused connection or sign-in; never what it carried."""
        metrics.GATEWAY_REFUSED.labels(error.code).inc()
        self._audit.refusal(
            "unknown",
            code=error.code,
            path=_shown(request.path),
            peer=str(request.remote or "socket"),
            origin=request.headers.get("Origin", "")[:128],
            host=request.headers.get("Host", "")[:128],
        )

    def _check(self, request: web.Request) -> None:
        if SECRET_KEYS & {key.lower() for key in request.query}:
            raise TrunklineError(
                "unauthorized",
                "a token in a URL ends up in histories and logs: revoke it, and send the next one in the header "
                "`Authorization: Bearer` or in `hello`",
            )
        if peer_of(request).uid is not None:
            return
        host = request.headers.get("Host", "")
        if host_of(host) not in self._hosts:
            raise TrunklineError(
                "bad_origin", f"the Host {host[:128]!r} is not ours: add it to `hosts` if it should be"
            )
        origin = request.headers.get("Origin")
        if origin == "null" and request.match_info.route.name == SANDBOX:
            return  # no credential of a browser's counts there
        if origin is not None and origin not in self._origins and not same_origin(origin, host):
            raise TrunklineError(
                "bad_origin", f"pages of {origin[:128]!r} may not connect: add it to `origins` if they should"
            )


def _oidc(settings: GatewaySettings) -> "Oidc | None":
    provider = settings.provider
    if provider is None:
        return None
    from trunkline_gateway.oidc import Oidc

    return Oidc(provider)


def peer_of(request: web.Request) -> Peer:
    """The other end of a request's connection; one whose connection is gone already counts as not local."""
    transport = request.transport
    own = transport.get_extra_info("sockname") if transport is not None else None
    address = transport.get_extra_info("peername") if transport is not None else None
    if transport is not None and (isinstance(own, str) or own is None):
        return peers.of_unix(transport.get_extra_info("socket"))
    if not isinstance(address, tuple) or not isinstance(own, tuple):
        return Peer(local=False)
    return peers.of_tcp(address, own)


def _shown(path: str) -> str:
    """A path without the ticket that pages of extensions have in theirs."""
    return "/".join(path.split("/")[:3]) if path.startswith("/ext/") else path[:128]


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid-{uid}"

"""The pages of extensions: `/ext/<name>` is ours and frames them, `/ext/<name>/<ticket>/<path>` is what the extension gives.

What an extension gives is shown in a sandbox: it has no origin, so that it can neither read nor call anything of the gateway's,
gets no cookie, and no cookie is looked at to give it; it may load from its own path, and nowhere else. Each page is a
request to its endpoint, with who looks in the headers, as for a method: `{path, offset}`. The answer is `{status, type, body,
size}`: a media type, base64 of the bytes from `offset` on, and how many there are in all (without it: these).
"""

import base64
import binascii
import re
import time
from typing import Any, Final

import msgspec
from aiohttp import web

from trunkline_gateway.access import SANDBOX, Access
from trunkline_gateway.calls import headers_of
from trunkline_gateway.extensions import PagesOffer
from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.page import small_page
from trunkline_gateway.peers import Peer
from trunkline_gateway.problems import problem
from trunkline_service.web import HEADERS as USUAL
from trunkline_wire import TrunklineError
from trunkline_wire.ids import is_extension

PAGE_S: Final = 10.0
"""Seconds that an extension may take for all of a page."""
MAX_PAGE: Final = 4 * 1024 * 1024
MAX_PARTS: Final = 64
MAX_PATH: Final = 512

_TYPE: Final = re.compile(r"[a-z]+/[a-z0-9][a-z0-9.+-]*(; ?charset=[A-Za-z0-9-]+)?", re.ASCII)
_SEGMENT: Final = re.compile(r"[^\x00-\x1f\x7f/\\\\]+")

HEADERS: Final = {
    "Content-Security-Policy": (
        "sandbox allow-scripts allow-forms; default-src 'none'; script-src 'self' 'unsafe-inline'; "
        "style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    ),
    "X-Frame-Options": "SAMEORIGIN",
    # A page without an origin loads what belongs to it from elsewhere, as browsers see it; the ticket says that it may.
    "Cross-Origin-Resource-Policy": "cross-origin",
}

FRAME_POLICY: Final = f"{USUAL['Content-Security-Policy']}; frame-src 'self'"
"""Of our page around it: a page in the frame can't lead it elsewhere."""


class Given(msgspec.Struct, frozen=True):
    """What an extension answers."""

    status: int = 200
    type: str = "text/html; charset=utf-8"
    body: str = ""
    size: int | None = None


class ExtensionPages:
    """The routes of extensions' pages."""

    def __init__(self, gateway: Gateway, access: Access) -> None:
        self._gateway = gateway
        self._access = access

    def add_to(self, router: web.UrlDispatcher) -> None:
        router.add_get("/ext/{name}", self._on_frame)
        router.add_get("/ext/{name}/{ticket}/{path:.*}", self._on_page, name=SANDBOX)

    async def _on_frame(self, request: web.Request) -> web.Response:
        if not is_extension(request.match_info["name"]):
            raise TrunklineError("bad_id", "an extension's name is lower-case letters, digits and hyphens")
        response = small_page("/ext")
        response.headers["Content-Security-Policy"] = FRAME_POLICY
        return response

    async def _on_page(self, request: web.Request) -> web.Response:
        try:
            response = await self._page(request)
        except TrunklineError as error:
            if error.status in (401, 403):
                self._access.note_refusal(error, request)
            response = problem(error)
        response.headers.update(HEADERS)
        return response

    async def _page(self, request: web.Request) -> web.Response:
        name, path = request.match_info["name"], check_path(request.match_info["path"])
        ticket = self._gateway.tickets.read(request.match_info["ticket"], name, time.time())
        if ticket.token is not None and not self._gateway.tokens.stands(ticket.token):
            raise TrunklineError("unauthorized", "the token was revoked")
        principal = ticket.principal
        self._access.count(request, principal, 0)
        offered = await self._gateway.extensions.pages(name)
        principal.require(offered.role, f"the pages of {name}")
        headers = headers_of(Caller(principal=principal, peer=Peer(local=False)), f"ext.{name}.page")
        status, media_type, body = await self._fetch(name, offered, path, headers)
        return web.Response(status=status, body=body, headers={"Content-Type": media_type})

    async def _fetch(
        self, name: str, offered: PagesOffer, path: str, headers: dict[str, str]
    ) -> tuple[int, str, bytes]:
        """Status, media type and bytes. Raises TrunklineError `extension_failed`, `too_large`, `timeout`, `unknown_extension`."""
        until, body = time.monotonic() + PAGE_S, b""
        for _ in range(MAX_PARTS):
            left = until - time.monotonic()
            if left <= 0:
                break
            params = {"path": path, "offset": len(body)}
            raw = await self._gateway.extensions.request(name, offered.subject, params, headers, left)
            given, part = read_given(name, raw)
            body += part
            size = len(body) if given.size is None else given.size
            if max(size, len(body)) > MAX_PAGE:
                raise TrunklineError("too_large", f"a page has {MAX_PAGE} bytes at most", extension=name)
            if len(body) >= size:
                return given.status, given.type, body[:size]
            if not part:
                raise _failed(name, f"it gave {len(body)} of {size} bytes, and then none")
        raise TrunklineError(
            "timeout", f"the extension {name!r} did not give the page within {PAGE_S:g} s", extension=name
        )


def check_path(path: str) -> str:
    """A path below the extension's own, without a way out. Raises TrunklineError `bad_params`."""
    segments = path.split("/")
    clean = all(_SEGMENT.fullmatch(each) and each not in (".", "..") for each in segments[:-1])
    last = segments[-1]
    if len(path) > MAX_PATH or not clean or (last and (not _SEGMENT.fullmatch(last) or last in (".", ".."))):
        raise TrunklineError("bad_params", "the path of a page is names with single slashes between", field="path")
    return path


def read_given(name: str, raw: Any) -> tuple[Given, bytes]:
    """An extension's answer, and its bytes. Raises TrunklineError `extension_failed`."""
    try:
        given = msgspec.convert(raw, Given)
        part = base64.b64decode(given.body, validate=True)
    except (msgspec.ValidationError, binascii.Error, ValueError) as error:
        raise _failed(name, f"it gave no page: {error}") from error
    if not (given.status == 200 or 400 <= given.status < 600):
        raise _failed(name, f"a page has the status 200, or one of an error, and not {given.status}")
    if _TYPE.fullmatch(given.type) is None:
        raise _failed(name, f"{given.type[:64]!r} is no media type")
    return given, part


def _failed(name: str, why: str) -> TrunklineError:
    return TrunklineError("extension_failed", f"the extension {name!r}: {why}", extension=name)

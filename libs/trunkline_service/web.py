"""What every program of ours that browsers reach does alike: which Host and Origin are its own, the headers of its pages, and the built app.

The app is one page for all of its paths, and files whose names change with their content. It is looked for at each request, so
that a build shows without a restart. Everything of it is public; what it shows comes over the connection of whoever signed in.
"""

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web

FOR_DEVICE: Final = "Trunkline-Device"
"""The header by which the host's side of a relay tells the gateway whose channel a connection is: no other token counts in it."""
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Content-Security-Policy": (
        # a terminal draws its colours with style attributes; no text of an agent ever becomes markup with one
        "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; connect-src 'self'; "
        "img-src 'self' data:; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
}
_ASSET_POLICY: Final = HEADERS["Content-Security-Policy"].replace(
    "script-src 'self'", "script-src 'self' 'wasm-unsafe-eval'"
)
"""A worker keeps to the policy of its own file: libsodium is WebAssembly there, and nowhere else."""

APP: Final = (
    "/",
    "/sign-in",
    "/asks",
    "/new",
    "/session/{id}",
    "/terminal/{id}",
    "/workspace/{id}",
    "/team/{id:.+}",
    "/overview",
    "/pair",
)
_BESIDE: Final = (
    "/sw.js",
    "/app.json",
    "/app.webmanifest",
    "/icon.svg",
    "/icon-192.png",
    "/icon-512.png",
    "/icon-maskable-512.png",
    "/apple-touch-icon.png",
)
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
}
"""Not what this machine takes an ending for: browsers run no module of another type."""
_NAME: Final = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)+")
FOREVER: Final = "public, max-age=31536000, immutable"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class AppFiles:
    """The app in `folder`; `without` answers where none was built."""

    def __init__(self, folder: Path, without: Handler) -> None:
        self._folder = folder
        self._without = without

    def add_to(self, router: web.UrlDispatcher) -> None:
        for path in APP:
            router.add_get(path, self._on_app)
        for path in _BESIDE:
            router.add_get(path, self._on_beside)
        router.add_get("/assets/{name}", self._on_asset)

    async def _on_app(self, request: web.Request) -> web.StreamResponse:
        page = self._folder / "index.html"
        return _file(page) if page.is_file() else await self._without(request)

    async def _on_beside(self, request: web.Request) -> web.StreamResponse:
        return _file(self._folder / request.path[1:])

    async def _on_asset(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        if _NAME.fullmatch(name) is None:
            raise web.HTTPNotFound
        response = _file(self._folder / "assets" / name)
        response.headers["Cache-Control"] = FOREVER
        response.headers["Content-Security-Policy"] = _ASSET_POLICY
        return response


def host_of(header: str) -> str:
    """The name of a Host header, without port and brackets."""
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


def same_origin(origin: str, host: str) -> bool:
    """Whether a page of `origin` came from the server that the Host header names."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()


def _file(path: Path) -> web.FileResponse:
    """A file, compressed if that is beside it and the browser takes it. Raises HTTPNotFound where there is none."""
    if path.suffix not in _TYPES or not path.is_file():
        raise web.HTTPNotFound
    return web.FileResponse(path, headers={"Content-Type": _TYPES[path.suffix]})

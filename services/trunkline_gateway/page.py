"""The pages for browsers: the app that `just web` builds (`services/trunkline_web`), and small ones where there is none.

The app is one page for all of its paths, and files whose names change with their content. It is looked for at each request, so
that a build shows without a restart. Everything of it is public; what it shows comes over the connection of whoever signed in.
"""

import re
from pathlib import Path
from typing import Final

from aiohttp import web

_SMALL: Final = {
    "/": ("index.html", "text/html"),
    "/a": ("ask.html", "text/html"),
    "/ext": ("ext.html", "text/html"),
    "/ext.js": ("ext.js", "text/javascript"),
    "/ask.js": ("ask.js", "text/javascript"),
    "/signing.js": ("signing.js", "text/javascript"),
    "/app.js": ("app.js", "text/javascript"),
    "/app.css": ("app.css", "text/css"),
}
_APP: Final = (
    "/",
    "/sign-in",
    "/asks",
    "/new",
    "/session/{id}",
    "/terminal/{id}",
    "/workspace/{id}",
    "/team/{id:.+}",
    "/overview",
)
_BESIDE: Final = (
    "/sw.js",
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
    ".webmanifest": "application/manifest+json",
}
"""Not what this machine takes an ending for: browsers run no module of another type."""
_NAME: Final = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)+")
FOREVER: Final = "public, max-age=31536000, immutable"
_STATIC: Final = Path(__file__).parent / "static"


class Pages:
    """`folder` holds a built app; without it the one in the package counts."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or _STATIC / "app"

    def add_to(self, router: web.UrlDispatcher) -> None:
        for path in _APP:
            router.add_get(path, self._on_app)
        for path in _SMALL.keys() - {"/"}:
            router.add_get(path, self._on_small)
        for path in _BESIDE:
            router.add_get(path, self._on_beside)
        router.add_get("/assets/{name}", self._on_asset)

    async def _on_app(self, _: web.Request) -> web.StreamResponse:
        page = self._folder / "index.html"
        return _file(page) if page.is_file() else small_page("/")

    async def _on_small(self, request: web.Request) -> web.StreamResponse:
        return small_page(request.path)

    async def _on_beside(self, request: web.Request) -> web.StreamResponse:
        return _file(self._folder / request.path[1:])

    async def _on_asset(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        if _NAME.fullmatch(name) is None:
            raise web.HTTPNotFound
        response = _file(self._folder / "assets" / name)
        response.headers["Cache-Control"] = FOREVER
        return response


def small_page(path: str) -> web.Response:
    """A page that needs no build."""
    name, media_type = _SMALL[path]
    return web.Response(body=(_STATIC / name).read_bytes(), content_type=media_type, charset="utf-8")


def _file(path: Path) -> web.FileResponse:
    """A file, compressed if that is beside it and the browser takes it. Raises HTTPNotFound where there is none."""
    if path.suffix not in _TYPES or not path.is_file():
        raise web.HTTPNotFound
    return web.FileResponse(path, headers={"Content-Type": _TYPES[path.suffix]})

"""The pages for browsers: the app that `just web` builds (`services/trunkline_web`), and small ones where there is none."""

from pathlib import Path
from typing import Final

from aiohttp import web

from trunkline_service.web import AppFiles

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
_STATIC: Final = Path(__file__).parent / "static"


class Pages:
    """`folder` holds a built app; without it the one in the package counts."""

    def __init__(self, folder: Path | None = None) -> None:
        self._app = AppFiles(folder or _STATIC / "app", self._on_first)

    def add_to(self, router: web.UrlDispatcher) -> None:
        self._app.add_to(router)
        for path in _SMALL.keys() - {"/"}:
            router.add_get(path, self._on_small)

    async def _on_first(self, _: web.Request) -> web.StreamResponse:
        return small_page("/")

    async def _on_small(self, request: web.Request) -> web.StreamResponse:
        return small_page(request.path)


def small_page(path: str) -> web.Response:
    """A page that needs no build."""
    name, media_type = _SMALL[path]
    return web.Response(body=(_STATIC / name).read_bytes(), content_type=media_type, charset="utf-8")

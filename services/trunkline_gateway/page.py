"""The minimal page: the static files of the package."""

from importlib import resources
from typing import Final

_ASSETS: Final = {
    "/": ("index.html", "text/html"),
    "/sign-in": ("index.html", "text/html"),
    "/a": ("ask.html", "text/html"),
    "/ext": ("ext.html", "text/html"),
    "/ext.js": ("ext.js", "text/javascript"),
    "/ask.js": ("ask.js", "text/javascript"),
    "/signing.js": ("signing.js", "text/javascript"),
    "/app.js": ("app.js", "text/javascript"),
    "/app.css": ("app.css", "text/css"),
}
PATHS: Final = tuple(_ASSETS)


def asset(path: str) -> tuple[bytes, str]:
    """The content and media type of a path of the page."""
    name, media_type = _ASSETS[path]
    return resources.files("trunkline_gateway").joinpath("static", name).read_bytes(), media_type

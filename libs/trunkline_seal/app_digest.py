"""What a host vouches for: one digest of all files of the browser's app."""

import hashlib
from collections.abc import Mapping

import msgspec

from trunkline_wire import TrunklineError

MANIFEST = "app.json"
"""The build writes it beside the app's files: `{"files": {path: SHA-256 in hex}}`."""


class _Manifest(msgspec.Struct, frozen=True):
    files: dict[str, str]


def app_digest(files: Mapping[str, str]) -> bytes:
    """SHA-256 over the lines `<path> <SHA-256 in hex>`, sorted by path, each with a line feed at its end."""
    lines = "".join(f"{path} {files[path]}\n" for path in sorted(files))
    return hashlib.sha256(lines.encode()).digest()


def manifest_digest(manifest: bytes) -> bytes:
    """Of the app whose `app.json` this is. Raises TrunklineError `bad_params`."""
    try:
        return app_digest(msgspec.json.decode(manifest, type=_Manifest).files)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise TrunklineError("bad_params", f"this is no {MANIFEST} of a build: {error}") from error

"""Whether a session's files can be looked at from here: only on its own host symbolic links can be followed."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import msgspec


class _Host(msgspec.Struct):
    id: str


class OwnHost:
    """This host, by the id that its services keep in `host.json` of the home directory."""

    def __init__(self, home: Path) -> None:
        self._path = home / "host.json"
        self._id: str | None = None

    def looker(self, host: str | None) -> Callable[[str], str] | None:
        """How to follow the links of a path on `host`; None where that is another one."""
        if self._id is None:
            with contextlib.suppress(OSError, msgspec.MsgspecError):
                self._id = msgspec.json.decode(self._path.read_bytes(), type=_Host).id
        return os.path.realpath if host is not None and host == self._id else None

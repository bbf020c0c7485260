"""`fs/*`: reads and writes text files for the agent, within the session's directory.

The agent runs as the same user and could open them itself; the check keeps it to what the session was given.
"""

import asyncio
import os
import stat
from pathlib import Path
from typing import Any, Final

from trunkline_adapters.acp.native import NOT_FOUND
from trunkline_agentkit.fields import Obj, as_obj, text, whole
from trunkline_agentkit.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS
from trunkline_agentkit.peer import RequestRefusedError

LARGEST: Final = 16 * 1024 * 1024
"""Bytes of the largest file that is read."""


class Files:
    """`missing_is_empty`: reading a missing file gives nothing instead of an error."""

    def __init__(self, directory: str, *, missing_is_empty: bool = False) -> None:
        self._directory = directory
        self._missing_is_empty = missing_is_empty

    async def read(self, params: Any) -> Obj:
        given = as_obj(params)
        return await asyncio.to_thread(self._read, inside(self._directory, text(given, "path")), given)

    async def write(self, params: Any) -> Obj:
        given = as_obj(params)
        content = given.get("content")
        if not isinstance(content, str):
            raise RequestRefusedError(INVALID_PARAMS, "`content` must be a text")
        await asyncio.to_thread(self._write, inside(self._directory, text(given, "path")), content)
        return {}

    def _read(self, path: Path, given: Obj) -> Obj:
        try:
            # A pipe or a device that nobody feeds must not hold us.
            with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:  # noqa: PTH123
                found = os.fstat(file.fileno())
                if not stat.S_ISREG(found.st_mode):
                    raise RequestRefusedError(INVALID_PARAMS, f"{str(path)!r} is no file")
                if found.st_size > LARGEST:
                    raise RequestRefusedError(INVALID_PARAMS, f"{str(path)!r} is larger than {LARGEST} bytes")
                content = file.read(LARGEST).decode(errors="replace")
        except FileNotFoundError as error:
            if self._missing_is_empty:
                return {"content": ""}
            raise RequestRefusedError(NOT_FOUND, "Resource not found", {"uri": str(path)}) from error
        except OSError as error:
            raise RequestRefusedError(INTERNAL_ERROR, f"{str(path)!r}: {error.strerror}") from error
        line, limit = whole(given, "line"), whole(given, "limit")
        if line is not None or limit is not None:
            lines = content.splitlines(keepends=True)
            first = max(0, (line or 1) - 1)
            content = "".join(lines[first:] if limit is None else lines[first : first + max(0, limit)])
        return {"content": content}

    def _write(self, path: Path, content: str) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode(errors="replace"))
        except OSError as error:
            raise RequestRefusedError(INTERNAL_ERROR, f"{str(path)!r}: {error.strerror}") from error


def inside(directory: str, path: str | None) -> Path:
    """The real path of `path`, which links may lead elsewhere. Raises RequestRefusedError for one outside of `directory`."""
    if path is None:
        raise RequestRefusedError(INVALID_PARAMS, "`path` must be a text")
    if "\0" in path:
        raise RequestRefusedError(INVALID_PARAMS, "`path` must not hold a zero byte")
    root = Path(os.path.realpath(directory))
    real = Path(os.path.realpath(root / path))
    if real != root and root not in real.parents:
        raise RequestRefusedError(INVALID_PARAMS, f"{path!r} is outside of the session's directory")
    return real

"""A session as a file: every event as it is stored, one JSON a line, and the blobs that they refer to."""

import hashlib
import os
import re
from pathlib import Path
from typing import Final

import msgspec

from trunkline_bus.blobs import Blobs
from trunkline_bus.connection import Bus
from trunkline_bus.reader import read_session
from trunkline_bus.stored import Stored
from trunkline_wire import TrunklineError
from trunkline_wire.codec import timestamp

BLOBS: Final = "blobs"
_SHA: Final = re.compile(rb'"sha256":"([0-9a-f]{64})"')


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """An event in the file: where it stood in the log, when it was stored, and the very bytes."""

    stream: str
    sequence: int
    time: str
    subject: str
    headers: dict[str, str]
    event: msgspec.Raw


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """`sha256` is that of the file; `missing` are blobs that the store no longer has."""

    session: str
    file: str
    events: int
    sha256: str
    blobs: list[str]
    missing: list[str]


async def export_session(bus: Bus, session: str, directory: Path) -> Exported:
    """Write `<session>.ndjson` and `blobs/<sha256>` into `directory`, on disk when it returns; again is harmless.

    Raises `unknown_session`, `log_unavailable`.
    """
    stored = await read_session(bus, session)
    if not stored:
        raise TrunklineError("unknown_session", f"the log holds nothing of {session}", session=session)
    raw = b"".join(msgspec.json.encode(_line(one)) + b"\n" for one in stored)
    path = directory / f"{session}.ndjson"
    _write(path, raw)
    refs = sorted({found.decode() for one in stored for found in _SHA.findall(one.raw)})
    missing: list[str] = []
    for sha256 in refs:
        if not (directory / BLOBS / sha256).exists():
            try:
                _write(directory / BLOBS / sha256, await Blobs(bus).get(sha256))
            except TrunklineError as error:
                if error.code != "blob_missing":
                    raise
                missing.append(sha256)
    return Exported(
        session=session,
        file=path.name,
        events=len(stored),
        sha256=hashlib.sha256(raw).hexdigest(),
        blobs=[ref for ref in refs if ref not in missing],
        missing=missing,
    )


def _line(stored: Stored) -> Line:
    return Line(
        stream=stored.stream,
        sequence=stored.sequence,
        time=timestamp(stored.time),
        subject=stored.subject,
        headers=stored.headers or {},
        event=msgspec.Raw(stored.raw),
    )


def _write(path: Path, data: bytes) -> None:
    """Whole or not at all."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)

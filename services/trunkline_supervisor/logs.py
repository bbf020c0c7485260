"""The services' log files: bounded, the older half one file back."""

import asyncio
import logging
import shutil
from pathlib import Path

log = logging.getLogger(__name__)

LIMIT = 20 * 1024 * 1024
"""Bytes of a log file before it is moved to `<name>.1`."""

INTERVAL = 30.0


def rotate(directory: Path, limit: int = LIMIT) -> list[Path]:
    """Move the content of each log over `limit` aside and empty the file. Returns the files that were emptied.

    The file itself stays: the services append to it through descriptors of their own, which go on at its new end.
    """
    rotated: list[Path] = []
    for path in sorted(directory.glob("*.log")):
        if path.stat().st_size > limit:
            shutil.copyfile(path, path.with_name(f"{path.name}.1"))
            with path.open("r+b") as file:
                file.truncate(0)
            rotated.append(path)
    return rotated


async def keep_bounded(directory: Path) -> None:
    """Rotate from time to time, until cancelled."""
    while True:
        try:
            for path in await asyncio.to_thread(rotate, directory):
                log.info("log_rotated", extra={"path": str(path)})
        except OSError as error:
            log.warning("log_rotation_failed", extra={"error": str(error)})
        await asyncio.sleep(INTERVAL)

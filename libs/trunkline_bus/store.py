"""Where the nats-server keeps its streams: room on the disk, and the key that the store is encrypted with."""

import contextlib
import hashlib
import os
import shutil
from pathlib import Path
from typing import Final

from trunkline_wire import TrunklineError

STORE_KEY: Final = "TRUNKLINE_STORE_KEY"
"""The variable that the server's configuration takes the key of its store from."""
LEAST_KEY: Final = 32
_LEAST_STORE: Final = 64 * 1024 * 1024
_LEAST_FREE: Final = 4 * 1024 * 1024


def store_limit(store: Path) -> int:
    """Bytes that the store may have so that 10 % of its disk stay free of it."""
    usage = shutil.disk_usage(store)
    held = sum(entry.stat().st_blocks * 512 for entry in store.rglob("*") if entry.is_file())
    return max(held + usage.free - usage.total // 10, held, _LEAST_STORE)


def is_full(store: Path) -> bool:
    """Whether the disk of `store` has no room for a message and what the server writes beside it; False without a store."""
    try:
        return shutil.disk_usage(store).free < _LEAST_FREE
    except OSError:
        return False


def takes_writes(store: Path, size: int = 4 * _LEAST_FREE) -> bool:
    """Whether `size` bytes can be written to the disk of `store`, by doing so. Blocking."""
    path = store / ".probe"
    try:
        with path.open("wb") as file:
            file.write(bytes(size))
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        return False
    finally:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
    return True


def replace(path: Path, content: bytes) -> None:
    """Private to its user; the old content stays whole where there is no room for the new one."""
    fresh = path.with_suffix(".new")
    fresh.touch(0o600)
    fresh.write_bytes(content)
    fresh.replace(path)


def store_key(file: Path | None) -> dict[str, str]:
    """The variable with the key. Raises TrunklineError `bad_settings` for a file that others can read, or that is no key."""
    if file is None:
        return {}
    try:
        key, mode = file.read_text().strip(), file.stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        raise TrunklineError("bad_settings", f"the key of the store can't be read: {error}") from error
    if mode & 0o077:
        raise TrunklineError("bad_settings", f"{str(file)!r} can be read by others: chmod 600 it")
    if len(key) < LEAST_KEY:
        raise TrunklineError(
            "bad_settings", f"{str(file)!r} has {len(key)} characters: a key of the store has {LEAST_KEY} or more"
        )
    if '"' in key or "\\" in key:
        raise TrunklineError(
            "bad_settings", f"{str(file)!r} holds quotation marks or backslashes, which the server can't take"
        )
    # The server reads the variable as a value of its configuration.
    return {STORE_KEY: f'"{key}"'}


def check_key(note: Path, key: str | None) -> None:
    """Raises `bad_settings` unless the store is encrypted with `key`: streams made anew under another would end the old ones."""
    known = note.read_text() if note.exists() else None
    digest = hashlib.sha256(f"trunkline store {key}".encode()).hexdigest() if key is not None else None
    if known is not None and known != digest:
        raise TrunklineError(
            "bad_settings", "the store is encrypted with another key: set store_key to the file with that one"
        )
    if digest is not None and known is None:
        replace(note, digest.encode())

"""Where the gateway listens: a TCP port, the next free one if it is taken, and the unix socket."""

import errno
import json
import os
import socket
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psutil

from trunkline_wire import TrunklineError

TRIES: Final = 50
_MAX_SOCKET_PATH: Final = 107


def tcp_socket(host: str, port: int) -> socket.socket:
    """A listening socket on `port` or the next free one (0: any). Raises TrunklineError `already_running`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    last: OSError | None = None
    for candidate in [0] if port == 0 else range(port, min(port + TRIES, 65536)):
        made = socket.socket(family, socket.SOCK_STREAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((host, candidate))
        except OSError as error:
            made.close()
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise TrunklineError("bad_settings", f"can't listen on {host!r}: {error}") from error
            last = error
        else:
            made.listen(1024)
            made.setblocking(False)
            return made
    raise TrunklineError("already_running", f"no free port from {port} on at {host!r}: {last}")


@contextmanager
def unix_socket(path: Path) -> Generator[socket.socket]:
    """A listening socket at `path`, for its owner alone (0600); a stale one is replaced, a live one is not.

    Raises TrunklineError `already_running`, `bad_settings`.
    """
    if len(os.fsencode(path)) > _MAX_SOCKET_PATH:
        raise TrunklineError("bad_settings", f"{str(path)!r} is too long for a unix socket: use a shorter home")
    _remove_stale(path)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        made.bind(str(path))
    except OSError as error:
        made.close()
        raise TrunklineError("bad_settings", f"can't listen at {str(path)!r}: {error}") from error
    finally:
        os.umask(mask)
    made.listen(1024)
    made.setblocking(False)
    inode = path.stat().st_ino
    try:
        yield made
    finally:
        made.close()
        # Another gateway may have taken the path meanwhile.
        if path.exists() and path.stat().st_ino == inode:
            path.unlink()


@contextmanager
def announced(home: Path, url: str, socket_path: Path) -> Generator[None]:
    """`gateway.json` in the home directory says where this gateway is, for as long as the block runs."""
    path = home / "gateway.json"
    pid = os.getpid()
    content = {"url": url, "socket": str(socket_path), "pid": pid, "start": psutil.Process(pid).create_time()}
    beside = path.with_name(f".gateway.json.{pid}")
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(content, file)
    beside.replace(path)
    try:
        yield
    finally:
        if path.exists() and json.loads(path.read_text())["pid"] == pid:
            path.unlink()


def _remove_stale(path: Path) -> None:
    if not path.exists():
        return
    if not stat.S_ISSOCK(path.stat().st_mode):
        raise TrunklineError("bad_settings", f"{str(path)!r} exists and is no socket: remove it")
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        probe.connect(str(path))
    except OSError:
        path.unlink(missing_ok=True)
    else:
        raise TrunklineError("already_running", f"another gateway listens at {str(path)!r}")
    finally:
        probe.close()

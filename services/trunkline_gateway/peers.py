"""Who is at the other end of a local connection, and whether that process belongs to an agent.

An agent runs under the same user as its approver, so a credential alone can't tell them apart. Refused is every process
with a mark of a session in its environment, or with such a process, or a registered worker, among its ancestors or the
leaders of its group and session. An instance that was started inside a session of another one belongs to whoever runs
there: the mark that it carries itself, of a session that is none of its log, says nothing there. Not contained is what hides on purpose from all three: a process that left its group and
session, was adopted by init and emptied its environment, or one that drives another program of the user (a browser that is
signed in, a terminal multiplexer's server, a debugger), or one that hides its sockets from /proc and has a token. Against those only another user, a container, or a policy that
denies the agent such programs, helps.
"""

import contextlib
import functools
import ipaddress
import os
import socket
import struct
from collections import OrderedDict
from collections.abc import Collection, Container, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import psutil

SESSION_MARK: Final = b"TRUNKLINE_SESSION="
_UCRED: Final = struct.Struct("3i")
_START_SLACK_S: Final = 0.05


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """The other end. `pid` is None where this host can't tell; `local` says that it is on this host."""

    local: bool
    pid: int | None = None
    uid: int | None = None
    address: tuple[str, int] | None = None
    own: tuple[str, int] | None = None


WorkerProcess = tuple[int, float]
"""Process id and start time (seconds since the epoch)."""


def of_unix(transport_socket: Any) -> Peer:
    """The peer of a unix socket, by the kernel's word (SO_PEERCRED)."""
    raw = transport_socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    pid, uid, _ = _UCRED.unpack(raw)
    return Peer(local=True, pid=pid or None, uid=uid)


def of_tcp(address: tuple[Any, ...], own: tuple[Any, ...]) -> Peer:
    """The peer of a TCP connection between `address` and our `own` end; the process is looked up later, if ever.

    Whoever comes from one of this host's own addresses is local: a way around loopback is none around the check.
    """
    there, here = _end(address), _end(own)
    local = ipaddress.ip_address(there[0]).is_loopback or there[0] == here[0] or there[0] in _own_addresses()
    return Peer(local=local, address=there, own=here)


class _Holder(msgspec.Struct, frozen=True):
    """A process that holds the other end of a connection, as its descriptor `fd` on the kernel's `socket`."""

    pid: int
    fd: int
    socket: str

    def still_holds(self) -> bool:
        """The kernel gives no two sockets that exist the same name."""
        return _socket_of(self.pid, self.fd) == self.socket


_holders: Final[OrderedDict[tuple[Any, Any], _Holder]] = OrderedDict()
_MAX_HOLDERS: Final = 1_000


def find_pid(peer: Peer) -> int | None:
    """The process at the other end of a local connection; None where it belongs to another user.

    Takes milliseconds the first time, for every process's descriptors are read; then one look whether it still holds it.
    """
    if peer.pid is not None or not peer.local:
        return peer.pid
    key = (peer.address, peer.own)
    known = _holders.get(key)
    if known is not None and known.still_holds():
        return known.pid
    _holders.pop(key, None)
    with contextlib.suppress(psutil.Error):
        for connection in psutil.net_connections("tcp"):
            if (
                connection.pid
                and connection.raddr
                and _end(connection.laddr) == peer.address
                and _end(connection.raddr) == peer.own
            ):
                name = _socket_of(connection.pid, connection.fd)
                if name is not None:
                    _holders[key] = _Holder(connection.pid, connection.fd, name)
                    while len(_holders) > _MAX_HOLDERS:
                        _holders.popitem(last=False)
                return connection.pid
    return None


def _socket_of(pid: int, descriptor: int) -> str | None:
    """The kernel's name of a process's socket (`socket:[inode]`), where there is a /proc to tell."""
    try:
        return str(Path(f"/proc/{pid}/fd/{descriptor}").readlink())
    except OSError:
        return None


def _end(address: tuple[Any, ...]) -> tuple[str, int]:
    """Address and port; an IPv4 address is the same on a socket of either family."""
    host = ipaddress.ip_address(str(address[0]).partition("%")[0])
    mapped = host.ipv4_mapped if isinstance(host, ipaddress.IPv6Address) else None
    return str(mapped or host), int(address[1])


def _own_addresses() -> set[str]:
    return {address.address.partition("%")[0] for found in psutil.net_if_addrs().values() for address in found}


def judge(
    peer: Peer, workers: Collection[WorkerProcess], sessions: Container[str] = ()
) -> tuple[int | None, str | None]:
    """The process at the other end, and why it counts as an agent's; None for what can't be told or does not. Blocks.

    `sessions` are those of this gateway's log.
    """
    pid = find_pid(peer)
    return pid, None if pid is None else agent_reason(pid, workers, sessions)


def agent_reason(pid: int, workers: Collection[WorkerProcess], sessions: Container[str] = ()) -> str | None:
    """Why the process `pid` counts as an agent's; None if it does not. Takes milliseconds."""
    inherited = {mark for mark in own_marks() if mark.removeprefix(SESSION_MARK).decode() not in sessions}
    for process in _family(pid):
        with contextlib.suppress(psutil.Error, OSError):
            started = process.create_time()
            for worker, at in workers:
                if process.pid == worker and abs(started - at) < _START_SLACK_S:
                    return f"process {pid} runs under the worker {worker}"
            if _marks(process.pid) - inherited:
                return f"process {process.pid} carries a session's mark"
    return None


def _marks(pid: int) -> frozenset[bytes]:
    """The sessions' marks that a process was started with. Raises OSError for a process of another user."""
    environment = Path(f"/proc/{pid}/environ").read_bytes()
    return frozenset(entry for entry in environment.split(b"\0") if entry.startswith(SESSION_MARK))


@functools.cache
def own_marks() -> frozenset[bytes]:
    """The marks of the sessions, of other instances, that this gateway was started in."""
    found: frozenset[bytes] = frozenset()
    for process in _family(os.getpid()):
        with contextlib.suppress(psutil.Error, OSError):
            found |= _marks(process.pid)
    return found


def _family(pid: int) -> Iterator[psutil.Process]:
    """The process, its ancestors, and those of the leaders of its group and session."""
    leaders = [pid]
    with contextlib.suppress(OSError):
        leaders += [os.getpgid(pid), os.getsid(pid)]
    seen: set[int] = set()
    for leader in leaders:
        with contextlib.suppress(psutil.Error):
            process: psutil.Process | None = psutil.Process(leader)
            while process is not None and process.pid not in seen:
                seen.add(process.pid)
                yield process
                process = process.parent()

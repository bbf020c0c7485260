"""`state.json`: how programs on this machine find the running instance, and what the next start cleans up after."""

import contextlib
import os
from pathlib import Path

import msgspec
import psutil

from trunkline_supervisor.home import Home, write_private


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """A process, not just its number: `start` (seconds since the epoch) tells it from a later one of the same pid."""

    pid: int
    start: float

    @classmethod
    def of(cls, pid: int) -> "Process | None":
        """The living process `pid`; None if there is none."""
        try:
            return cls(pid=pid, start=psutil.Process(pid).create_time())
        except psutil.Error:
            return None

    def alive(self) -> bool:
        """Whether this very process runs (a zombie does not)."""
        try:
            process = psutil.Process(self.pid)
            return abs(process.create_time() - self.start) < 0.02 and process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False


class ServiceState(msgspec.Struct, frozen=True, kw_only=True):
    """A service as it is: `deaths` are those in a row, `exit` is the status of the last; given up, it is not started again."""

    ready: bool
    starts: int
    deaths: int = 0
    exit: int | None = None
    given_up: bool = False


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What `state.json` holds. `gateway` and `nats` are URLs, `socket` is the path of the gateway's unix socket.

    `beat` is when the supervisor last said that it lives, in seconds since the epoch, once a minute; `installed` is the version
    that its program would have if it was started now; `flags` are what it was started with.
    Secrets have no place here: tokens and keys stay in files of their own.
    """

    pid: int
    start: float
    version: str
    host: str
    gateway: str
    nats: str
    socket: str
    ready: bool = False
    children: dict[str, Process] = {}
    services: dict[str, ServiceState] = {}
    beat: float = 0.0
    installed: str = ""
    flags: tuple[str, ...] = ()

    def alive(self) -> bool:
        return Process(pid=self.pid, start=self.start).alive()


def read(home: Home) -> State | None:
    """The state as it was left; None if there is none, or it can't be read (then it says nothing to rely on)."""
    try:
        return msgspec.json.decode(home.state.read_bytes(), type=State)
    except (OSError, msgspec.MsgspecError):
        return None


class _Address(msgspec.Struct, frozen=True):
    url: str
    pid: int


def gateway_url(home: Home, pid: int) -> str | None:
    """The address that the gateway with this pid took; another than it was told to, if somebody was quicker."""
    try:
        address = msgspec.json.decode(home.gateway.read_bytes(), type=_Address)
    except (OSError, msgspec.MsgspecError):
        return None
    return address.url if address.pid == pid else None


def write(home: Home, state: State) -> None:
    write_private(home.state, msgspec.json.format(msgspec.json.encode(state)) + b"\n")


def remove(home: Home) -> None:
    """Remove the state if it is this process's own."""
    state = read(home)
    if state is None or state.pid == os.getpid():
        home.state.unlink(missing_ok=True)


def remove_socket(path: Path) -> None:
    """Remove a socket file that a killed gateway left: connecting to it would only be refused."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()

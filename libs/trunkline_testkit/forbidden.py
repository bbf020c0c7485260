"""What no test may do: reach for anything but loopback, or block the thread of a running event loop.

The call raises, and is remembered, because code under test may swallow the error. uvloop connects below the socket
module and is out of sight here; so is a name imported with `from time import sleep`.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
import subprocess
import time
import traceback
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pytest

TRUST_NOBODY: Final = {"SSL_CERT_FILE": os.devnull}
"""For the environment of Trunkline's own processes: they reach nobody whom a certificate would prove, and reading the
system's authorities is a tenth of a service's start."""


class OutsideNetworkError(ConnectionRefusedError):
    """A test tried to reach an address that is not this machine's loopback."""


class BlockingCallError(RuntimeError):
    """A call that waits was made on the thread of a running event loop."""


def forbid(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Put the wires up for as long as `monkeypatch` lasts; the list they fill with offences, in words."""
    offences: list[str] = []
    _refuse_outside(monkeypatch, offences)
    _refuse_blocking(monkeypatch, offences)
    return offences


def _refuse_outside(monkeypatch: pytest.MonkeyPatch, offences: list[str]) -> None:
    connect, connect_ex, getaddrinfo = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo

    def refuse(host: object) -> None:
        if not _is_here(host):
            offences.append(f"it reached for {host!r}, outside of this machine")
            raise OutsideNetworkError(f"tests reach nothing but loopback, and this is {host!r}")

    def checked_connect(self: socket.socket, address: Any) -> None:
        if self.family in {socket.AF_INET, socket.AF_INET6}:
            refuse(address[0])
        if self.getblocking():
            _refuse_on_loop("a blocking connect", offences)
        connect(self, address)

    def checked_connect_ex(self: socket.socket, address: Any) -> int:
        if self.family in {socket.AF_INET, socket.AF_INET6}:
            refuse(address[0])
        return connect_ex(self, address)

    def checked_getaddrinfo(host: Any, *rest: Any, **options: Any) -> Any:
        refuse(host)
        return getaddrinfo(host, *rest, **options)

    monkeypatch.setattr(socket.socket, "connect", checked_connect)
    monkeypatch.setattr(socket.socket, "connect_ex", checked_connect_ex)
    monkeypatch.setattr(socket, "getaddrinfo", checked_getaddrinfo)


def _refuse_blocking(monkeypatch: pytest.MonkeyPatch, offences: list[str]) -> None:
    sleep, wait = time.sleep, subprocess.Popen[bytes].wait

    def checked_sleep(seconds: float) -> None:
        _refuse_on_loop(f"time.sleep({seconds:g})", offences)
        sleep(seconds)

    def checked_wait(self: subprocess.Popen[bytes], timeout: float | None = None) -> int:
        if self.poll() is None:
            _refuse_on_loop(f"waiting for the process {self.args!r}", offences)
        return wait(self, timeout)

    monkeypatch.setattr(time, "sleep", checked_sleep)
    monkeypatch.setattr(subprocess.Popen, "wait", checked_wait)


def _refuse_on_loop(what: str, offences: list[str]) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    module, where = _caller()
    if module.startswith("trunkline_testkit."):
        # The kit's own servers are steered in milliseconds, and tests may do so in place.
        return
    offences.append(f"it blocked its event loop by {what} at {where}")
    raise BlockingCallError(f"{what} at {where} blocks the event loop: await it, or use asyncio.to_thread")


def _caller() -> tuple[str, str]:
    """Module and place of the code whose call led here, past the standard library's own wrappers."""
    for frame, line in traceback.walk_stack(None):
        module = frame.f_globals.get("__name__", "")
        if module not in {__name__, "subprocess", "socket"}:
            return module, f"{frame.f_code.co_filename}:{line}"
    return "", "an unknown place"


def _is_here(host: object) -> bool:
    if isinstance(host, bytes):
        host = host.decode(errors="replace")
    # No host is a wildcard to listen on; names but these would be asked of a name server.
    if host is None or host in {"", "localhost", "0.0.0.0", "::", socket.gethostname()}:
        return True
    try:
        return ipaddress.ip_address(str(host).partition("%")[0]).is_loopback
    except ValueError:
        return False

"""The holder of one agent: a small process between worker and agent that nothing of the agent escapes.

Run as a program of the standard library alone: `python -I -S holder.py FD`. `FD` is a socket to the worker:

- the worker says one line of JSON, `{"argv": [...], "env": {...}}`; the holder answers with the agent's pid and a line end,
- the worker sends a byte: the gate opens, and the agent's program runs,
- the worker closes it, or dies: the agent and all of its descendants are killed.

On Linux orphans of the agent become children of the holder, whatever they did to their group, session, environment or open
files; so it knows when none is left: when it has no child. Elsewhere it kills the agent's process group.
If the agent ends by itself, what it left is killed as well. The holder ends last, with the agent's own exit code or
signal. It keeps the files that it inherited (the session's lock) open until then.
"""

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import socket
import sys
import time
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_IGNORED: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
"""Sent to whole groups of processes by those who mean the worker: it then says itself what is to be done."""
_CHANGED_BY_PYTHON: Final = (signal.SIGPIPE, signal.SIGXFSZ)
_PATIENCE: Final = 10.0
"""Seconds after which a process that does not die of SIGKILL is left to the kernel."""
_LOOK: Final = 0.02


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _read_order(control: socket.socket) -> tuple[list[str], dict[str, str]]:
    received = bytearray()
    while not received.endswith(b"\n"):
        piece = control.recv(65536)
        if not piece:
            sys.exit(1)
        received += piece
    order = json.loads(received)
    return order["argv"], order["env"]


def _start(argv: list[str], environment: dict[str, str]) -> tuple[int, int]:
    """Forks the agent, in a session of its own; its pid, and the gate that it waits at."""
    waiting, gate = os.pipe()
    holder = os.getpid()
    pid = os.fork()
    if pid:
        os.close(waiting)
        return pid, gate
    try:
        os.setsid()
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        for number in (*_IGNORED, *_CHANGED_BY_PYTHON):
            signal.signal(number, signal.SIG_DFL)
        os.close(gate)
        if os.getppid() == holder and os.read(waiting, 1):
            os.execve(argv[0], argv, environment)  # noqa: S606 - a shell is what is not wanted here
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(127)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - pathlib doubles the time of the start
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/children") as file:  # noqa: PTH123 - likewise
                found += map(int, file.read().split())
    return found


def _descendants() -> list[int]:
    found = _children(os.getpid())
    for pid in found:  # grows while it is walked
        found += _children(pid)
    return found


class _Holder:
    def __init__(self, control: socket.socket, wakeup: socket.socket, agent: int, gate: int) -> None:
        self._control = control
        self._wakeup = wakeup
        self._agent = agent
        self._gate: int | None = gate
        self._status: int | None = None
        """The agent's wait status, once it has ended."""

    def hold(self) -> int:
        """Until the agent ends or the worker wants it to; then nothing of it is left. Returns its wait status."""
        while self._status is None:
            ready, _, _ = select.select([self._control, self._wakeup], [], [])
            if self._wakeup in ready:
                self._wakeup.recv(4096)
                self._reap()
            if self._control in ready and not self._obey():
                break
        self._end_all()
        return self._status if self._status is not None else signal.SIGKILL

    def _obey(self) -> bool:
        try:
            word = self._control.recv(1)
        except OSError:
            word = b""
        if word and self._gate is not None:
            os.write(self._gate, word)
            os.close(self._gate)
            self._gate = None
        return bool(word)

    def _reap(self) -> bool:
        """Takes the statuses of ended children; False once there is no child at all."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._agent:
                self._status = status

    def _end_all(self) -> None:
        # The group at once, while its number can't be anyone else's; then one by one until nothing is left.
        with contextlib.suppress(OSError):
            os.killpg(self._agent, signal.SIGKILL)
        deadline = time.monotonic() + _PATIENCE
        while self._reap() and time.monotonic() < deadline:
            for pid in _descendants():
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            select.select([self._wakeup], [], [], _LOOK)
            with contextlib.suppress(BlockingIOError):
                self._wakeup.recv(4096)


def _child_ended(_number: int, _frame: object) -> None:
    """The byte in the wake-up socket is all that is needed."""


def main() -> None:
    """See the module."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    wakeup, wake = socket.socketpair()
    wakeup.setblocking(False)
    wake.setblocking(False)
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, _child_ended)

    argv, environment = _read_order(control)
    agent, gate = _start(argv, environment)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.chdir("/")
    with contextlib.suppress(OSError):
        control.sendall(b"%d\n" % agent)
    _leave_as(_Holder(control, wakeup, agent, gate).hold())


def _leave_as(status: int) -> None:
    """Ends as the agent did, for the worker to see."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with contextlib.suppress(OSError):  # SIGKILL has no handler
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 1)


if __name__ == "__main__":
    main()

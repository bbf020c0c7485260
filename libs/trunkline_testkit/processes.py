"""The process table as tests see it: trees, marks in the environment, signals, and proof that nothing is left.

A process is its pid **and** its start time: pids are reused. Linux only where `/proc/<pid>/environ` is read.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from trunkline_testkit.waiting import eventually, eventually_sync

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    """One process at the moment of the snapshot; equal only if pid and start time are."""

    pid: int
    started: float
    """Seconds since the epoch."""
    ppid: int = field(compare=False)
    pgid: int = field(compare=False)
    command: str = field(compare=False)

    def alive(self) -> bool:
        """Whether this very process still runs; a zombie does not."""
        try:
            process = psutil.Process(self.pid)
            return process.create_time() == self.started and process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False


def snapshot(pid: int) -> ProcessInfo | None:
    """The process `pid`, or None if there is none (zombies count as none)."""
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            if process.status() == psutil.STATUS_ZOMBIE:
                return None
            return ProcessInfo(
                pid=pid,
                started=process.create_time(),
                ppid=process.ppid(),
                pgid=os.getpgid(pid),
                command=" ".join(process.cmdline()) or process.name(),
            )
    except (psutil.Error, ProcessLookupError):
        return None


def tree(pid: int | None = None) -> list[ProcessInfo]:
    """All living descendants of `pid` (default: this process), without itself."""
    found: list[ProcessInfo] = []
    queue = _children(os.getpid() if pid is None else pid)
    while queue:
        info = snapshot(child := queue.pop())
        if info is not None:
            found.append(info)
        queue += _children(child)
    return sorted(found, key=lambda info: (info.started, info.pid))


def marked(key: str, value: str) -> list[ProcessInfo]:
    """Every living process, whoever its parent is, that was started with `key=value` in its environment."""
    mark = os.fsencode(f"{key}={value}")
    found: list[ProcessInfo] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue
        if mark in environment.split(b"\0"):
            info = snapshot(int(entry.name))
            if info is not None:
                found.append(info)
    return found


def within(*places: Path) -> list[ProcessInfo]:
    """Every living process but this one that works in one of `places`, or was started with a path into one in its environment.

    So what has left its group, its parent and the marks behind is still found by its home.
    """
    names = [os.fsencode(str(place)) for place in places]
    found: list[ProcessInfo] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        try:
            environment = (entry / "environ").read_bytes()
            directory = os.fsencode(str((entry / "cwd").readlink()))
        except OSError:
            continue
        if any(_lies_in(directory, name) or _names_it(environment, name) for name in names):
            info = snapshot(int(entry.name))
            if info is not None:
                found.append(info)
    return found


def _lies_in(path: bytes, place: bytes) -> bool:
    return path == place or path.startswith(place + b"/")


def _names_it(environment: bytes, place: bytes) -> bool:
    values = (entry.partition(b"=")[2] for entry in environment.split(b"\0"))
    return any(_lies_in(part, place) for value in values for part in value.split(b":"))


def kill(pid: int) -> None:
    """SIGKILL; a process that is gone already is fine."""
    _signal(pid, signal.SIGKILL)


def stop(pid: int) -> None:
    """SIGSTOP: the process hangs where it is, its sockets stay open."""
    _signal(pid, signal.SIGSTOP)


def thread_states(pid: int) -> list[str]:
    """One letter for each thread of a process, as in proc(5)."""
    stats = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    return [stat.rpartition(")")[2].split()[0] for stat in stats]


def cont(pid: int) -> None:
    """SIGCONT: a stopped process goes on."""
    _signal(pid, signal.SIGCONT)


async def wait_gone(processes: Iterable[ProcessInfo], timeout: float = 10.0) -> None:  # noqa: ASYNC109
    """Wait until none of `processes` runs. Raises AssertionError at the deadline, naming those that do."""
    await eventually(_gone(processes), timeout)


def wait_gone_sync(processes: Iterable[ProcessInfo], timeout: float = 10.0) -> None:
    """`wait_gone` for plain tests."""
    eventually_sync(_gone(processes), timeout)


async def assert_no_orphans(key: str, value: str, timeout: float = 10.0) -> None:  # noqa: ASYNC109
    """Wait until no process is marked with `key=value`. Raises AssertionError naming those left, and kills them."""
    try:
        await eventually(_none_marked(key, value), timeout)
    except AssertionError:
        kill_all(marked(key, value))
        raise


def kill_all(processes: Iterable[ProcessInfo]) -> None:
    """SIGKILL for those of `processes` that still run."""
    for info in processes:
        if info.alive():
            kill(info.pid)


class Guard:
    """Kills a process group when the process that made the guard dies, even by SIGKILL.

    A shell waits at the end of a pipe whose other end only this process holds: end of file means that it died.
    """

    def __init__(self, pgid: int) -> None:
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", 'read -r _; kill -9 "-$0" 2>/dev/null', str(pgid)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    def release(self) -> None:
        """Let the group be: it has ended. May be called twice."""
        self._shell.kill()
        self._shell.wait()
        if self._shell.stdin is not None:
            self._shell.stdin.close()


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _children(pid: int) -> list[int]:
    # The kernel's own list costs microseconds, a walk over all of /proc milliseconds: this runs around every test.
    children: list[int] = []
    try:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                children += map(int, (thread / "children").read_text().split())
    except OSError:
        with contextlib.suppress(psutil.Error):
            return [child.pid for child in psutil.Process(pid).children()]
    return children


def _gone(processes: Iterable[ProcessInfo]) -> Callable[[], bool]:
    waiting = list(processes)

    def check() -> bool:
        waiting[:] = [info for info in waiting if info.alive()]
        if waiting:
            raise AssertionError(f"still running: {_names(waiting)}")
        return True

    return check


def _none_marked(key: str, value: str) -> Callable[[], bool]:
    def check() -> bool:
        if left := marked(key, value):
            raise AssertionError(f"orphans with {key}={value}: {_names(left)}")
        return True

    return check


def _names(processes: Iterable[ProcessInfo]) -> str:
    return "; ".join(f"{info.pid} (parent {info.ppid}) {info.command[:200]}" for info in processes)

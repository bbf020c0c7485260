"""The process table: finding and ending what belongs to an agent, and nothing else.

A process is a pid **and** its start time, because pids are used again. Descendants are found by tree, by group, by the
marks in their environment and, last, by the lock file that they inherited.
"""

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import psutil

from trunkline_wire import TrunklineError

log = logging.getLogger(__name__)

Identity = tuple[int, float]
"""A pid and its start time in seconds since the epoch."""

_SAME_START: Final = 1.5
"""Seconds by which the start time of one process may differ between two readings: the boot time behind it is adjusted."""
_POLL: Final = 0.02
_QUIET: Final = 3


def start_time(pid: int) -> float | None:
    """When process `pid` started; None if there is none (a zombie counts as none)."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return process.create_time()
    except psutil.Error:
        return None


def is_running(identity: Identity) -> bool:
    pid, started = identity
    found = start_time(pid)
    return found is not None and abs(found - started) <= _SAME_START


def marked(marks: Mapping[str, str]) -> list[Identity]:
    """Every process of this user that was started with all of `marks` in its environment."""
    found: list[Identity] = []
    for process in psutil.process_iter():
        try:
            environment = process.environ()
        except (psutil.Error, OSError):
            continue
        bears = marks and all(environment.get(name) == value for name, value in marks.items())
        if bears and (one := identity(process)) is not None:
            found.append(one)
    return found


def valued(name: str) -> list[tuple[str, Identity]]:
    """Every process of this user that was started with the variable `name`, and its value."""
    found: list[tuple[str, Identity]] = []
    for process in psutil.process_iter():
        try:
            value = process.environ().get(name)
        except (psutil.Error, OSError):
            continue
        if value is not None and (one := identity(process)) is not None:
            found.append((value, one))
    return found


def members(pgid: int) -> list[Identity]:
    """The processes of a group."""
    found: list[Identity] = []
    for process in psutil.process_iter():
        try:
            if os.getpgid(process.pid) != pgid:
                continue
        except OSError:
            continue
        if (one := identity(process)) is not None:
            found.append(one)
    return found


def holders(path: Path) -> list[Identity]:
    """The processes that hold `path` open, as far as this user may see them (Linux; elsewhere none)."""
    return [
        one
        for process in psutil.process_iter()
        if process.pid != os.getpid() and holds(process.pid, path) and (one := identity(process)) is not None
    ]


def holds(pid: int, path: Path) -> bool:
    """Whether process `pid` holds `path` open, as far as this user may see it (Linux; elsewhere never)."""
    target = str(path.resolve())
    try:
        return any(_link(entry) == target for entry in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False


def _link(entry: Path) -> str | None:
    try:
        return str(entry.readlink())
    except OSError:
        return None


def identity(process: psutil.Process) -> Identity | None:
    """A process that runs; None for one that has ended."""
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return process.pid, process.create_time()
    except psutil.Error:
        return None


def _owns_group(pgid: int, started: float, marks: Mapping[str, str]) -> bool:
    """Whether the group is still the one that was started: its leader lives, or a member bears the marks."""
    if is_running((pgid, started)):
        return True
    family = set(marked(marks))
    return any(member in family for member in members(pgid))


async def end_group(pgid: int, started: float, marks: Mapping[str, str]) -> None:
    """SIGKILL for a process group, unless its id has passed to strangers by now."""
    if pgid > 1 and await asyncio.to_thread(_owns_group, pgid, started, marks):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pgid, signal.SIGKILL)


async def end_processes(processes: Iterable[Identity], *, within: float = 5.0) -> None:
    """SIGKILL for those that still run, and waits until they are gone; reaps those that became our children.

    Raises TrunklineError `internal` naming what outlives it, which only the kernel can be the reason for.
    """
    left = [identity for identity in dict.fromkeys(processes) if identity[0] != os.getpid()]
    deadline = time.monotonic() + within
    while left:
        for identity in left:
            if is_running(identity):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(identity[0], signal.SIGKILL)
            reap(identity[0])
        left = [identity for identity in left if is_running(identity)]
        if left and time.monotonic() > deadline:
            raise TrunklineError(
                "internal", f"processes {[pid for pid, _ in left]} do not end: look at them before the session goes on"
            )
        if left:
            await asyncio.sleep(_POLL)


def reap(pid: int) -> None:
    """Takes the exit status of an ended child that nobody else waits for; any other pid is fine."""
    with contextlib.suppress(ChildProcessError, OSError):
        os.waitpid(pid, os.WNOHANG)


async def end_family(marks: Mapping[str, str], *, within: float = 5.0) -> int:
    """Ends every process that bears `marks`, and what they start meanwhile; how many there were."""
    ended, quiet = 0, 0
    deadline = time.monotonic() + within
    # What is becoming another program has no environment for a moment: where there was something, one look is not enough.
    while quiet < (_QUIET if ended else 1):
        family = await asyncio.to_thread(marked, marks)
        quiet = 0 if family else quiet + 1
        ended += len(family)
        await end_processes(family, within=max(0.1, deadline - time.monotonic()))
    return ended


def reap_zombies(before: set[int]) -> set[int]:
    """Reaps our children that have been zombies since the last call (`before`); returns those that are by now.

    A child that somebody waits for is a zombie for a moment only; an orphan that was left to us stays one.
    """
    zombies: set[int] = set()
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            if child.status() == psutil.STATUS_ZOMBIE:
                zombies.add(child.pid)
    for pid in zombies & before:
        reap(pid)
    return zombies - before

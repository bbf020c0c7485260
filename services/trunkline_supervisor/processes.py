"""Starting and ending processes so that none is left: own group, death with this process, TERM before KILL."""

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from trunkline_supervisor.home import PRIVATE_FILE
from trunkline_supervisor.state import Process

_PR_SET_PDEATHSIG: Final = 1


def die_with(parent: int) -> Callable[[], None] | None:
    """What a forked child of process `parent` runs before its program: the kernel kills it when its parent dies.

    None where the kernel can't (outside Linux): there the next start ends what is left (`end_leftovers`).
    """
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)

    def prepare() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        # The parent may have died between the fork and the call above; then nothing will ever come.
        if os.getppid() != parent:
            os._exit(1)

    return prepare


async def start(argv: Sequence[str], environment: Mapping[str, str], log: Path) -> asyncio.subprocess.Process:
    """Start a program in a process group of its own, its output appended to `log`. Raises OSError."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, PRIVATE_FILE)
    try:
        return await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=descriptor,
            stderr=descriptor,
            env=dict(environment),
            start_new_session=True,
            preexec_fn=die_with(os.getpid()),
        )
    finally:
        os.close(descriptor)


def signal_process(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def kill_group(pid: int) -> None:
    """SIGKILL for the whole process group that `pid` leads; fine if it is gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


async def stop(processes: Iterable[asyncio.subprocess.Process], grace: float) -> list[int]:
    """SIGTERM, `grace` seconds to end, then SIGKILL of the groups. Returns the pids that had to be killed.

    The group is killed in any case, so that a program's own helpers do not outlive it.
    """
    running = list(processes)
    for process in running:
        if process.returncode is None:
            signal_process(process.pid, signal.SIGTERM)
            signal_process(process.pid, signal.SIGCONT)
    waits = [asyncio.ensure_future(process.wait()) for process in running]
    try:
        if waits:
            await asyncio.wait(waits, timeout=grace)
        slow = [process.pid for process in running if process.returncode is None]
    finally:
        for process in running:
            kill_group(process.pid)
    if waits:
        await asyncio.wait(waits)
    return slow


async def end_leftovers(processes: Iterable[Process], grace: float) -> list[int]:
    """End what a killed instance left behind: only the very processes it recorded. Returns their pids."""
    left = [process for process in processes if process.alive()]
    for process in left:
        signal_process(process.pid, signal.SIGTERM)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(grace):
            while any(process.alive() for process in left):  # noqa: ASYNC110 - they are no children of this process
                await asyncio.sleep(0.05)
    for process in left:
        if process.alive():
            kill_group(process.pid)
    return [process.pid for process in left]

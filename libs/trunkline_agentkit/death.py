"""Death with the owner: an agent must not outlive the process that runs it.

Two means, because each has a hole. On Linux the kernel kills the agent itself when its parent dies; its children stay.
Everywhere a watchdog, a shell in a session of its own, waits at the end of a pipe that only the owner holds: at its end of
file it kills the agent's whole process group.
"""

import asyncio
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def _prctl(option: int, value: int) -> bool:
    if sys.platform != "linux":
        return False
    return _libc.prctl(option, value, 0, 0, 0) == 0


_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent() -> Callable[[], None] | None:
    """What to run between fork and exec so that the kernel kills the child with its parent; None where it can't.

    The kernel watches the thread that forked: start agents from a thread that lives as long as the process.
    """
    if sys.platform != "linux":
        return None
    return _ask_the_kernel


def _ask_the_kernel() -> None:
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def become_subreaper() -> bool:
    """Makes orphaned descendants children of this process instead of init's, so that they stay in its tree (Linux)."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


class Watchdog:
    """Kills process group `pgid` when this process dies, by whatever means."""

    def __init__(self, pgid: int) -> None:
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", 'read -r _ || kill -s KILL -- "-$0"', str(pgid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self._shell.pid

    async def release(self) -> None:
        """Lets the group be: it has ended. May be called twice."""
        stdin = self._shell.stdin
        if stdin is not None and not stdin.closed:
            # A whole line is the word that all is well; a bare end of file is the owner's death.
            with contextlib.suppress(OSError):
                os.write(stdin.fileno(), b"\n")
            with contextlib.suppress(OSError):
                stdin.close()
        await asyncio.to_thread(self._shell.wait)

"""Death with the owner: nothing of an agent outlives the process that runs it.

Between the worker and each agent stands a holder (`holder.py`), which ends the agent with all of its descendants when the
worker says so or dies by whatever means. If the holder itself is killed, the kernel kills the agent (Linux), and its
orphans become children of the worker, or of the supervisor where the worker was killed, too: `end_strays`. If all
three are killed at once, the next worker finds what bears the session's mark or holds its lock (`sweep`); what has emptied
its environment, closed what it inherited and left its parents is then out of reach, and nothing else.
"""

import asyncio
import contextlib
import ctypes
import os
import py_compile
import socket
import sys
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import psutil

from trunkline_agentkit.environment import SESSION_MARK
from trunkline_agentkit.sweep import Identity, end_processes, identity
from trunkline_wire import TrunklineError

HELD: Final = "held:"
"""Begins the session's mark of what outlives its worker on purpose, held by one of `HOLDERS`: no sweep ends it."""
HOLDERS: Final = frozenset({"tmux"})

_PR_SET_CHILD_SUBREAPER: Final = 36
_QUIET: Final = 3
_LOOK: Final = 0.02


KEEPER: Final = str(Path(__file__).with_name("keeper.py"))
"""The program of a detached holder."""


@cache
def _program() -> str:
    """The holder's program, compiled where that can be written."""
    source = str(Path(__file__).with_name("holder.py"))
    try:
        return py_compile.compile(source, doraise=True) or source
    except (OSError, py_compile.PyCompileError):
        return source


class _Process:
    subreaper = False


def become_subreaper() -> bool:
    """Makes orphaned descendants children of this process instead of init's, so that they stay in its tree (Linux)."""
    if sys.platform == "linux":
        _Process.subreaper = ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    return _Process.subreaper


async def end_strays(known: Collection[int] = (), programs: Collection[str] = ()) -> int:
    """Ends the orphans that became children of this process, and theirs; how many there were.

    Spared are what is held on purpose (`HELD`), holders, the pids `known`, what runs one of `programs` (file names), and what was forked but has not become
    another program yet. Does nothing in a process that is no subreaper: then all of its children are its own.
    """
    ended, quiet = 0, 0
    while _Process.subreaper and quiet < _QUIET:
        found = await asyncio.to_thread(_strays, known, programs)
        quiet = 0 if found else quiet + 1
        ended += len(found)
        await end_processes(found)
        await asyncio.sleep(0 if found else _LOOK)
    return ended


def _strays(known: Collection[int], programs: Collection[str]) -> list[Identity]:
    own = psutil.Process()
    own_line = own.cmdline()
    found: list[Identity | None] = []
    for child in own.children():
        with contextlib.suppress(psutil.Error):
            line = child.cmdline()
            spared = (
                child.pid in known or line == own_line or _program() in line or KEEPER in line or _is_held(child, line)
            )
            if not spared and (not line or Path(line[0]).name not in programs):
                found += [identity(one) for one in (child, *child.children(recursive=True))]
    return [one for one in found if one is not None]


def _is_held(child: psutil.Process, line: Sequence[str]) -> bool:
    # tmux's server changes its own title.
    named = child.name().partition(":")[0] in HOLDERS or (
        bool(line) and Path(line[0].partition(":")[0]).name in HOLDERS
    )
    return named and child.environ().get(SESSION_MARK, "").startswith(HELD)


class Leash:
    """The worker's end of a holder: what runs behind it lives as long as this is open.

    Start `argv` with `descriptor` inherited, then `give` the order and `open_gate`.
    """

    def __init__(self, program: str | None = None) -> None:
        self._program = _program() if program is None else program
        self._ours, self._theirs = socket.socketpair()
        self._ours.setblocking(False)

    @property
    def descriptor(self) -> int:
        return self._theirs.fileno()

    @property
    def argv(self) -> list[str]:
        return [sys.executable, "-I", "-S", self._program, str(self.descriptor)]

    async def give(self, argv: Sequence[str], environment: Mapping[str, str]) -> int:
        """Has the agent forked, though its program does not run yet; its pid. Raises TrunklineError `agent_failed`.

        What a holder of another `program` has to know stands before the agent's own `argv`.
        """
        self._theirs.close()
        loop = asyncio.get_running_loop()
        strings = [*argv, *(f"{name}={value}" for name, value in environment.items())]
        body = b"".join(os.fsencode(string) + b"\0" for string in strings)
        order = b"%d %d\n" % (len(argv), len(body)) + body
        try:
            await loop.sock_sendall(self._ours, order)
            answer = await loop.sock_recv(self._ours, 64)
        except OSError:
            answer = b""
        if not answer:
            raise TrunklineError("agent_failed", "the process that holds the agent could not start: is memory short?")
        return int(answer)

    def open_gate(self) -> None:
        """Lets the agent's program run."""
        with contextlib.suppress(OSError):
            self._ours.send(b"g")

    def let_go(self) -> None:
        """Ends the agent and all of its descendants by SIGKILL. May be called twice."""
        self._theirs.close()
        self._ours.close()


def holder_environment() -> dict[str, str]:
    """What a holder needs of the worker's environment: where its interpreter's libraries are."""
    return {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH") if name in os.environ}

"""Death with the owner: nothing of an agent outlives the process that runs it.

Between the worker and each agent stands a holder (`holder.py`), which ends the agent with all of its descendants when the
worker says so or dies by whatever means. If the holder itself is killed, the kernel kills the agent (Linux), and what
the agent has started is found by its marks and by the lock that it inherited (`sweep`).
"""

import asyncio
import contextlib
import ctypes
import json
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from trunkline_wire import TrunklineError

_PR_SET_CHILD_SUBREAPER: Final = 36
_PROGRAM: Final = str(Path(__file__).with_name("holder.py"))


def become_subreaper() -> bool:
    """Makes orphaned descendants children of this process instead of init's, so that they stay in its tree (Linux)."""
    if sys.platform != "linux":
        return False
    return ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


class Leash:
    """The worker's end of a holder: what runs behind it lives as long as this is open.

    Start `argv` with `descriptor` inherited, then `give` the order and `open_gate`.
    """

    def __init__(self) -> None:
        self._ours, self._theirs = socket.socketpair()
        self._ours.setblocking(False)

    @property
    def descriptor(self) -> int:
        return self._theirs.fileno()

    @property
    def argv(self) -> list[str]:
        return [sys.executable, "-I", "-S", _PROGRAM, str(self.descriptor)]

    async def give(self, argv: Sequence[str], environment: Mapping[str, str]) -> int:
        """Has the agent forked, though its program does not run yet; its pid. Raises TrunklineError `agent_failed`."""
        self._theirs.close()
        loop = asyncio.get_running_loop()
        order = json.dumps({"argv": list(argv), "env": dict(environment)}).encode() + b"\n"
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

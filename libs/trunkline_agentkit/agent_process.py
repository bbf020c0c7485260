"""A running agent, however it is held: what passes between it and us, and its end."""

import signal
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec

from trunkline_agentkit.recorder import Speaker
from trunkline_agentkit.sweep import Identity
from trunkline_wire import TrunklineError


class Exit(msgspec.Struct, frozen=True, kw_only=True):
    """How an agent ended: its exit code, or the signal that ended it. `stderr_tail` is the end of its error output."""

    code: int | None = None
    signal: int | None = None
    stderr_tail: str = ""

    def at_start(self, title: str, otherwise: str = "") -> TrunklineError:
        """`agent_failed`, with its last words, of an agent that ended before it was ready; `otherwise` where it said none."""
        said = self.stderr_tail.strip()
        reason = said.splitlines()[-1] if said else otherwise or f"it printed nothing, exit code {self.code}"
        return TrunklineError(
            "agent_failed",
            f"{title} ended at its start: {reason}",
            exit_code=self.code,
            signal=self.signal,
            stderr=said[-2000:],
        )


class Registration(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's process as it is written down before its program runs. `started` is seconds since the epoch."""

    pid: int
    pgid: int
    started: float
    argv: tuple[str, ...]
    holder: Identity | None = None
    """The process that ends all of the agent's when the worker dies, and then itself."""


class Said(msgspec.Struct, frozen=True):
    """A line that had passed before a worker took the agent up: the agent's, or one of ours."""

    ours: bool
    line: bytes


class AgentProcess(ABC):
    """A running agent; one reader of `lines()` or `chunks()`, any number of writers."""

    registration: Registration

    @property
    def pid(self) -> int:
        return self.registration.pid

    @property
    @abstractmethod
    def running(self) -> bool: ...

    @property
    @abstractmethod
    def stderr_tail(self) -> str:
        """The last 64 KiB of the error output."""

    @abstractmethod
    def lines(self) -> AsyncIterator[bytes]:
        """The lines of the agent's output, of any length, without line ends or blank ones.

        Reads no faster than it is iterated: the pipe fills and the agent waits. Ends at the end of output, or soon after
        the program ended, though a descendant may still hold the pipe.
        """

    @abstractmethod
    def chunks(self) -> AsyncIterator[bytes]:
        """The output as it comes, for programs that print no lines of a protocol; ends as `lines` does."""

    def read_ahead(self, limit: int) -> None:
        """Lets at most about `limit` bytes wait to be read here, where it is up to us: what waits comes late."""
        del limit

    @abstractmethod
    def taken(self) -> None:
        """What `lines` has given last is translated: what is written from now on stands behind it.

        One that outlives its worker is taken up by reading all that passed in this order again.
        """

    @abstractmethod
    def note(self, message: object) -> None:
        """Keeps a message with the lines that pass, which the agent never gets."""

    async def said(self) -> list[Said]:
        """What had passed when a worker took the agent up, in the order in which the worker before had taken it in."""
        return []

    @abstractmethod
    def put_line(self, message: object) -> None:
        """Writes one message as one whole line (bytes are taken as its JSON text) and waits for nothing.

        Raises TrunklineError `agent_failed` when the agent no longer reads.
        """

    @abstractmethod
    async def drain(self) -> None:
        """Waits until there is room for more. Raises what `put_line` raises."""

    async def write_line(self, message: object) -> None:
        """Writes one message as one whole line, never a part of one, even if cancelled. Raises what `put_line` raises."""
        # The whole line goes out in one step; only the waiting can be cancelled.
        self.put_line(message)
        await self.drain()

    @abstractmethod
    def close_input(self) -> None:
        """End of input: most agents finish their turn and leave."""

    @abstractmethod
    def signal_group(self, number: signal.Signals) -> None:
        """Sends a signal to the agent's process group, if the agent still runs."""

    @abstractmethod
    def kill(self) -> None:
        """SIGKILL to the agent and all of its descendants, now; `close` then waits until they are gone."""

    @abstractmethod
    async def wait(self) -> int:
        """Waits for the program's own end; its return code, negative for a signal."""

    @abstractmethod
    async def close(self, grace: float = 5.0) -> Exit:
        """End of input, `grace` seconds, SIGTERM to the group, five seconds, SIGKILL; then every descendant that is left.

        Nothing of the agent runs afterwards. May be called twice, and finishes its work even if the caller is cancelled.
        """

    async def abandon(self) -> Exit:
        """Lets go of an agent that needs no worker to run on; any other ends."""
        return await self.close(0)

    @abstractmethod
    def record(self, speaker: Speaker, line: bytes) -> None:
        """Adds to the recording, if there is one, a message that passed beside the pipes."""


Register = Callable[[Registration], Awaitable[None]]


def gone(code: int | None) -> TrunklineError:
    """The error of writing to an agent that has ended."""
    return TrunklineError(
        "agent_failed",
        "the agent has ended and takes no more messages: send a prompt to start it again",
        exit_code=code,
    )

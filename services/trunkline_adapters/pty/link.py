"""What carries a terminal's messages: the bridge over its pipes, or a client of tmux in control mode."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final, Protocol

import msgspec

from trunkline_adapters.pty.control import PLACE, Asked, Control, keys
from trunkline_adapters.pty.tmux import Server
from trunkline_agentkit import AgentProcess, Exit, decode_line, unsupported
from trunkline_agentkit.fields import Obj, text
from trunkline_wire import TrunklineError

_READ_AHEAD: Final = 256 * 1024
"""Bytes of the bridge's that wait to be read: what a flood's viewers see is not much older than that."""


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """A line of what carries the terminal: as JSON, and the messages in it. None: it is none that is known."""

    raw: bytes
    messages: list[Obj] | None


class Link(Protocol):
    @property
    def process(self) -> AgentProcess: ...

    @property
    def answers(self) -> bool:
        """Whether questions of the program to its terminal are for us to answer."""
        ...

    def heard(self) -> AsyncIterator[Heard]:
        """Every line in order, once; ends with the terminal."""
        ...

    def put(self, message: Obj) -> None:
        """Types keys, and waits for nothing. Raises TrunklineError `agent_failed` when nobody takes them any more."""
        ...

    async def resize(self, columns: int, rows: int) -> None:
        """Raises TrunklineError `unsupported` where the terminal is somebody else's."""
        ...

    async def history(self, lines: int) -> list[str] | None:
        """The last of the lines that have scrolled away, with their colours; None where only the screen knows."""
        ...

    async def close(self, grace: float) -> Exit:
        """Ends the program, if it is ours."""
        ...

    async def abandon(self) -> Exit:
        """Lets go of a program that goes on without us; any other ends."""
        ...


class BridgeLink:
    """The bridge, which ends with its worker, or goes on behind a detached holder."""

    answers = True

    def __init__(self, process: AgentProcess) -> None:
        self.process = process
        process.read_ahead(_READ_AHEAD)

    async def heard(self) -> AsyncIterator[Heard]:
        async for line in self.process.lines():
            decoded = decode_line(line)
            yield Heard(raw=decoded.raw, messages=None if decoded.message is None else [decoded.message])

    def put(self, message: Obj) -> None:
        self.process.put_line(message)

    async def resize(self, columns: int, rows: int) -> None:
        await self.process.write_line({"type": "resize", "columns": columns, "rows": rows})

    async def history(self, lines: int) -> list[str] | None:  # noqa: ARG002  # the protocol's signature
        return None

    async def close(self, grace: float) -> Exit:
        return await self.process.close(grace)

    async def abandon(self) -> Exit:
        return await self.process.abandon()


class TmuxLink:
    """A client of tmux. What it shows goes on without it."""

    answers = False

    def __init__(self, process: AgentProcess, server: Server) -> None:
        self.process = process
        self._server = server
        self._control = Control()
        self._begin = asyncio.get_running_loop().time()
        self._code: int | None = None
        self._over = False
        self._left = False
        """We have let go: that our client ends means nothing."""

    async def heard(self) -> AsyncIterator[Heard]:
        async for line in self.process.lines():
            decoded = decode_line(line)
            messages = self._control.feed(line, round(asyncio.get_running_loop().time() - self._begin, 4))
            if messages is None and decoded.message is not None:
                messages = [decoded.message]
            if self._left:
                messages = []
            for message in messages or ():
                if text(message, "type") == "exit":
                    self._over = True
                    self._code = message["code"] = await asyncio.to_thread(self._server.exit_code)
            if self._control.stale:
                self._control.stale = False
                self._look()
            yield Heard(raw=decoded.raw, messages=messages)

    def put(self, message: Obj) -> None:
        for command in keys(self._control.pane, text(message, "data") or ""):
            self._ask("nothing", command)

    async def resize(self, columns: int, rows: int) -> None:
        if self._server.held is None:
            raise unsupported("terminal", "a tmux session of your own is not resized: resize it where you use it")
        self._ask("nothing", f"resize-window -t ={self._server.session}: -x {columns} -y {rows}")

    async def history(self, lines: int) -> list[str] | None:
        return await self._server.history(lines)

    async def close(self, grace: float) -> Exit:
        await self._server.end()
        found = await self.process.close(grace if self._over else 0)
        return msgspec.structs.replace(found, code=self._code) if self._over and found.code == 0 else found

    async def abandon(self) -> Exit:
        self._left = True
        return await self.process.close(0)

    def _look(self) -> None:
        """Asks for the screen as it is: what follows is told by itself."""
        target = f"={self._server.session}:"
        with contextlib.suppress(TrunklineError):
            self._ask("place", f"display-message -p -t {target} '{PLACE}'")
            self._ask("screen", f"capture-pane -p -e -t {target}")

    def _ask(self, what: Asked, command: str) -> None:
        self.process.put_line(command.encode())
        self._control.asked(what)

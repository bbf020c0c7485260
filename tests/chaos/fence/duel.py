"""Two owners of one session, step by step: A goes away, B claims with the next number, A comes back with that number.

The steps are the same whatever takes A away, so that a test may kill the servers between any two of them.
"""

import asyncio
import json
import os
import signal
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final, Literal, Protocol

from tests.chaos.fence.ground import AGENT, WAIT_S, Ground, Line, created, faults, note, texts
from tests.chaos.fence.naive import NaiveWriter, naive_claim

from trunkline_bus import leader
from trunkline_bus.connection import Bus
from trunkline_bus.writer import SessionWriter
from trunkline_testkit import eventually
from trunkline_testkit.forbidden import TRUST_NOBODY
from trunkline_testkit.processes import Guard
from trunkline_wire import TrunklineError, subjects
from trunkline_wire.ids import new_session_id

Away = Literal["cut", "in flight", "ack lost", "stopped"]
"""Why A does not see B's claim: its line is dead and its event written after the claim; its event left before the claim
and arrives after it; its event was stored before the claim and nobody told it; its process is stopped.
"""
AWAY: Final[tuple[Away, ...]] = ("cut", "in flight", "ack lost", "stopped")
_OWNER: Final = Path(__file__).with_name("owner.py")
_ROOT: Final = Path(__file__).parents[3]


class Owner(Protocol):
    """A: sends, without waiting, and tells what became of it."""

    async def send(self, text: str) -> None: ...
    async def fate(self) -> str: ...


class Here:
    """A `SessionWriter` in this process."""

    def __init__(self, writer: SessionWriter) -> None:
        self._writer = writer

    async def send(self, text: str) -> None:
        if self._writer.error is None:
            self._writer.append(note(text))

    async def fate(self) -> str:
        try:
            await self._writer.flush()
        except TrunklineError as error:
            return error.code
        return "stored"


class Naive:
    """A `NaiveWriter` in this process."""

    def __init__(self, writer: NaiveWriter) -> None:
        self._writer = writer
        self._sent: list[asyncio.Task[None]] = []
        self._lock = asyncio.Lock()

    async def send(self, text: str) -> None:
        async def append() -> None:
            async with self._lock:
                await self._writer.append(note(text))

        self._sent.append(asyncio.create_task(append()))
        await asyncio.sleep(0)  # it has left

    async def fate(self) -> str:
        for result in await asyncio.gather(*self._sent, return_exceptions=True):
            if isinstance(result, TrunklineError):
                return result.code
        return "stored"


class Elsewhere:
    """A `SessionWriter` in a process of its own (`owner.py`). `fates` is what it said: of the first event, then of those sent."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.fates: list[str] = []
        self.listening = asyncio.create_task(self._listen())

    async def send(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text.encode() + b"\n")
        await self.process.stdin.drain()

    async def fate(self) -> str:
        await eventually(lambda: len(self.fates) == 3, WAIT_S)
        return self.fates[-1]

    async def _listen(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            self.fates.append(json.loads(line)["fate"])


class Duel:
    """Call the steps in order: `begin`, `leave`, `claim`, `first`, `second`, then `end` and `verdict`."""

    def __init__(self, ground: Ground, away: Away, *, naive: bool = False) -> None:
        self.ground, self.away, self.naive = ground, away, naive
        self.session = new_session_id()
        self.fate = ""
        self._stack = AsyncExitStack()
        self._line: Line
        self._a: Owner
        self._b: SessionWriter | NaiveWriter

    async def begin(self) -> None:
        """A creates the session and has its first event stored."""
        if self.away == "stopped":
            self._line = await self._stack.enter_async_context(self.ground.line())
            self._a = await self._elsewhere()
            return
        self._line, bus = await self._stack.enter_async_context(self.ground.owner())
        writer = await SessionWriter.create(bus, created(), session=self.session, worker="a", agent=AGENT)
        writer.append(note("a0"))
        await writer.flush()
        if self.naive:
            await writer.close()
            self._a = Naive(await _as_naive(bus, self.session))
        else:
            self._stack.push_async_callback(writer.close, within=0)
            self._a = Here(writer)

    async def leave(self) -> None:
        """A is away from here on."""
        match self.away:
            case "cut":
                self._line.cut()
            case "in flight":
                caught = self._line.cut_at("message.system")
                await self._a.send("a1")
                await asyncio.wait_for(caught.wait(), WAIT_S)
            case "ack lost":
                dropped = self._line.deafen()
                await self._a.send("a1")
                await asyncio.wait_for(dropped.wait(), WAIT_S)
                self._line.cut()
            case _:
                assert isinstance(self._a, Elsewhere)
                self._a.process.send_signal(signal.SIGSTOP)

    async def claim(self) -> None:
        """B claims the session, with the number that A's next event has."""
        if self.naive:
            self._b = await naive_claim(self.ground.bus, self.session)
        else:
            self._b = await self.ground.claim(self.session)
            self._stack.push_async_callback(self._b.close, within=0)

    async def first(self) -> None:
        """A sends its event of that number; it reaches the servers, and no answer comes back yet."""
        answered = self._line.deafen()
        if self.away in {"cut", "stopped"}:
            await self._a.send("a1")
        if isinstance(self._a, Elsewhere):
            self._a.process.send_signal(signal.SIGCONT)
        self._line.heal()
        if isinstance(self._a, Elsewhere):
            owner = self._a
            # Where the server died meanwhile it may learn its fate without sending anything.
            await eventually(lambda: answered.is_set() or len(owner.fates) > 1, WAIT_S)

    async def second(self) -> None:
        """A hears what is said to it from here on, and sends one more event."""
        self._line.watch_clear()
        await self._a.send("a2")

    async def end(self) -> None:
        """Waits until A knows its fate and B has gone on."""
        self.fate = await asyncio.wait_for(self._a.fate(), WAIT_S)
        await self._append("b")

    async def verdict(self) -> list[str]:
        """What went wrong."""
        stored = await self.ground.stored(self.session)
        due = [(1, "a0"), *([(1, "a1")] if self.away == "ack lost" else []), (2, "b")]
        found = faults(stored)
        if texts(stored) != due:
            found.append(f"the log holds {texts(stored)} where {due} is due")
        if self.fate != "fenced":
            found.append(f"A was told {self.fate!r}")
        return [f"{self.away}: {fault}" for fault in found]

    async def close(self) -> None:
        await self._stack.aclose()

    async def _append(self, text: str) -> None:
        if isinstance(self._b, NaiveWriter):
            await self._b.append(note(text))
        else:
            self._b.append(note(text))
            await self._b.flush()

    async def _elsewhere(self) -> Elsewhere:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(_OWNER),
            self._line.url,
            self.session,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={"PATH": os.environ["PATH"], **TRUST_NOBODY, "PYTHONPATH": f"{_ROOT}:{_ROOT}/libs"},
        )
        guard = Guard(process.pid)
        owner = Elsewhere(process)

        async def end() -> None:
            if process.returncode is None:
                process.kill()
            await owner.listening
            await process.wait()
            guard.release()

        self._stack.push_async_callback(end)
        await eventually(lambda: owner.fates == ["stored"], WAIT_S)
        return owner


async def _as_naive(bus: Bus, session: str) -> NaiveWriter:
    """A naive owner in place of the one that made the session."""
    last = await leader.last_of(bus.mux, subjects.EVENTS, subjects.agent_fence(session))
    assert last is not None
    return NaiveWriter(bus, session, epoch=1, seq=2, sequence=last.sequence)

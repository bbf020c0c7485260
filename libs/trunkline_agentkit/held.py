"""An agent that goes on without its worker: behind a detached holder (`keeper.py`), which the next worker finds in the session's
directory.

It is taken up by reading all that had passed, in the order in which the worker before had taken it in, into a new translator;
`survivor` says how much of what follows the log has already.
"""

import asyncio
import contextlib
import logging
import os
import secrets
import signal
import subprocess
import sys
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from trunkline_agentkit.agent_process import AgentProcess, Exit, Register, Registration, Said, gone
from trunkline_agentkit.death import HELD, KEEPER, Leash, holder_environment
from trunkline_agentkit.environment import INCARNATION_MARK, SESSION_MARK
from trunkline_agentkit.framing import frame
from trunkline_agentkit.place import places
from trunkline_agentkit.process import STDERR_TAIL, find
from trunkline_agentkit.recorder import Recorder, Speaker
from trunkline_agentkit.sweep import Identity, end_family, reap, start_time, valued
from trunkline_wire import TrunklineError, encode

log = logging.getLogger(__name__)

SPOOL_LIMIT: Final = 64 * 1024 * 1024
"""Bytes of the spool above which an agent can't be taken up any more: what was read of it is forgotten."""
_FULL: Final = 4 * SPOOL_LIMIT
"""Bytes of the spool above which an agent that nobody hears waits."""
_HEAD: Final = 32
"""Bytes of a frame's head, at most."""
_UNREAD: Final = 2 * 1024 * 1024
_BUFFER: Final = 1024 * 1024
_ANSWERS_S: Final = 10.0
_TERM_GRACE: Final = 5.0
_HOLDER_GRACE: Final = 12.0
_KEY: Final = "key"
_SOCKET: Final = "socket"


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """Where the holder of a session's agent is. `epoch` is the owner's: a holder obeys the newest alone."""

    session: str
    directory: Path
    epoch: int
    patience: float = 86_400.0
    """Seconds that it waits for a worker before it ends the agent."""

    @property
    def mark(self) -> dict[str, str]:
        """The mark of everything that it holds."""
        return {SESSION_MARK: f"{HELD}{self.session}"}


class _Frame(msgspec.Struct, frozen=True):
    kind: bytes
    number: int
    after: int
    payload: bytes


class HeldProcess(AgentProcess):
    """Made by `start_held` and `take_up`. `last` is the number up to which something had passed before."""

    def __init__(
        self,
        held: Held,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        registration: Registration,
        *,
        last: int,
        recorder: Recorder | None,
    ) -> None:
        self._held = held
        self._reader = reader
        self._writer = writer
        self.registration = registration
        self._last = last
        self._recorder = recorder
        self._frames: deque[_Frame] = deque()
        self._unread = 0
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._released = False
        self._given = self._taken = 0
        self._seen = 0
        """Bytes since the spool was cut."""
        self._tail = bytearray()
        self._status: int | None = None
        self._ended = asyncio.Event()
        self._over = asyncio.Event()
        """The connection has ended."""
        self._closing = asyncio.Lock()
        self._exit: Exit | None = None
        self._pump = asyncio.create_task(self._receive(), name=f"spool of {registration.pid}")

    @property
    def running(self) -> bool:
        return not self._ended.is_set()

    @property
    def stderr_tail(self) -> str:
        return self._tail.decode(errors="replace")

    async def said(self) -> list[Said]:
        found: list[tuple[tuple[int, int, int], Said]] = []
        read = 0
        while read < self._last and (one := await self._next()) is not None:
            read = one.number
            if one.kind == b"a":
                found.append(((one.number, 0, 0), Said(False, one.payload)))
                self._given = self._taken = one.number
            elif one.kind in {b"h", b"n"}:
                # It stands behind what was taken in when it was said, though more had come by then.
                found.append(((one.after, 1, one.number), Said(True, one.payload)))
        return [said for _, said in sorted(found, key=lambda one: one[0])]

    async def lines(self) -> AsyncIterator[bytes]:
        while (one := await self._next()) is not None:
            if one.kind == b"a":
                self._given = one.number
                self.record("agent", one.payload)
                yield one.payload

    async def chunks(self) -> AsyncIterator[bytes]:
        async for line in self.lines():
            yield line + b"\n"

    def taken(self) -> None:
        self._taken = self._given

    def note(self, message: object) -> None:
        self._send(b"n", after=self._taken, payload=encode(message))

    def put_line(self, message: object) -> None:
        line = frame(message)[:-1]
        if not self.running or self._writer.is_closing():
            raise gone(None)
        self._send(b"h", after=self._taken, payload=line)
        self.record("host", line)

    async def drain(self) -> None:
        try:
            await self._writer.drain()
        except OSError as error:
            raise gone(None) from error

    def open_gate(self) -> None:
        """Lets the program run, once it is registered."""
        self._send(b"g")

    def close_input(self) -> None:
        self._send(b"i")

    def signal_group(self, number: signal.Signals) -> None:
        if self.running:
            self._send(b"s", number=int(number))

    def kill(self) -> None:
        self._send(b"k")

    async def wait(self) -> int:
        await self._ended.wait()
        return os.waitstatus_to_exitcode(self._status) if self._status is not None else -signal.SIGKILL

    async def close(self, grace: float = 5.0) -> Exit:
        ending = asyncio.ensure_future(self._close_once(grace))
        try:
            return await asyncio.shield(ending)
        except asyncio.CancelledError:
            await ending
            raise

    async def abandon(self) -> Exit:
        """Lets go of it: the agent goes on."""
        async with self._closing:
            if self._exit is None:
                self._release()
                with contextlib.suppress(OSError, TimeoutError):
                    async with asyncio.timeout(_ANSWERS_S):
                        await self._writer.drain()
                self._exit = await self._let_go()
            return self._exit

    def record(self, speaker: Speaker, line: bytes) -> None:
        if self._recorder is not None:
            self._recorder.line(speaker, line)

    async def _close_once(self, grace: float) -> Exit:
        async with self._closing:
            if self._exit is None:
                self._release()
                self.close_input()
                if not await _within(grace, self._ended):
                    self.signal_group(signal.SIGTERM)
                    await _within(_TERM_GRACE, self._ended)
                self._send(b"k")
                await _within(_HOLDER_GRACE, self._over)
                self._exit = await self._let_go()
                await end_family(self._held.mark)
                if self.registration.holder is not None:
                    reap(self.registration.holder[0])
                log.info("agent_ended", extra={"pid": self.pid, "exit_code": self._exit.code})
            return self._exit

    async def _let_go(self) -> Exit:
        self._writer.close()
        self._pump.cancel()
        await asyncio.wait({self._pump})
        self._end()  # it may not even have begun
        code = await self.wait()
        exit = Exit(code=code if code >= 0 else None, signal=-code if code < 0 else None, stderr_tail=self.stderr_tail)
        if self._recorder is not None:
            if self._status is not None:
                self._recorder.note("exit", {"code": exit.code, "signal": exit.signal})
            self._recorder.close()
            self._recorder = None
        return exit

    def _release(self) -> None:
        self._released = True
        self._room.set()

    def _send(self, kind: bytes, *, number: int = 0, after: int = 0, payload: bytes = b"") -> None:
        if not self._writer.is_closing():
            self._writer.write(b"%b %d %d %d\n" % (kind, number, after, len(payload)) + payload)

    async def _next(self) -> _Frame | None:
        while not self._frames:
            if self._ended.is_set():
                return None
            self._news.clear()
            await self._news.wait()
        one = self._frames.popleft()
        self._unread -= len(one.payload)
        self._room.set()
        self._forget(one)
        return one

    def _forget(self, one: _Frame) -> None:
        """Keeps the spool bounded: what is longer can't be read again in time."""
        self._seen += len(one.payload) + _HEAD
        if self._seen > SPOOL_LIMIT and one.number >= self._last:
            log.warning("spool_cut", extra={"session": self._held.session, "number": one.number})
            self._send(b"c", number=one.number)
            self._seen = 0

    async def _receive(self) -> None:
        try:
            while True:
                while self._unread >= _UNREAD and not self._released:
                    self._room.clear()
                    await self._room.wait()
                self._take(await _read_frame(self._reader))
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            self._end()

    def _end(self) -> None:
        self._over.set()
        self._ended.set()
        self._news.set()

    def _take(self, one: _Frame) -> None:
        if one.kind == b"x":
            self._status = int(one.payload)
            self._ended.set()
        elif one.kind == b"e":
            self._tail += one.payload
            del self._tail[:-STDERR_TAIL]
            self.record("stderr", one.payload.rstrip(b"\n"))
        self._frames.append(one)
        self._unread += len(one.payload)
        self._news.set()


async def start_held(
    argv: Sequence[str],
    held: Held,
    *,
    cwd: str,
    environment: Mapping[str, str],
    recorder: Recorder | None = None,
    register: Register | None = None,
) -> HeldProcess:
    """As `start_process`, behind a detached holder. Whatever the session's directory has held before is ended."""
    program = await find(argv[0], cwd, environment)
    await end_held(held)
    variables = {name: value for name, value in environment.items() if name != INCARNATION_MARK} | held.mark
    secret = secrets.token_urlsafe(32)
    await asyncio.to_thread(_prepare, held.directory, secret)
    leash = Leash(KEEPER)
    holder = 0
    try:
        holder = await asyncio.to_thread(_start_keeper, leash, cwd, held)
        told = (str(held.directory), secret, str(_FULL), str(held.patience))
        pid = await leash.give((*told, program, *argv[1:]), variables)
        registration = Registration(
            pid=pid,
            pgid=pid,
            started=start_time(pid) or 0.0,
            argv=(program, *argv[1:]),
            holder=(holder, start_time(holder) or 0.0),
        )
        process = await _connect(held, registration, recorder)
    except BaseException:
        leash.let_go()
        await end_held(held)
        reap(holder)
        raise
    try:
        if register is not None:
            await register(registration)
    except BaseException:
        await process.close(grace=0)
        raise
    finally:
        leash.let_go()
    process.open_gate()
    log.info("agent_started", extra={"pid": pid, "hold": "detached"})
    return process


async def take_up(held: Held, registration: Registration, recorder: Recorder | None = None) -> HeldProcess:
    """The agent that a worker has left. Raises TrunklineError `agent_failed` where it can't be taken up, `fenced`."""
    return await _connect(held, registration, recorder)


async def end_held(held: Held) -> int:
    """Ends what the session's directory holds, if anything; how many processes that were."""
    with contextlib.suppress(TrunklineError, OSError):
        process = await _connect(held, Registration(pid=0, pgid=0, started=0.0, argv=()), None)
        process.kill()
        await process.close(grace=0)
    return await end_family(held.mark)


def held_sessions(home: Path) -> dict[str, list[Identity]]:
    """What goes on by itself on this host, held on purpose by whatever holder: its processes, by session."""
    marks = {f"{HELD}{place.session}": place.session for place in places(home)}
    found: dict[str, list[Identity]] = {}
    for value, one in valued(SESSION_MARK) if marks else ():
        if value in marks:
            found.setdefault(marks[value], []).append(one)
    return found


def _prepare(directory: Path, secret: str) -> None:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(directory / _KEY, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(secret)


def _start_keeper(leash: Leash, cwd: str, held: Held) -> int:
    # Not by asyncio, which would end it with us.
    keeper = subprocess.Popen(
        leash.argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=cwd,
        env=holder_environment() | held.mark,
        start_new_session=True,
        pass_fds=(leash.descriptor,),
    )
    keeper.returncode = 0  # it may outlive us: nobody waits for it
    return keeper.pid


async def _connect(held: Held, registration: Registration, recorder: Recorder | None) -> HeldProcess:
    try:
        async with asyncio.timeout(_ANSWERS_S):
            reader, writer = await _open(held.directory)
            secret = await asyncio.to_thread((held.directory / _KEY).read_bytes)
            writer.write(b"w %d 0 %d\n" % (held.epoch, len(secret)) + secret)
            answer = await _read_frame(reader)
    except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
        raise TrunklineError(
            "agent_failed", "the agent that ran on by itself has ended: send a prompt to start it again"
        ) from error
    if answer.kind != b"w":
        writer.close()
        raise TrunklineError("fenced", f"the agent's holder refuses this worker: {answer.payload.decode()}")
    if answer.after > 1 and registration.pid:
        log.warning("spool_incomplete", extra={"session": held.session, "first": answer.after})
        writer.close()
        raise TrunklineError("agent_failed", "the agent has said more than can be read again: it is ended")
    return HeldProcess(held, reader, writer, registration, last=answer.number, recorder=recorder)


async def _open(directory: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    # A whole path may be longer than the system takes.
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        place = Path(f"/proc/self/fd/{opened}") if sys.platform == "linux" else directory
        return await asyncio.open_unix_connection(str(place / _SOCKET), limit=_BUFFER)
    finally:
        os.close(opened)


async def _read_frame(reader: asyncio.StreamReader) -> _Frame:
    kind, number, after, size = (await reader.readuntil(b"\n")).split()
    return _Frame(kind, int(number), int(after), await reader.readexactly(int(size)))


async def _within(seconds: float, event: asyncio.Event) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True

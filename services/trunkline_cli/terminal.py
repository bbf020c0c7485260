"""A session's terminal in front of a person: their own terminal becomes it, until they leave. It outlives the gateway."""

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import termios
import tty
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final, Literal

import aiohttp
import msgspec

from trunkline_bus.tasks import end
from trunkline_client import (
    FIRST_DELAY,
    LONGEST_DELAY,
    Address,
    ConnectionLostError,
    Link,
    Socket,
    error_of,
    open_session,
    open_socket,
)
from trunkline_wire import TrunklineError, decode_json, encode
from trunkline_wire.ids import uuid7_hex
from trunkline_wire.terminal import ACK_EVERY, MAX_KEYS, Frame, TerminalState, read_frame

PREFIX: Final = 0x1D
"""Ctrl-]: what follows is for Trunkline."""
CHOICES: Final = (
    "Ctrl-] then: d leave, t take the keyboard, r release it, s start the program, ? this; Ctrl-] again: itself"
)
CONNECT_S: Final = 10.0
SILENT_S: Final = 60.0
HISTORY: Final = 500
_AFTERWARDS: Final = (
    "\x1b[?1049l\x1b[!p\x1b[0m\x1b[r\x1b[?1;9;1000;1002;1003;1004;1005;1006;1015;2004l\x1b[?7h\x1b[?25h\x1b[999;1H\r\n"
)

Act = Literal["leave", "take", "release", "start", "help"]
_ACTS: Final[dict[int, Act]] = {
    ord("d"): "leave",
    ord("."): "leave",
    ord("t"): "take",
    ord("r"): "release",
    ord("s"): "start",
    ord("?"): "help",
}


class Keys:
    """What is typed, taken apart: keys for the program, and acts. Pure."""

    def __init__(self) -> None:
        self._prefixed = False

    def feed(self, data: bytes) -> list[bytes | Act]:
        found: list[bytes | Act] = []
        plain = bytearray()
        for key in data:
            if self._prefixed:
                self._prefixed = False
                if key == PREFIX:
                    plain.append(key)
                    continue
                if plain:
                    found.append(bytes(plain))
                    plain.clear()
                found.append(_ACTS.get(key, "help"))
            elif key == PREFIX:
                self._prefixed = True
            else:
                plain.append(key)
        if plain:
            found.append(bytes(plain))
        return found


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """`writes`: the keyboard is taken where nobody has it. `fits`: the terminal gets the size of this one then."""

    writes: bool
    takes: bool = False
    """From whoever has it, at first."""
    fits: bool = True


class Attached:
    """One person at one terminal. `run` returns the exit code once they have left, or the session is closed."""

    def __init__(self, link: Link, find: Callable[[], Address], session: str, options: Options) -> None:
        self._link = link
        self._find = find
        self._session = session
        self._options = options
        self._viewer = uuid7_hex()[-16:]
        self._ws: Socket | None = None
        self._keys = Keys()
        self._typed: asyncio.Queue[bytes] = asyncio.Queue()
        self._left = asyncio.Event()
        self._state: TerminalState | None = None
        self._me = ""
        self._received = self._acked = 0
        self._out = sys.stdout.buffer

    async def run(self) -> int:
        with _raw(self._on_keys), _resized(self._fit):
            typing = asyncio.create_task(self._type())
            leaving = asyncio.create_task(self._left.wait())
            watching = asyncio.create_task(self._watch())
            try:
                await asyncio.wait({leaving, watching}, return_when=asyncio.FIRST_COMPLETED)
                if watching.done():
                    watching.result()
            finally:
                for task in (typing, leaving, watching):
                    await end(task)
                if sys.stdout.isatty():
                    self._write(_AFTERWARDS.encode())
        return 0

    async def _watch(self) -> None:
        """Looks until the session is closed; connects again whenever the connection breaks."""
        delay = FIRST_DELAY
        while True:
            try:
                await self._look()
                delay = FIRST_DELAY
            except (ConnectionLostError, aiohttp.ClientError, OSError, TimeoutError):
                self._note("the gateway is gone; reconnecting (Ctrl-] d leaves)")
            if await self._closed():
                return
            await asyncio.sleep(delay)
            delay = min(LONGEST_DELAY, delay * 2)

    async def _closed(self) -> bool:
        found = await self._link.call("session.get", session=self._session)
        return found["state"].get("closed") is not None

    async def _look(self) -> None:
        """One connection. Raises ConnectionLostError when it ends, TrunklineError where one may not look."""
        address = self._find()
        async with open_session(address) as http:
            async with asyncio.timeout(CONNECT_S):
                ws = await open_socket(http, address, f"/ws/terminal/{self._session}")
            history = HISTORY if self._state is None else 0
            hello = {"type": "hello", "viewer": self._me or self._viewer, "history": history, "token": address.token}
            await ws.send_str(encode({name: value for name, value in hello.items() if value is not None}).decode())
            self._ws, self._received, self._acked = ws, 0, 0
            try:
                while await self._hear(await ws.receive(timeout=SILENT_S)):
                    pass
            finally:
                self._ws = None
                await ws.close()

    async def _hear(self, message: aiohttp.WSMessage) -> bool:
        if message.type is aiohttp.WSMsgType.BINARY:
            self._received += len(message.data)
            if (frame := read_frame(message.data)) is not None:
                self._show(frame)
            if self._received - self._acked >= ACK_EVERY // 2:
                self._acked = self._received
                await self._say("ack", bytes=self._received)
            return True
        if message.type is not aiohttp.WSMsgType.TEXT:
            raise ConnectionLostError("the gateway closed the connection")
        await self._told(decode_json(message.data))
        return not self._left.is_set()

    def _show(self, frame: Frame) -> None:
        if frame.kind == b"o":
            self._write(frame.content)
        elif frame.kind == b"p":
            painting, content = frame.painting
            self._write(content)
            here = shutil.get_terminal_size()
            small = painting.columns > here.columns or painting.rows > here.lines
            if small and not self._writes and sys.stdout.isatty():
                size = f"{painting.columns}x{painting.rows}"
                self._note(f"the terminal has {size}, yours {here.columns}x{here.lines}: make it larger, or Ctrl-] t")

    @property
    def _writes(self) -> bool:
        writer = self._state.writer if self._state is not None else None
        return writer is not None and writer.viewer == self._me

    async def _told(self, said: dict[str, Any]) -> None:
        match said.get("type"):
            case "hello":
                self._me = said["viewer"]
                if said["role"] != "viewer" and self._options.writes:
                    await self._say("take", force=self._options.takes and self._state is None)
                else:
                    self._note("you only look; Ctrl-] d leaves")
            case "state":
                had, self._state = self._writes, msgspec.convert(said["state"], TerminalState)
                self._on_state(had=had)
            case "lost":
                self._note("waiting for the session's worker (Ctrl-] d leaves)")
                if await self._closed():
                    self._left.set()
            case "error" if said.get("of") is None:
                raise error_of(said.get("error"))
            case "error":
                self._note(error_of(said.get("error")).message)
            case _:
                pass

    def _on_state(self, *, had: bool) -> None:
        state = self._state
        if state is None:
            return
        if not state.running:
            self._note("the program does not run; Ctrl-] s starts it, Ctrl-] d leaves")
        elif self._writes and not had:
            self._fit()
            self._note("you type here; Ctrl-] d leaves, Ctrl-] ? says more")
        elif had and not self._writes:
            who = state.writer.actor if state.writer is not None else "nobody"
            self._note(f"{who} types now; Ctrl-] t takes the keyboard back")

    def _fit(self) -> None:
        """The terminal gets this one's size, if we are who types there."""
        if self._writes and self._options.fits and sys.stdout.isatty():
            here = shutil.get_terminal_size()
            self._soon("resize", columns=here.columns, rows=here.lines)

    def _on_keys(self, data: bytes) -> None:
        for key in self._keys.feed(data):
            match key:
                case bytes():
                    if self._options.writes:
                        self._typed.put_nowait(key)
                case "leave":
                    self._left.set()
                case "take":
                    self._soon("take", force=True)
                case "release":
                    self._soon("release")
                case "start":
                    self._start()
                case _:
                    self._note(CHOICES)

    def _start(self) -> None:
        async def start() -> None:
            try:
                await self._link.call("terminal.open", session=self._session)
            except TrunklineError as error:
                self._note(error.message)

        self._later(start())

    async def _type(self) -> None:
        while True:
            keys = bytearray(await self._typed.get())
            while not self._typed.empty() and len(keys) < MAX_KEYS // 2:
                keys += self._typed.get_nowait()
            for at in range(0, len(keys), MAX_KEYS):
                if self._ws is not None:
                    with contextlib.suppress(ConnectionError, aiohttp.ClientError):
                        await self._ws.send_bytes(bytes(keys[at : at + MAX_KEYS]))

    def _soon(self, type: str, **fields: Any) -> None:
        self._later(self._say(type, **fields))

    def _later(self, work: Any) -> None:
        task = asyncio.create_task(work)
        _running.add(task)
        task.add_done_callback(_running.discard)

    async def _say(self, type: str, **fields: Any) -> None:
        if self._ws is not None:
            with contextlib.suppress(ConnectionError, aiohttp.ClientError):
                await self._ws.send_str(encode({"type": type, **fields}).decode())

    def _note(self, text: str) -> None:
        """A line over the last row, until the program writes there."""
        if sys.stdout.isatty():
            columns = shutil.get_terminal_size().columns
            self._write(f"\x1b7\x1b[999;1H\x1b[0;7m {text[: columns - 2]} \x1b[0m\x1b8".encode())
        else:
            sys.stderr.write(f"{text}\n")

    def _write(self, data: bytes) -> None:
        self._out.write(data)
        self._out.flush()


_running: Final[set[asyncio.Task[Any]]] = set()


@contextmanager
def _raw(on_keys: Callable[[bytes], None]) -> Generator[None]:
    """Every key as it is typed, while the block runs; nothing where there is no keyboard."""
    if not sys.stdin.isatty():
        yield
        return
    descriptor, loop = sys.stdin.fileno(), asyncio.get_running_loop()
    before = termios.tcgetattr(descriptor)

    def readable() -> None:
        data = os.read(descriptor, 65536)
        on_keys(data or bytes((PREFIX, ord("d"))))

    tty.setraw(descriptor)
    loop.add_reader(descriptor, readable)
    try:
        yield
    finally:
        loop.remove_reader(descriptor)
        termios.tcsetattr(descriptor, termios.TCSAFLUSH, before)


@contextmanager
def _resized(on_size: Callable[[], None]) -> Generator[None]:
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGWINCH, on_size)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)

"""The terminals that somebody looks at through this gateway: what their owners send, and to whom it goes.

Nothing is kept here but who looks: a terminal's owner knows its screen and who types. When the owner dies its viewers wait, and get the
screen of the next one.
"""

import asyncio
import contextlib
import logging
from typing import Final, Protocol

import msgspec
import nats.errors

from trunkline_bus.client import Received
from trunkline_bus.connection import Bus
from trunkline_bus.mux import Lost, Mux
from trunkline_wire import TrunklineError, encode, subjects
from trunkline_wire.ids import uuid7_hex
from trunkline_wire.terminal import (
    ACK_EVERY,
    Frame,
    Painting,
    TerminalReply,
    TerminalRequest,
    TerminalState,
    keys_message,
    read_frame,
)

log = logging.getLogger(__name__)

ALIVE_EVERY_S: Final = 2.0
AGAIN_S: Final = 0.25
LOOK_S: Final = 0.05
ANSWER_S: Final = 3.0
PAINTS_S: Final = 10.0


class Viewer(Protocol):
    """Who looks at a terminal. None of its methods may wait."""

    @property
    def id(self) -> str: ...

    @property
    def history(self) -> int:
        """Lines above the screen that its first painting brings."""
        ...

    def show(self, frame: bytes) -> None: ...

    def paint(self, frame: bytes, painting: Painting, content: bytes) -> None: ...

    def state(self, state: TerminalState) -> None: ...

    def lost(self) -> None:
        """Nobody holds the terminal at the moment, or something is missing: a painting follows."""
        ...

    def wants_painting(self, now: float) -> bool: ...


class _Line:
    """One session's terminal. `terminal` names the one that its frames are of."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.viewers: dict[str, Viewer] = {}
        self.terminal: str | None = None
        self.received = 0
        self.acked = 0
        self.attached = False


class Terminals:
    """Run `run()` as a task."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._out = Mux(bus.commands)
        self._name = f"gw{uuid7_hex()[-16:]}"
        self._lines: dict[str, _Line] = {}
        self._tending: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Hears terminals until cancelled."""
        subscription = await self._bus.commands.subscribe_direct(subjects.terminals_out(self._name), self._on_frame)
        try:
            await asyncio.Event().wait()
        finally:
            for task in self._tending.values():
                task.cancel()
            await asyncio.gather(*self._tending.values(), return_exceptions=True)
            with contextlib.suppress(Exception):
                await subscription.unsubscribe()

    def join(self, session: str, viewer: Viewer) -> None:
        """From now on the viewer gets what the terminal shows, beginning with a painting, whenever there is one."""
        line = self._lines.get(session)
        if line is None:
            line = self._lines[session] = _Line(session)
            self._tending[session] = asyncio.create_task(self._tend(line), name=f"terminal of {session}")
        line.viewers[viewer.id] = viewer
        if line.attached:
            # A painting of its own, while the others go on.
            task = asyncio.create_task(self._attach(line, viewer))
            self._tending[f"{session} {viewer.id}"] = task
            task.add_done_callback(lambda _: self._tending.pop(f"{session} {viewer.id}", None))

    def leave(self, session: str, viewer: Viewer) -> None:
        line = self._lines.get(session)
        if line is None or line.viewers.get(viewer.id) is not viewer:
            return
        del line.viewers[viewer.id]
        self.tell(session, TerminalRequest(kind="release", viewer=viewer.id))
        if not line.viewers:
            del self._lines[session]
            self._tending.pop(session).cancel()
            self.tell(session, TerminalRequest(kind="alive", gateway=self._name))

    async def ask(self, session: str, request: TerminalRequest, within: float = ANSWER_S) -> TerminalReply:
        """The owner's answer. Raises its TrunklineError; `no_terminal` where nobody holds the terminal."""
        try:
            answer = await self._bus.commands.request(subjects.terminal_ctl(session), encode(request), timeout=within)
            reply = msgspec.json.decode(answer.data, type=TerminalReply)
        except nats.errors.NoRespondersError:
            raise TrunklineError("no_terminal", "nobody holds a terminal of this session at the moment") from None
        except (TimeoutError, nats.errors.Error, msgspec.MsgspecError) as error:
            raise TrunklineError("no_terminal", f"the session's owner does not answer: {error}") from error
        if reply.error is not None:
            raise TrunklineError(reply.error.code, reply.error.message, **reply.error.details)
        return reply

    def tell(self, session: str, request: TerminalRequest) -> None:
        """Says something that needs no answer."""
        with contextlib.suppress(Lost, TrunklineError):
            self._out.send(subjects.terminal_ctl(session), encode(request))

    def type(self, session: str, viewer: str, keys: bytes) -> None:
        with contextlib.suppress(Lost, TrunklineError):
            self._out.send(subjects.terminal_in(session), keys_message(viewer, keys))

    # What comes

    def _on_frame(self, message: Received) -> None:
        session = message.subject.split(".")[2]
        line, frame = self._lines.get(session), read_frame(message.data)
        if line is None or frame is None:
            return
        if line.terminal is None and frame.kind == b"p":
            line.terminal = frame.terminal
        if frame.terminal != line.terminal:
            return
        match frame.kind:
            case b"o":
                self._printed(line, frame, message.data)
            case b"p":
                self._painted(line, frame, message.data)
            case b"s":
                self._stated(line, frame)
            case _:
                pass

    def _printed(self, line: _Line, frame: Frame, raw: bytes) -> None:
        if frame.offset != line.received:
            for viewer in line.viewers.values():
                viewer.lost()
        line.received = frame.offset + len(frame.content)
        for viewer in line.viewers.values():
            viewer.show(raw)
        if line.received - line.acked >= ACK_EVERY:
            self._ack(line)

    def _painted(self, line: _Line, frame: Frame, raw: bytes) -> None:
        try:
            painting, content = frame.painting
        except msgspec.MsgspecError:
            return
        if painting.viewer is None or line.received <= frame.offset:
            if painting.viewer is not None and line.received < frame.offset:
                self._hole(line, painting.viewer)
            line.received = frame.offset
        named = [line.viewers.get(painting.viewer)] if painting.viewer is not None else list(line.viewers.values())
        for viewer in named:
            if viewer is not None:
                viewer.paint(raw, painting, content)
        self._ack(line)

    @staticmethod
    def _hole(line: _Line, painted: str) -> None:
        for name, viewer in line.viewers.items():
            if name != painted:
                viewer.lost()

    @staticmethod
    def _stated(line: _Line, frame: Frame) -> None:
        with contextlib.suppress(msgspec.MsgspecError):
            state = msgspec.json.decode(frame.content, type=TerminalState)
            for viewer in line.viewers.values():
                viewer.state(state)

    def _ack(self, line: _Line) -> None:
        line.acked = line.received
        self.tell(line.session, TerminalRequest(kind="ack", gateway=self._name, offset=line.received))

    # What is done for viewers

    async def _tend(self, line: _Line) -> None:
        """Keeps a terminal attached, whoever owns it, and asks for the paintings that viewers want."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                await self._attach_all(line)
            except TrunklineError:
                await asyncio.sleep(AGAIN_S)
                continue
            alive_at = loop.time()
            while line.attached:
                await asyncio.sleep(LOOK_S)
                now = loop.time()
                for viewer in list(line.viewers.values()):
                    if viewer.wants_painting(now):
                        self.tell(line.session, TerminalRequest(kind="paint", gateway=self._name, viewer=viewer.id))
                if now - alive_at >= ALIVE_EVERY_S:
                    alive_at = now
                    await self._look_alive(line)
            for viewer in line.viewers.values():
                viewer.lost()

    async def _look_alive(self, line: _Line) -> None:
        request = TerminalRequest(kind="alive", gateway=self._name, viewers=list(line.viewers))
        try:
            reply = await self.ask(line.session, request)
        except TrunklineError:
            line.attached = False
            return
        if not reply.known or reply.state is None or reply.state.terminal != line.terminal:
            line.attached = False

    async def _attach_all(self, line: _Line) -> None:
        line.terminal = None
        line.received = line.acked = 0
        for viewer in list(line.viewers.values()):
            await self._attach(line, viewer)
        line.attached = True

    async def _attach(self, line: _Line, viewer: Viewer) -> None:
        request = TerminalRequest(kind="attach", gateway=self._name, viewer=viewer.id, history=viewer.history)
        reply = await self.ask(line.session, request, PAINTS_S)
        if reply.state is not None:
            if line.terminal is None:
                line.terminal = reply.state.terminal
            viewer.state(reply.state)

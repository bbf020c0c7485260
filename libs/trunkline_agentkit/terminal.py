"""The terminal of one session, as its owner holds it: who looks, who types, and what each gateway has had.

Live bytes go to each gateway as long as it takes them; one that falls behind gets nothing more until it has said that it has
everything, and then the screen as it is. So nothing queues, whoever stands still, and the program never waits for a viewer.
"""

import asyncio
import codecs
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from trunkline_agentkit.protocol import BackendSession, Terminal
from trunkline_bus import metrics
from trunkline_bus.client import Received
from trunkline_bus.connection import Bus
from trunkline_bus.mux import Lost, Mux
from trunkline_wire import ErrorInfo, TrunklineError, encode, subjects
from trunkline_wire.ids import uuid7_hex
from trunkline_wire.terminal import (
    ACK_EVERY,
    LARGEST_SIDE,
    MAX_HISTORY,
    WINDOW,
    Kind,
    Painting,
    TerminalReply,
    TerminalRequest,
    TerminalState,
    Writer,
    frame,
    read_keys,
)

log = logging.getLogger(__name__)

LOST_AFTER_S: Final = 10.0
"""Seconds after which a gateway that says nothing is forgotten, with its viewers."""
UNATTACHED_S: Final = 60.0
"""Seconds without a key after which one who types without looking gives up the keyboard."""
RESIZE_EVERY_S: Final = 0.1
_AGAIN_S: Final = 0.1
"""Seconds after which a gateway that is behind is looked at again."""
_UNTYPED: Final = 256 * 1024
"""Bytes of keys that may wait; more are dropped."""
_REQUESTS: Final = 256
_PIECE: Final = 256 * 1024
_LARGEST_PAINTING: Final = 768 * 1024

_requests: Final = msgspec.json.Decoder(TerminalRequest)


class _Gateway(msgspec.Struct):
    """`sent` and `acked` count the terminal's bytes. `behind`: nothing is sent until there is a painting."""

    name: str
    heard: float
    viewers: set[str]
    sent: int = 0
    acked: int = 0
    behind: bool = False
    painting: bool = False


class TerminalHost:
    """`ensure` starts the session's agent, `touch` notes that somebody is there."""

    def __init__(
        self, bus: Bus, session: str, *, ensure: Callable[[], Awaitable[object]], touch: Callable[[], None]
    ) -> None:
        self._bus = bus
        self._out = Mux(bus.commands)
        self._session = session
        self._ensure = ensure
        self._touch = touch
        self._name = uuid7_hex()[-16:]
        self._terminal: Terminal | None = None
        self._offset = 0
        self._gateways: dict[str, _Gateway] = {}
        self._writer: Writer | None = None
        self._typed_at = 0.0
        self._told_size: tuple[int, int] | None = None
        self._size: tuple[int, int] | None = None
        """What the writer wants."""
        self._keys = bytearray()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._asked: deque[tuple[TerminalRequest, str]] = deque(maxlen=_REQUESTS)
        self._work = asyncio.Event()
        self._typing = asyncio.Event()
        self._resizing = asyncio.Event()
        self._watching = asyncio.Event()

    @property
    def state(self) -> TerminalState:
        terminal = self._terminal
        columns, rows = terminal.size if terminal is not None else (0, 0)
        return TerminalState(
            terminal=self._name,
            running=terminal is not None,
            columns=columns,
            rows=rows,
            writable=terminal is None or terminal.writable,
            writer=self._writer,
        )

    def use(self, session: BackendSession | None) -> None:
        """The session's agent is this one now; None: none runs."""
        if self._terminal is not None:
            self._terminal.follow(None)
            metrics.TERMINALS.dec()
        self._terminal = session if isinstance(session, Terminal) else None
        self._keys.clear()
        if self._terminal is not None:
            self._terminal.follow(self._shows)
            metrics.TERMINALS.inc()
        self._all_behind()
        self._tell_state()

    async def run(self) -> None:
        """Serves viewers until cancelled."""
        control = await self._bus.commands.subscribe_direct(subjects.terminal_ctl(self._session), self._on_request)
        keys = await self._bus.commands.subscribe_direct(subjects.terminal_in(self._session), self._on_keys)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._serve())
                group.create_task(self._type())
                group.create_task(self._resize())
                group.create_task(self._watch())
        finally:
            for subscription in (control, keys):
                with contextlib.suppress(Exception):
                    await subscription.unsubscribe()

    # What is printed

    def _shows(self, data: bytes) -> None:
        if self._terminal is not None and self._terminal.size != self._told_size:
            # Whoever looks needs a screen of the new size first.
            self._tell_state()
            self._all_behind()
        for at in range(0, len(data), _PIECE):
            piece = data[at : at + _PIECE]
            start = self._offset
            self._offset += len(piece)
            for gateway in self._gateways.values():
                if gateway.behind:
                    continue
                if self._offset - gateway.acked > WINDOW or not self._send(gateway, b"o", start, piece):
                    gateway.behind = True
                else:
                    gateway.sent = self._offset

    def _send(self, gateway: _Gateway, kind: Kind, offset: int, content: bytes) -> bool:
        if self._bus.commands.congested:
            return False
        return self._publish(
            subjects.terminal_out(self._session, gateway.name), frame(kind, self._name, offset, content)
        )

    def _publish(self, subject: str, data: bytes) -> bool:
        try:
            self._out.send(subject, data)
        except (Lost, TrunklineError):
            return False
        return True

    def _tell_state(self) -> None:
        self._told_size = self._terminal.size if self._terminal is not None else None
        state = encode(self.state)
        for gateway in self._gateways.values():
            self._send(gateway, b"s", self._offset, state)

    def _all_behind(self) -> None:
        for gateway in self._gateways.values():
            gateway.behind = True
        self._work.set()

    # What is asked

    def _on_request(self, message: Received) -> None:
        with contextlib.suppress(msgspec.MsgspecError):
            request = _requests.decode(message.data)
            if request.kind == "ack":
                self._acked(request)
            else:
                self._asked.append((request, message.reply))
                self._work.set()

    def _acked(self, request: TerminalRequest) -> None:
        gateway = self._gateways.get(request.gateway)
        if gateway is not None:
            gateway.heard = _now()
            gateway.acked = max(gateway.acked, min(request.offset, self._offset))
            if gateway.behind:
                self._work.set()

    async def _serve(self) -> None:
        while True:
            self._work.clear()
            while self._asked:
                request, reply = self._asked.popleft()
                answer = await self._answer(request)
                if reply:
                    self._publish(reply, encode(answer))
            for gateway in list(self._gateways.values()):
                # What it has not said yet that it has may be less than it says at a time.
                if gateway.behind and gateway.acked + ACK_EVERY >= gateway.sent:
                    await self._paint_safely(gateway)
            again = any(gateway.behind for gateway in self._gateways.values())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_AGAIN_S if again else None):
                    await self._work.wait()

    async def _answer(self, request: TerminalRequest) -> TerminalReply:
        try:
            known = await self._obey(request)
        except TrunklineError as error:
            return TerminalReply(state=self.state, error=ErrorInfo.of(error))
        except Exception:
            log.exception("terminal_request_failed", extra={"session": self._session, "kind": request.kind})
            error = ErrorInfo(code="internal", message="a fault of the worker; its log has the details")
            return TerminalReply(state=self.state, error=error)
        return TerminalReply(state=self.state, known=known)

    async def _paint_safely(self, gateway: _Gateway) -> None:
        try:
            await self._paint(gateway)
        except Exception:
            log.exception("terminal_not_painted", extra={"session": self._session})
            await asyncio.sleep(_AGAIN_S)

    async def _obey(self, request: TerminalRequest) -> bool:
        gateway = self._gateways.get(request.gateway)
        if gateway is not None:
            gateway.heard = _now()
        match request.kind:
            case "open":
                await self._ensure()
                if self._terminal is None:
                    raise TrunklineError("no_terminal", "the session's agent has no terminal")
            case "attach":
                if gateway is None:
                    gateway = _Gateway(request.gateway, _now(), set(), sent=self._offset, acked=self._offset)
                    self._gateways[request.gateway] = gateway
                    self._watching.set()
                gateway.viewers.add(request.viewer)
                await self._paint(gateway, request.viewer, request.history)
            case "paint" if gateway is not None:
                await self._paint(gateway, request.viewer, request.history)
            case "alive" if gateway is not None:
                self._touch()
                gateway.viewers = set(request.viewers)
                if not gateway.viewers:
                    del self._gateways[gateway.name]
            case "take":
                self._take(request)
            case "release":
                if self._writer is not None and self._writer.viewer == request.viewer:
                    self._write_as(None)
            case "resize":
                self._require_writer(request.viewer)
                columns, rows = (max(1, min(side, LARGEST_SIDE)) for side in (request.columns, request.rows))
                self._size = (columns, rows)
                self._resizing.set()
            case _:
                return False
        return True

    async def _paint(self, gateway: _Gateway, viewer: str | None = None, history: int = 0) -> None:
        """The screen, for one viewer or for all of a gateway's; what is printed next follows it."""
        terminal = self._terminal
        if terminal is None:
            self._send(gateway, b"s", self._offset, encode(self.state))
            gateway.behind = False
            return

        def place(painted: bytes) -> None:
            columns, rows = terminal.size
            head = encode(Painting(viewer=viewer, columns=columns, rows=rows))
            sent = self._send(gateway, b"p", self._offset, head + b"\n" + painted[:_LARGEST_PAINTING])
            if viewer is None and sent:
                gateway.behind = False
                gateway.sent = gateway.acked = self._offset

        await terminal.paint(max(0, min(history, MAX_HISTORY)), place)

    # Who types

    def _take(self, request: TerminalRequest) -> None:
        writer = self._writer
        if self._terminal is not None and not self._terminal.writable:
            raise TrunklineError("unsupported", "this terminal is only looked at", capability="terminal")
        if writer is not None and writer.viewer != request.viewer and not request.force:
            raise TrunklineError(
                "terminal_taken", f"{writer.actor or 'somebody'} types there: take it over, or wait", actor=writer.actor
            )
        if writer is None or writer.viewer != request.viewer:
            self._write_as(Writer(viewer=request.viewer, actor=request.actor))

    def _write_as(self, writer: Writer | None) -> None:
        self._writer = writer
        self._watching.set()
        self._typed_at = _now()
        self._keys.clear()
        self._decoder.reset()
        self._tell_state()

    def _require_writer(self, viewer: str) -> None:
        if self._writer is None or self._writer.viewer != viewer:
            raise TrunklineError("terminal_taken", "take the terminal first: only who types there sets its size")

    def _on_keys(self, message: Received) -> None:
        viewer, keys = read_keys(message.data)
        if self._writer is None or viewer != self._writer.viewer:
            self._tell_state()
            return
        if len(self._keys) + len(keys) <= _UNTYPED:
            self._keys += keys
            self._typing.set()
        self._typed_at = _now()

    async def _type(self) -> None:
        while True:
            await self._typing.wait()
            self._typing.clear()
            text = self._decoder.decode(bytes(self._keys))
            self._keys.clear()
            if text and self._terminal is not None:
                self._touch()
                try:
                    await self._terminal.type(text)
                except Exception as error:  # noqa: BLE001  # whatever a terminal says, the session goes on
                    log.info("keys_refused", extra={"session": self._session, "error": str(error)})

    async def _resize(self) -> None:
        """Sets the size that the writer wants, at a pace: whoever draws a window larger asks for many."""
        while True:
            await self._resizing.wait()
            await asyncio.sleep(RESIZE_EVERY_S)
            self._resizing.clear()
            size, self._size = self._size, None
            if size is None or self._terminal is None or size == self._terminal.size:
                continue
            try:
                await self._terminal.resize(*size)
            except Exception as error:  # noqa: BLE001  # whatever a terminal says, the session goes on
                log.info("resize_refused", extra={"session": self._session, "error": str(error)})
                continue
            self._all_behind()
            self._tell_state()

    async def _watch(self) -> None:
        """Forgets gateways and writers that are gone."""
        while True:
            if not self._gateways and self._writer is None:
                self._watching.clear()
                await self._watching.wait()
            await asyncio.sleep(1)
            now = _now()
            for gateway in list(self._gateways.values()):
                if now - gateway.heard > LOST_AFTER_S:
                    del self._gateways[gateway.name]
            viewer = self._writer.viewer if self._writer is not None else ""
            attached = any(viewer in gateway.viewers for gateway in self._gateways.values())
            if viewer and not attached and now - self._typed_at > UNATTACHED_S:
                self._write_as(None)


def _now() -> float:
    return asyncio.get_running_loop().time()

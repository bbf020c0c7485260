"""`/ws/terminal/<session>`: one viewer of a terminal.

A connection of its own, so that a flood of output stands in no event's way, and with messages of its own: binary ones are what the
terminal prints and what the viewer types, texts are JSON. From the viewer: `hello` {token?, viewer?, history?}, `take` {force?},
`release`, `resize` {columns, rows}, `ack` {bytes}, `ping`. To it: `hello` {viewer, role, answers}, `state`, `lost`, `error`,
`pong`, and frames as `trunkline_wire.terminal` has them. A viewer says how many bytes of frames it has had, at least every 32 KB;
a `ping` is answered at once, whatever the terminal does: so a viewer finds out that its connection is dead.
"""

import asyncio
import contextlib
import logging
import time
from typing import Any, Final, Literal

import msgspec
from aiohttp import WSCloseCode, WSMsgType, web

from trunkline_bus import metrics
from trunkline_gateway.access import Access, peer_of
from trunkline_gateway.agents import refuse_agents
from trunkline_gateway.dispatch import refuse, require_ready
from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.methods.terminals import take, viewer_of
from trunkline_gateway.roles import Principal
from trunkline_gateway.sight import require_sight
from trunkline_gateway.viewer import Flow
from trunkline_gateway.wsframe import message_frame
from trunkline_wire import ErrorInfo, TrunklineError, encode
from trunkline_wire.ids import check_id
from trunkline_wire.secret import Discreet, Secret
from trunkline_wire.terminal import MAX_HISTORY, MAX_KEYS, Painting, TerminalRequest, TerminalState

log = logging.getLogger(__name__)

_SHOWN: Final = metrics.GATEWAY_TERMINAL_BYTES.labels("out")
_TYPED: Final = metrics.GATEWAY_TERMINAL_BYTES.labels("in")

HELLO_S: Final = 10.0
PING_S: Final = 30.0
KEYS_A_SECOND: Final = 256 * 1024
KEYS_AT_ONCE: Final = 1024 * 1024
MOST_TEXTS: Final = 256 * 1024
"""Bytes that may wait in the socket before answers to a viewer that reads nothing end its connection."""


class _Said(Discreet, frozen=True):
    """A text of the viewer's."""

    type: Literal["hello", "take", "release", "resize", "ack", "ping"]
    token: Secret | None = None
    viewer: str | None = None
    history: int = 0
    force: bool = False
    columns: int = 0
    rows: int = 0
    bytes: int = 0


_texts: Final = msgspec.json.Decoder(_Said)


class TerminalConnection:
    """One viewer. `run()` returns when the connection has ended."""

    def __init__(self, gateway: Gateway, access: Access, request: web.Request, principal: Principal | None) -> None:
        self._gateway = gateway
        self._access = access
        self._request = request
        self._session = check_id(request.match_info["session"], "ses")
        self._peer = peer_of(request)
        self._principal = principal
        self._ws = web.WebSocketResponse(max_msg_size=2 * MAX_KEYS, compress=False, heartbeat=PING_S)
        self._flow = Flow(self._write)
        self._ended: asyncio.Future[tuple[int, str]] = asyncio.get_running_loop().create_future()
        self._allowance = float(KEYS_AT_ONCE)
        self._counted = time.monotonic()
        self._person = False
        self._shown: TerminalState | None = None
        self.id = ""
        self.history = 0

    @property
    def token(self) -> str | None:
        return self._principal.token if self._principal is not None else None

    def end(self, code: int, reason: str) -> None:
        """End the connection from outside: the gateway stops, or the token was revoked."""
        if not self._ended.done():
            self._ended.set_result((code, reason))

    async def run(self) -> web.WebSocketResponse:
        await self._ws.prepare(self._request)
        metrics.GATEWAY_CLIENTS.labels("terminal").inc()
        serving = asyncio.create_task(self._serve())
        try:
            await asyncio.wait({serving, self._ended}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._gateway.terminals.leave(self._session, self)
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
            metrics.GATEWAY_CLIENTS.labels("terminal").dec()
            code, reason = self._ended.result() if self._ended.done() else (WSCloseCode.OK, "")
            if reason:
                metrics.GATEWAY_DROPPED.labels(reason).inc()
                log.info("dropped", extra={"reason": reason, "peer": str(self._request.remote or "socket")})
            with contextlib.suppress(TimeoutError, ConnectionError):
                async with asyncio.timeout(2):
                    await self._ws.close(code=code, message=reason.encode())
            if (transport := self._request.transport) is not None and transport.get_write_buffer_size():
                transport.abort()  # to a viewer that reads nothing the rest would wait for ever
        return self._ws

    async def _serve(self) -> None:
        try:
            await self._begin()
            async for message in self._ws:
                if message.type is WSMsgType.BINARY:
                    await self._keys(message.data)
                elif message.type is WSMsgType.TEXT:
                    await self._obey(message.data)
        except TrunklineError as error:
            self._say("error", error=ErrorInfo.of(error))
            if error.status in (401, 403):
                self._access.note_refusal(error, self._request)
            self.end(WSCloseCode.POLICY_VIOLATION, error.code)
        except ConnectionError:
            pass
        except Exception:
            log.exception("connection_failed")
            self.end(WSCloseCode.INTERNAL_ERROR, "internal")

    async def _begin(self) -> None:
        """The viewer's hello, and who it is. Raises TrunklineError for one who may not look."""
        try:
            async with asyncio.timeout(HELLO_S):
                hello = _read(await self._ws.receive_str())
        except (TimeoutError, TypeError):
            raise TrunklineError("bad_frame", "say `hello` first") from None
        if hello.type != "hello":
            raise TrunklineError("bad_frame", "say `hello` first")
        if hello.token is not None:
            self._principal = await self._access.sign_in(hello.token, self._request)
        if self._principal is None:
            raise TrunklineError("unauthorized", "say `hello` with a token")
        await require_ready(self._gateway)
        await require_sight(self._gateway.directory, self._principal, self._session)
        await self._gateway.directory.session(self._session)
        if self._principal.expires is not None:
            left = max(0.0, self._principal.expires - time.time())
            asyncio.get_running_loop().call_later(left, self.end, WSCloseCode.POLICY_VIOLATION, "expired")
        self.id = viewer_of(self._principal, hello.viewer)
        self.history = max(0, min(hello.history, MAX_HISTORY))
        self._say("hello", viewer=self.id, actor=self._principal.actor, role=self._principal.role, answers=True)
        self._gateway.terminals.join(self._session, self)

    async def _obey(self, text: str) -> None:
        said = _read(text)
        try:
            match said.type:
                case "ack":
                    self._flow.ack(said.bytes)
                case "ping":
                    self._say("pong")
                case "take":
                    caller = self._writing("terminal.take")
                    if not self._person:
                        await refuse_agents(self._gateway, caller)
                        self._person = True
                    self.state(await take(self._gateway, caller, self._session, self.id, force=said.force))
                case "release":
                    await self._ask(TerminalRequest(kind="release", viewer=self.id))
                case "resize":
                    self._writing("terminal.resize")
                    request = TerminalRequest(kind="resize", viewer=self.id, columns=said.columns, rows=said.rows)
                    await self._ask(request)
                case _:
                    raise TrunklineError("bad_frame", f"{said.type!r} has no place here")
        except TrunklineError as error:
            self._refuse(said.type, error)

    async def _ask(self, request: TerminalRequest) -> None:
        reply = await self._gateway.terminals.ask(self._session, request)
        if reply.state is not None:
            self.state(reply.state)

    async def _keys(self, keys: bytes) -> None:
        try:
            self._writing("terminal.input")
            if not self._person:
                raise TrunklineError("terminal_taken", "take the terminal first")
            if len(keys) > MAX_KEYS:
                raise TrunklineError("too_large", f"at most {MAX_KEYS} bytes of keys in a message")
        except TrunklineError as error:
            self._refuse("input", error)
            return
        _TYPED.inc(len(keys))
        await self._pace(len(keys))
        self._gateway.terminals.type(self._session, self.id, keys)

    async def _pace(self, size: int) -> None:
        """Whoever types more than anybody can is read more slowly."""
        now = time.monotonic()
        self._allowance = min(KEYS_AT_ONCE, self._allowance + (now - self._counted) * KEYS_A_SECOND) - size
        self._counted = now
        if self._allowance < 0:
            await asyncio.sleep(-self._allowance / KEYS_A_SECOND)

    def _writing(self, method: str) -> Caller:
        """Raises TrunklineError `forbidden` for whoever may only look."""
        assert self._principal is not None
        self._principal.require("participant", method)
        return Caller(principal=self._principal, peer=self._peer)

    def _refuse(self, what: str, error: TrunklineError) -> None:
        self._say("error", of=what, error=ErrorInfo.of(error))
        if error.status in (401, 403) and self._principal is not None:
            refuse(self._gateway, Caller(principal=self._principal, peer=self._peer), f"terminal.{what}", error)

    # The viewer's side of what its terminal shows

    def show(self, frame: bytes) -> None:
        _SHOWN.inc(len(frame))
        self._flow.show(frame, time.monotonic())

    def paint(self, frame: bytes, painting: Painting, content: bytes) -> None:  # noqa: ARG002  # others want its parts
        self._flow.paint(frame, time.monotonic())

    def state(self, state: TerminalState) -> None:
        if state != self._shown:
            self._shown = state
            self._say("state", state=state)

    def lost(self) -> None:
        if not self._flow.waiting:
            self._say("lost")
        self._shown = None
        self._flow.lose()

    def wants_painting(self, now: float) -> bool:  # noqa: ARG002  # it counts by its own clock
        return self._flow.wants_painting(time.monotonic())

    def _say(self, type: str, **fields: Any) -> None:
        self._put(message_frame(encode({"type": type, **fields}), text=True))

    def _write(self, data: bytes) -> None:
        self._put(message_frame(data))

    def _put(self, data: bytes) -> None:
        """Writes in this step: what is on its way is bounded by the flow."""
        transport = self._request.transport
        if transport is None or transport.is_closing():
            return
        if len(data) < MOST_TEXTS and transport.get_write_buffer_size() > 4 * MOST_TEXTS:
            self.end(WSCloseCode.POLICY_VIOLATION, "not_reading")
            return
        transport.write(data)


def _read(text: str) -> _Said:
    """Raises TrunklineError `bad_frame`."""
    try:
        return _texts.decode(text)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise TrunklineError("bad_frame", f"not a message of a terminal's viewer: {error}") from error

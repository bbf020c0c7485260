"""The WebSocket: requests in, answers and events out, one task group a connection."""

import asyncio
import contextlib
import logging
import time
from functools import partial
from typing import Any, Final, Literal

import msgspec
from aiohttp import WSCloseCode, WSMsgType, web

from trunkline_bus import metrics
from trunkline_gateway.access import Access, peer_of
from trunkline_gateway.calls import all_methods
from trunkline_gateway.dispatch import call
from trunkline_gateway.followed import Followed, Switch, Unsubscribe
from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.outbox import NotReadingError, Outbox
from trunkline_gateway.presence import Seat
from trunkline_gateway.problems import error_frame
from trunkline_gateway.registry import Params, read_params
from trunkline_gateway.roles import Principal
from trunkline_gateway.subscribe import Subscribe
from trunkline_gateway.wsframe import text_frames
from trunkline_wire import TrunklineError, encode, replace_lone_surrogates
from trunkline_wire.secret import Secret

log = logging.getLogger(__name__)

PROTOCOL: Final = 1
HEARTBEAT_S: Final = 15.0
SILENT_S: Final = 45.0
PINGS: Final = 4
"""Pings between two heartbeats, to those whom others see: one that no longer answers is gone within seconds."""
HELLO_S: Final = 10.0
HARD_LIMIT: Final = 8 * 1024 * 1024
"""Above this a frame ends the connection; between the setting `max_frame` and this it is refused with `too_large`."""
MAX_PARALLEL: Final = 64
MAX_REFUSED: Final = 200
"""Requests over the rate, one after another, that are refused before the connection ends."""
PROTOCOL_METHODS: Final = ("hello", "subscribe", "unsubscribe", "session.switch")


class Request(msgspec.Struct, frozen=True):
    """A frame of a client."""

    type: Literal["req"]
    id: str | int
    method: str
    params: msgspec.Raw = msgspec.Raw(b"{}")


class _Id(msgspec.Struct, frozen=True):
    id: str | int | None = None


class Hello(Params, frozen=True, kw_only=True):
    protocol: int
    client: str | None = None
    token: Secret | None = None


class DroppedError(Exception):
    """The connection has to end; `reason` is told to the client."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


_requests: Final = msgspec.json.Decoder(Request)
_ids: Final = msgspec.json.Decoder(_Id)


class Connection:
    """One client. `run()` returns when the connection has ended."""

    def __init__(self, gateway: Gateway, access: Access, request: web.Request, principal: Principal | None) -> None:
        self._gateway = gateway
        self._access = access
        self._request = request
        self._peer = peer_of(request)
        self._principal = principal
        self._ws = web.WebSocketResponse(
            max_msg_size=HARD_LIMIT, compress=False, autoping=False, heartbeat=None, writer_limit=0
        )
        self._outbox = Outbox(self._write, self._write_now)
        self._heard = time.monotonic()
        self._parallel = asyncio.Semaphore(MAX_PARALLEL)
        self._seat: Seat | None = None
        self._followed = Followed(gateway, self._outbox)
        self._refused = 0
        self._ended: asyncio.Future[DroppedError] = asyncio.get_running_loop().create_future()

    @property
    def token(self) -> str | None:
        return self._principal.token if self._principal is not None else None

    def end(self, code: int, reason: str) -> None:
        """End the connection from outside: the gateway stops, or the token was revoked."""
        if not self._ended.done():
            self._ended.set_result(DroppedError(code, reason))

    async def run(self) -> web.WebSocketResponse:
        await self._ws.prepare(self._request)
        metrics.GATEWAY_CLIENTS.labels("ws").inc()
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                group.create_task(self._outbox.run())
                group.create_task(self._watch())
                await self._receive()
                raise DroppedError(WSCloseCode.OK, "")
        except* DroppedError as dropped:
            error = dropped.exceptions[0]
            if isinstance(error, DroppedError) and error.reason:
                await self._close(error)
        except* NotReadingError:
            self._abort("not_reading")
        except* ConnectionError:
            pass
        except* Exception:
            log.exception("connection_failed")
            await self._close(DroppedError(WSCloseCode.INTERNAL_ERROR, "internal"))
        finally:
            metrics.GATEWAY_CLIENTS.labels("ws").dec()
            if self._seat is not None:
                await self._seat.close()
            with contextlib.suppress(TimeoutError, ConnectionError):
                async with asyncio.timeout(2):
                    await self._ws.close()
        return self._ws

    async def _write(self, frames: list[bytes]) -> None:
        transport = self._request.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError
        if len(frames) > 1:
            # Many frames in one write cost an eighth of many writes.
            transport.write(text_frames(frames[:-1]))
        await self._ws.send_frame(frames[-1], WSMsgType.TEXT)

    def _write_now(self, frame: bytes) -> bool:
        transport = self._request.transport
        if transport is None or transport.is_closing() or transport.get_write_buffer_size():
            return False
        transport.write(text_frames((frame,)))
        return True

    async def _receive(self) -> None:
        while True:
            message = await self._ws.receive()
            self._heard = time.monotonic()
            match message.type:
                case WSMsgType.TEXT:
                    await self._take(message.data.encode())
                case WSMsgType.BINARY:
                    await self._take(message.data)
                case WSMsgType.PING:
                    await self._ws.pong(message.data)
                case WSMsgType.PONG:
                    pass
                case _:
                    return

    async def _take(self, raw: bytes) -> None:
        try:
            if len(raw) > self._gateway.settings.max_frame:
                raise TrunklineError(
                    "too_large",
                    f"the frame has {len(raw)} bytes, at most {self._gateway.settings.max_frame} are allowed",
                )
            self._access.count(self._request, self._principal, len(raw))
            request = _read(raw)
        except TrunklineError as error:
            self._refused = self._refused + 1 if error.code == "rate_limited" else 0
            if self._refused > MAX_REFUSED:
                raise DroppedError(WSCloseCode.POLICY_VIOLATION, "flooding") from error
            self._outbox.force(error_frame(_id_of(raw), error))
            return
        self._refused = 0
        # A client with too many calls under way is not read from until some are answered.
        await self._parallel.acquire()
        self._group.create_task(self._answer(request))

    async def _answer(self, request: Request) -> None:
        try:
            if request.method in PROTOCOL_METHODS:
                await self._protocol(request)
            else:
                payload = await call(self._gateway, self._caller(), request.method, request.params)
                self._reply(request, payload)
        except TrunklineError as error:
            self._outbox.force(error_frame(request.id, error))
            if error.code == "unauthorized":
                self._access.note_refusal(error, self._request)
                self.end(WSCloseCode.POLICY_VIOLATION, "unauthorized")
        finally:
            self._parallel.release()

    def _reply(self, request: Request, payload: Any) -> None:
        self._outbox.force(encode({"type": "res", "id": request.id, "ok": True, "payload": payload}))

    async def _protocol(self, request: Request) -> None:
        if request.method == "hello":
            await self._hello(request)
            return
        principal, reply, followed = self._caller().principal, partial(self._reply, request), self._followed
        match request.method:
            case "subscribe":
                params = read_params(Subscribe, request.params)
                await followed.subscribe(self._group, principal, self._seat, params, reply)
            case "session.switch":
                params = read_params(Switch, request.params)
                await followed.switch(self._group, principal, self._seat, params, reply)
            case _:
                followed.unsubscribe(read_params(Unsubscribe, request.params), reply)

    def _caller(self) -> Caller:
        if self._principal is None:
            raise TrunklineError("unauthorized", "say `hello` with a token first")
        return Caller(principal=self._principal, peer=self._peer, seat=self._seat)

    async def _hello(self, request: Request) -> None:
        params = read_params(Hello, request.params)
        if params.protocol != PROTOCOL:
            raise TrunklineError(
                "bad_params", f"this gateway speaks protocol {PROTOCOL}, not {params.protocol}", field="protocol"
            )
        if params.token is not None:
            self._principal = await self._access.sign_in(params.token, self._request)
        caller = self._caller()
        if self._seat is None:
            client = (params.client or "")[:64]
            self._seat = self._gateway.presence.seat(caller.principal, client, lambda: time.monotonic() - self._heard)
        self._gateway.audit.signed_in(caller.principal, (params.client or "")[:64])
        self._reply(
            request,
            {
                "protocol": PROTOCOL,
                "version": self._gateway.version,
                "host": self._gateway.host,
                "actor": caller.principal.actor,
                "role": caller.principal.role,
                "scope": caller.principal.scope,
                "device": caller.principal.device,
                "expires": caller.principal.expires,
                "methods": sorted([*all_methods(self._gateway), *PROTOCOL_METHODS]),
                "heartbeat_s": HEARTBEAT_S,
                "silent_s": SILENT_S,
                "max_frame": self._gateway.settings.max_frame,
            },
        )

    async def _watch(self) -> None:
        """Heartbeats; ends the connection when it has to end. One task for all: an idle client costs little memory."""
        await self._until_ended(HELLO_S)
        if self._principal is None:
            raise DroppedError(WSCloseCode.POLICY_VIOLATION, "no_hello")
        while True:
            self._heartbeat()
            for _ in range(PINGS):
                await self._until_ended(HEARTBEAT_S / PINGS)
                if self._seat is not None and self._seat.taken and not self._outbox.writing:
                    self._group.create_task(self._ping())
            # While a write is stuck our pings are too: then the outbox decides.
            if time.monotonic() - self._heard > SILENT_S and not self._outbox.writing:
                raise DroppedError(WSCloseCode.POLICY_VIOLATION, "silent")

    async def _until_ended(self, seconds: float) -> None:
        """Wait that long; raises DroppedError as soon as the connection was ended from outside."""
        expires = self._principal.expires if self._principal is not None else None
        left = seconds if expires is None else min(seconds, expires - time.time())
        await asyncio.wait((self._ended,), timeout=max(0.0, left))
        if self._ended.done():
            raise self._ended.result()
        if left < seconds:
            raise DroppedError(WSCloseCode.POLICY_VIOLATION, "expired")

    def _heartbeat(self) -> None:
        cursors = self._followed.cursors()
        frame: dict[str, Any] = {"type": "heartbeat"}
        if len(self._followed) == 1 and cursors:
            frame["cursor"] = next(iter(cursors.values()))
        elif cursors:
            frame["cursors"] = cursors
        if not self._outbox.writing:
            self._outbox.force(encode(frame))
            self._group.create_task(self._ping())

    async def _ping(self) -> None:
        with contextlib.suppress(ConnectionError):
            await self._ws.ping()

    async def _close(self, dropped: DroppedError) -> None:
        metrics.GATEWAY_DROPPED.labels(dropped.reason).inc()
        log.info("dropped", extra={"reason": dropped.reason, "peer": str(self._request.remote or "socket")})
        with contextlib.suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(2):
                await self._outbox.flush()
                await self._ws.close(code=dropped.code, message=dropped.reason.encode())

    def _abort(self, reason: str) -> None:
        metrics.GATEWAY_DROPPED.labels(reason).inc()
        log.info("dropped", extra={"reason": reason, "peer": str(self._request.remote or "socket")})
        if self._request.transport is not None:
            self._request.transport.abort()


def _read(raw: bytes) -> Request:
    """Raises TrunklineError `bad_frame`."""
    try:
        try:
            return _requests.decode(raw)
        except msgspec.DecodeError:
            # JavaScript writes halves of surrogate pairs, which are no Unicode.
            return _requests.decode(replace_lone_surrogates(raw))
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise TrunklineError("bad_frame", f"not a request of the protocol: {error}") from error


def _id_of(raw: bytes) -> str | int | None:
    """The id of a request that can't be read otherwise, so that its sender can tell which one it was."""
    try:
        return _ids.decode(raw).id
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None

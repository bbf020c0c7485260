"""One connection to a gateway: calls with their answers, and events by subscription. Nothing here reconnects."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Protocol, Self, cast

import aiohttp

from trunkline_client.address import Address
from trunkline_client.lost import ConnectionLostError
from trunkline_client.straight import straight
from trunkline_wire import ERRORS, TrunklineError, decode_json, encode

PROTOCOL = 1
CONNECT_TIMEOUT = 10.0
CALL_TIMEOUT = 60.0
SILENCE = 45.0
"""Seconds without a frame after which the connection counts as dead: the gateway sends a heartbeat every 15 s."""

MOST_WAITING = 10_000
MOST_BYTES = 32 * 1024 * 1024
"""Frames, and bytes of them, that may wait for whoever reads the events. More end the connection: its cursor is where to go on."""

Frame = dict[str, Any]


class Socket(Protocol):
    """As much of a WebSocket as is used: aiohttp's, or a sealed one."""

    async def send_str(self, data: str, /) -> None: ...
    async def send_bytes(self, data: bytes, /) -> None: ...
    async def receive(self, timeout: float | None = None) -> aiohttp.WSMessage: ...  # noqa: ASYNC109 - as aiohttp has it
    async def close(self) -> object: ...


class Connection:
    """Use `async with await Connection.connect(address)`. Events of all subscriptions come through `events`."""

    def __init__(self, http: aiohttp.ClientSession, ws: Socket, address: Address) -> None:
        self.address = address
        self._http = http
        self._ws = ws
        self._answers: dict[str, asyncio.Future[Frame]] = {}
        self._calls = 0
        self._events: asyncio.Queue[tuple[Frame, int] | None] = asyncio.Queue()
        self._waiting = 0
        """Bytes of the frames in `_events`."""
        self._heard = 0.0
        self._alarm: asyncio.TimerHandle | None = None
        self._reader = asyncio.create_task(self._read())
        self.server: Frame = {}

    @classmethod
    async def connect(cls, address: Address, *, name: str = "python") -> Self:
        """Connect and say hello as the program `name`.

        Raises the gateway's TrunklineError, `unauthorized` for a token that it does not take, ConnectionLostError if nobody listens.
        """
        http = open_session(address)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                ws = await open_socket(http, address, "/ws", _headers(address))
        except aiohttp.WSServerHandshakeError as error:
            await http.close()
            raise _refused(error.status, address) from error
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            await http.close()
            raise ConnectionLostError(f"no gateway answers at {_place(address)}: {error}") from error
        except BaseException:
            await http.close()
            raise
        client = cls(http, ws, address)
        try:
            client.server = await client.call("hello", protocol=PROTOCOL, client=name)
        except BaseException:
            await client.close()
            raise
        return client

    async def call(self, method: str, *, within: float = CALL_TIMEOUT, **params: Any) -> Any:
        """A method's payload. `None` parameters are left out.

        Raises the gateway's TrunklineError, `timeout` after `within` seconds, ConnectionLostError.
        """
        self._calls += 1
        number = str(self._calls)
        future: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self._answers[number] = future
        given = {name: value for name, value in params.items() if value is not None}
        try:
            if self._reader.done():
                raise ConnectionLostError("the gateway closed the connection")
            await self._ws.send_str(encode({"type": "req", "id": number, "method": method, "params": given}).decode())
            async with asyncio.timeout(within):
                frame = await future
        except TimeoutError:
            raise TrunklineError(
                "timeout", f"the gateway did not answer {method!r} within {within:g} s; it may still take effect"
            ) from None
        except (aiohttp.ClientError, ConnectionResetError) as error:
            raise ConnectionLostError(f"the connection broke: {error}") from error
        finally:
            self._answers.pop(number, None)
        if frame.get("ok"):
            return frame.get("payload")
        raise error_of(frame.get("error"))

    async def events(self) -> AsyncIterator[Frame]:
        """Frames of type `event` and `heartbeat`, as they come. Raises ConnectionLostError at the end.

        Whoever is too slow for them finds the connection ended: what waits is bounded, and goes on from its cursor.
        """
        while True:
            waiting = await self._events.get()
            if waiting is None:
                raise ConnectionLostError("the gateway closed the connection")
            frame, size = waiting
            self._waiting -= size
            yield frame

    async def close(self) -> None:
        self._reader.cancel()
        await asyncio.wait({self._reader})
        await self._ws.close()
        await self._http.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _read(self) -> None:
        loop = asyncio.get_running_loop()
        self._heard = loop.time()
        self._listen()
        try:
            while True:
                message = await self._ws.receive()
                if message.type is not aiohttp.WSMsgType.TEXT:
                    return
                self._heard = loop.time()
                value = decode_json(message.data)
                frames = cast("list[Frame]", value if isinstance(value, list) else [value])
                for frame in frames:
                    self._take(frame, len(message.data) // len(frames))
                if self._events.qsize() > MOST_WAITING or self._waiting > MOST_BYTES:
                    return
        except (aiohttp.ClientError, OSError):
            return
        finally:
            if self._alarm is not None:
                self._alarm.cancel()
            lost = ConnectionLostError("the gateway closed the connection")
            for future in self._answers.values():
                if not future.done():
                    future.set_exception(lost)
            self._events.put_nowait(None)

    def _listen(self) -> None:
        """Ends the reading once nothing has come for too long. One timer: a limit for each message costs more than all else."""
        loop = asyncio.get_running_loop()
        left = self._heard + SILENCE - loop.time()
        if left > 0:
            self._alarm = loop.call_later(left, self._listen)
        else:
            self._reader.cancel()

    def _take(self, frame: Frame, size: int) -> None:
        if frame.get("type") == "res":
            future = self._answers.get(str(frame.get("id")))
            if future is not None and not future.done():
                future.set_result(frame)
        elif frame.get("type") in ("event", "heartbeat"):
            self._events.put_nowait((frame, size))
            self._waiting += size


def error_of(error: Frame | None) -> TrunklineError:
    """The error of a frame; a code that this version does not know stays readable in the message."""
    error = error or {}
    code, message = str(error.get("code", "internal")), str(error.get("message", "the gateway gave no reason"))
    details: dict[str, Any] = error.get("details") or {}
    if code not in ERRORS:
        return TrunklineError("internal", f"{code}: {message}", server_code=code, **details)
    return TrunklineError(code, message, **details)


def open_session(address: Address) -> aiohttp.ClientSession:
    """What connects to this address, without a limit of time."""
    by_socket = address.socket is not None and address.sealed is None
    connector = aiohttp.UnixConnector(str(address.socket)) if by_socket else aiohttp.TCPConnector()
    return aiohttp.ClientSession(
        connector=connector,
        timeout=aiohttp.ClientTimeout(total=None),
        trace_configs=[straight()] if address.sealed is not None else None,
    )


async def open_socket(
    http: aiohttp.ClientSession, address: Address, path: str, headers: dict[str, str] | None = None
) -> Socket:
    """A WebSocket of a gateway at `path`; over the relay, if that is the way. Raises what aiohttp does, and like `SealedSocket.connect`."""
    if address.sealed is not None:
        from trunkline_client.sealed import SealedSocket

        return await SealedSocket.connect(http, address.sealed, path)
    return await http.ws_connect(f"{address.url}{path}", headers=headers, max_msg_size=0)


def _headers(address: Address) -> dict[str, str]:
    return {"Authorization": f"Bearer {address.token}"} if address.token else {}


def _place(address: Address) -> object:
    return address.sealed.paired.relay if address.sealed is not None else address.socket or address.url


def _refused(status: int, address: Address) -> Exception:
    if status in (401, 403):
        hint = "set TRUNKLINE_TOKEN" if address.token is None else "check TRUNKLINE_TOKEN"
        return TrunklineError("unauthorized", f"the gateway at {address.url} refused this client: {hint}")
    return ConnectionLostError(f"the gateway at {address.url} answered with HTTP status {status}")

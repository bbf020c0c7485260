"""A WebSocket of a host's gateway, through a relay that can't read it: as much of aiohttp's as its users need."""

import asyncio
import contextlib
from typing import Final, Self

import aiohttp
import msgspec

from trunkline_client.lost import ConnectionLostError
from trunkline_client.paired import Paired, Sealed
from trunkline_client.relayed import PASSING, Number, Refusal, Wire, public_identity, reach, read_control
from trunkline_seal import BINARY, CONTROL, TEXT, Identity, Route, control, host_name
from trunkline_seal.channel import MAX_MESSAGE, cost
from trunkline_wire import TrunklineError

WINDOW: Final = 512 * 1024
"""What messages may cost that are on their way without being acknowledged; one that costs more goes alone."""
ACK_EVERY: Final = 64 * 1024
MOST_WAITING: Final = cost(MAX_MESSAGE, 0) + WINDOW
"""What may wait to be received: a host that keeps to the window never has more on its way."""
CLOSE_S: Final = 2.0


class _Closed(msgspec.Struct, frozen=True):
    code: int = 1000
    reason: str = ""


class _Said(msgspec.Struct, frozen=True):
    """A control message of the host's, once the path is open."""

    ack: int | None = None
    identity: str | None = None
    number: Number = 0
    closed: _Closed | None = None
    failed: Refusal | None = None


class _Answer(msgspec.Struct, frozen=True):
    opened: bool = False
    failed: Refusal | None = None


class SealedSocket:
    """One path of the host's gateway. Several tasks may send, one receives."""

    def __init__(self, wire: Wire, sealed: Sealed) -> None:
        self._wire = wire
        self._sealed = sealed
        self._messages: asyncio.Queue[tuple[aiohttp.WSMessage, int]] = asyncio.Queue()
        """With what each costs."""
        self._waiting = 0
        self._sent = self._acked = 0
        """What messages cost, and those that the host has taken."""
        self._taken = self._told = 0
        """The same of the other direction."""
        self._room = asyncio.Event()
        self._due = asyncio.Event()
        self._ended = False
        self.close_code: int | None = None
        self._tasks = [asyncio.create_task(self._pump()), asyncio.create_task(self._acknowledge())]

    @classmethod
    async def connect(cls, http: aiohttp.ClientSession, sealed: Sealed, path: str) -> Self:
        """`path`: `/ws`, or that of a terminal.

        Raises TrunklineError where relay or host refuse this device for good, ConnectionLostError where a later try may do better.
        """
        try:
            return cls(await _opened(http, sealed, path), sealed)
        except TrunklineError as error:
            if error.code in PASSING:
                raise ConnectionLostError(error.message) from error
            raise

    async def send_str(self, text: str) -> None:
        await self._send(TEXT, text.encode())

    async def send_bytes(self, data: bytes) -> None:
        await self._send(BINARY, data)

    async def receive(self, timeout: float | None = None) -> aiohttp.WSMessage:  # noqa: ASYNC109 - as aiohttp has it
        """The next message. What comes after the last one is CLOSED, again and again."""
        if self._ended and self._messages.empty():
            return _CLOSED
        async with asyncio.timeout(timeout):
            message, size = await self._messages.get()
        self._waiting -= size
        self._taken += size
        if self._taken - self._told >= ACK_EVERY:
            self._due.set()
        return message

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> aiohttp.WSMessage:
        message = await self.receive()
        if message.type not in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY):
            raise StopAsyncIteration
        return message

    async def close(self, *, code: int = 1000, message: bytes = b"") -> None:
        """Says so as the last of all, if it still can be said."""
        if not self._ended:
            with contextlib.suppress(ConnectionLostError, TimeoutError):
                async with asyncio.timeout(CLOSE_S):
                    await self._wire.say(
                        {"closed": {"code": code, "reason": message.decode(errors="replace")}}, last=True
                    )
            self._end(code)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._wire.close()

    async def _send(self, kind: int, message: bytes) -> None:
        while self._sent - self._acked >= WINDOW and not self._ended:
            self._room.clear()
            await self._room.wait()
        if self._ended:
            raise ConnectionLostError("the connection to the host is over")
        self._sent += self._wire.cost(message)
        await self._wire.send(kind, message)

    async def _acknowledge(self) -> None:
        """Beside `receive`, which must not wait for whoever takes what is sent."""
        with contextlib.suppress(ConnectionLostError):
            while not self._ended:
                await self._due.wait()
                self._due.clear()
                self._told = self._taken
                await self._wire.say({"ack": self._told})

    async def _pump(self) -> None:
        code, reason = 1006, ""
        try:
            while not self._wire.ended:
                kind, message = await self._wire.receive()
                if kind == CONTROL:
                    closed = self._hear(message)
                    if closed is not None:
                        code, reason = closed.code, closed.reason
                    continue
                size = self._wire.cost(message)
                self._waiting += size
                if self._waiting > MOST_WAITING:
                    raise TrunklineError("too_large", "the host sends more than was acknowledged")
                type, data = (
                    (aiohttp.WSMsgType.TEXT, message.decode()) if kind == TEXT else (aiohttp.WSMsgType.BINARY, message)
                )
                self._messages.put_nowait((aiohttp.WSMessage(type, data, None), size))
        except (ConnectionLostError, TrunklineError, aiohttp.ClientError, OSError, UnicodeError) as error:
            reason = str(error)
        finally:
            self._end(code)
            self._messages.put_nowait((aiohttp.WSMessage(aiohttp.WSMsgType.CLOSE, code, reason), 0))

    def _hear(self, message: bytes) -> _Closed | None:
        said = read_control(message, _Said)
        if said.ack is not None:
            if not self._acked <= said.ack <= self._sent:
                raise TrunklineError("bad_frame", "the host acknowledges what was never sent to it")
            self._acked = said.ack
            self._room.set()
        if said.identity is not None:
            self._sealed.learn(public_identity(said.identity), said.number)
        if said.failed is not None:
            return _Closed(1008, said.failed.code)
        return said.closed

    def _end(self, code: int) -> None:
        self._ended = True
        if self.close_code is None:
            self.close_code = code
        self._room.set()
        self._due.set()


_CLOSED: Final = aiohttp.WSMessage(aiohttp.WSMsgType.CLOSED, None, None)


async def _opened(http: aiohttp.ClientSession, sealed: Sealed, path: str) -> Wire:
    paired = sealed.look()
    route = Route.of(paired.seed)
    wire, about = await reach(
        http,
        paired.relay,
        paired.route,
        Identity.of(paired.secret),
        paired.identity,
        {"route": control.b64(route.public)},
        lambda relay, challenge: _proof(paired, route, relay, challenge),
    )
    try:
        sealed.learn(about.newest, about.number)
        pad = max(paired.pad, about.pad)
        await wire.say({"open": path, "token": paired.token, "pad": pad})
        answer = await wire.hear(_Answer)
        if answer.failed is not None:
            raise answer.failed.error()
        if not answer.opened:
            raise TrunklineError("bad_frame", "the host says neither yes nor no")
        wire.pad(pad)
        return wire
    except BaseException:
        await wire.close()
        raise


def _proof(paired: Paired, route: Route, relay: str, challenge: bytes) -> control.Device:
    signature = route.sign(control.device_text(relay, host_name(paired.route), challenge))
    return control.Device(route=control.b64(route.public), signature=control.b64(signature))

"""Between a device and the gateway: WebSocket messages both ways, in a window, until one of the two has enough."""

import asyncio
from typing import Any, Final

import aiohttp
import msgspec

from trunkline_relay.sealed import GoneError, Sealed
from trunkline_seal.channel import BINARY, CONTROL, TEXT
from trunkline_wire import TrunklineError

WINDOW: Final = 512 * 1024
"""What messages may cost that are on their way to the device; above it the gateway is not read from."""
ACK_EVERY: Final = 64 * 1024
CLOSE_S: Final = 5.0
"""Seconds that the last word to the device may take."""
REVOKED: Final = (1008, "revoked")


class Closed(msgspec.Struct, frozen=True):
    code: int = 1000
    reason: str = ""


class _Said(msgspec.Struct, frozen=True):
    ack: int | None = None
    closed: Closed | None = None


_said: Final = msgspec.json.Decoder(_Said)


class Bridge:
    """One device's connection to one path of the gateway."""

    def __init__(self, sealed: Sealed, gateway: aiohttp.ClientWebSocketResponse) -> None:
        self._sealed = sealed
        self._gateway = gateway
        self._sent = 0
        self._acked = 0
        self._taken = 0
        self._told = 0
        self._room = asyncio.Event()
        self._ended: asyncio.Future[Closed] = asyncio.get_running_loop().create_future()

    def end(self, code: int, reason: str) -> None:
        """From outside: the device was revoked, the host stops."""
        if not self._ended.done():
            self._ended.set_result(Closed(code, reason))

    async def run(self) -> str:
        """Until it is over; the reason, empty where the device ended it. Raises TrunklineError `bad_seal`, `bad_frame`."""
        up, down = asyncio.create_task(self._up()), asyncio.create_task(self._down())
        try:
            await asyncio.wait({up, down, self._ended}, return_when=asyncio.FIRST_COMPLETED)
            if self._ended.done():
                closed = self._ended.result()
                await _cancelled(up, down)  # nothing goes on while that is told
            elif up.done():
                return up.result()
            else:
                closed = down.result()
            async with asyncio.timeout(CLOSE_S):
                await self._sealed.say({"closed": closed}, last=True)
            return closed.reason or "closed"
        except (GoneError, TimeoutError):
            return ""
        finally:
            await _cancelled(up, down)

    async def _up(self) -> str:
        """From the device to the gateway."""
        while True:
            kind, message = await self._sealed.receive()
            if kind == CONTROL:
                said = _read(message)
                if said.ack is not None:
                    self._ack(said.ack)
                if said.closed is not None:
                    await self._gateway.close(code=_code(said.closed.code), message=said.closed.reason.encode()[:120])
                    return ""
                continue
            try:
                if kind == TEXT:
                    await self._gateway.send_str(_text(message))
                elif kind == BINARY:
                    await self._gateway.send_bytes(message)
            except (ConnectionError, aiohttp.ClientError):
                await asyncio.Event().wait()  # what the gateway closed with comes by the other way
            self._taken += self._sealed.cost(message)
            if self._taken - self._told >= ACK_EVERY:
                self._told = self._taken
                await self._sealed.say({"ack": self._taken})

    async def _down(self) -> Closed:
        """From the gateway to the device."""
        while True:
            while self._sent - self._acked >= WINDOW:
                self._room.clear()
                await self._room.wait()
            message = await self._gateway.receive()
            match message.type:
                case aiohttp.WSMsgType.TEXT:
                    kind, data = TEXT, message.data.encode()
                case aiohttp.WSMsgType.BINARY:
                    kind, data = BINARY, message.data
                case aiohttp.WSMsgType.CLOSE:
                    return Closed(int(message.data or 1000), str(message.extra or ""))
                case _:
                    return Closed(self._gateway.close_code or 1006, "the gateway is gone")
            self._sent += self._sealed.cost(data)
            await self._sealed.send(kind, data)

    def _ack(self, taken: int) -> None:
        if not self._acked <= taken <= self._sent:
            raise TrunklineError("bad_frame", "the device acknowledges what was never sent to it")
        self._acked = taken
        self._room.set()


async def _cancelled(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _read(message: bytes) -> _Said:
    try:
        return _said.decode(message)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise TrunklineError("bad_frame", "no control message of a device's") from error


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeError as error:
        raise TrunklineError("bad_frame", "a text is not UTF-8") from error


def _code(code: int) -> int:
    """One that may be sent."""
    return code if code == 1000 or 3000 <= code < 5000 else 1000

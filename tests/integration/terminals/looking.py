"""A viewer of a terminal for tests: the documented protocol over aiohttp, with a screen of its own to look at."""

import asyncio
import contextlib
import json
import struct
from collections.abc import Callable
from typing import Any, Self

import aiohttp

from trunkline_adapters.pty.screen import Screen

HEAD = struct.Struct(">c8sQ")
ACK_EVERY = 32 * 1024


class Looking:
    """One connection to `/ws/terminal/<session>`. `screen` is what a terminal shows that prints all it gets."""

    def __init__(self, http: aiohttp.ClientSession, ws: aiohttp.ClientWebSocketResponse) -> None:
        self._http = http
        self._ws = ws
        self.screen = Screen(80, 24)
        self.received = 0
        self._acked = 0
        self.offset = -1
        self.terminal = ""
        self.printed = bytearray()
        """All live bytes since the last painting."""
        self.paintings = 0
        self.said: list[dict[str, Any]] = []
        self.frozen = asyncio.Event()
        self.frozen.set()
        self.keep = True
        self.on_output: Callable[[bytes], None] = lambda _: None
        self._arrived = asyncio.Condition()
        self._pump = asyncio.create_task(self._receive())

    @classmethod
    async def connect(
        cls, url: str, session: str, *, token: str | None = None, socket: str | None = None, **hello: Any
    ) -> Self:
        connector = aiohttp.UnixConnector(socket) if socket else aiohttp.TCPConnector()
        http = aiohttp.ClientSession(connector=connector)
        try:
            ws = await http.ws_connect(f"{url}/ws/terminal/{session}", max_msg_size=0)
            await ws.send_json({"type": "hello", "token": token, **hello})
        except BaseException:
            await http.close()
            raise
        return cls(http, ws)

    async def _receive(self) -> None:
        while True:
            await self.frozen.wait()
            message = await self._ws.receive()
            if message.type is aiohttp.WSMsgType.BINARY:
                self._frame(message.data)
                if self.received - self._acked >= ACK_EVERY:
                    self._acked = self.received
                    with contextlib.suppress(ConnectionError, aiohttp.ClientError):
                        await self.say("ack", bytes=self.received)
            elif message.type is aiohttp.WSMsgType.TEXT:
                self.said.append(json.loads(message.data))
            else:
                self.said.append({"type": "closed", "code": self._ws.close_code})
            async with self._arrived:
                self._arrived.notify_all()
            if message.type in (aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR, aiohttp.WSMsgType.CLOSING):
                return

    def _frame(self, data: bytes) -> None:
        self.received += len(data)
        kind, terminal, offset = HEAD.unpack_from(data)
        content = data[HEAD.size :]
        if kind == b"p":
            head, _, content = content.partition(b"\n")
            painting = json.loads(head)
            self.paintings += 1
            self.terminal, self.offset = terminal.hex(), offset
            self.printed.clear()
            if self.keep:
                self.screen = Screen(painting["columns"], painting["rows"])
                self.screen.feed(content.decode())
            return
        assert self.offset == offset, f"a hole or a repetition: {offset} after {self.offset}"
        assert terminal.hex() == self.terminal
        self.offset += len(content)
        self.on_output(content)
        if self.keep:
            self.printed += content
            self.screen.feed(content.decode(errors="replace"))

    async def say(self, type: str, **fields: Any) -> None:
        await self._ws.send_json({"type": type, **fields})

    async def say_raw(self, text: str) -> None:
        await self._ws.send_str(text)

    async def type(self, keys: str | bytes) -> None:
        await self._ws.send_bytes(keys.encode() if isinstance(keys, str) else keys)

    async def take(self, *, force: bool = False) -> None:
        await self.say("take", force=force)
        await self.until(lambda: self.writes, 10)

    @property
    def state(self) -> dict[str, Any]:
        found = [one["state"] for one in self.said if one.get("state")]
        return found[-1] if found else {}

    @property
    def viewer(self) -> str:
        return next(one["viewer"] for one in self.said if one["type"] == "hello")

    @property
    def writes(self) -> bool:
        return self.state.get("writer", {}).get("viewer") == self.viewer

    @property
    def errors(self) -> list[str]:
        return [one["error"]["code"] for one in self.said if one["type"] == "error"]

    async def until(self, found: Any, within: float = 20) -> None:
        try:
            async with asyncio.timeout(within), self._arrived:
                await self._arrived.wait_for(found)
        except TimeoutError:
            raise AssertionError(f"not within {within} s; said {self.said[-5:]}; shown:\n{self.screen.text}") from None

    async def shows(self, text: str, within: float = 20) -> None:
        await self.until(lambda: text in self.screen.text, within)

    async def close(self) -> None:
        self.frozen.set()
        await self._ws.close()
        self._pump.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._pump
        await self._http.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

"""WebSocket clients for measuring: they note when each message came and look into it only afterwards.

The product's clients and the bare pipe's are the same program over TCP, so that neither costs more than the other.
"""

import asyncio
import itertools
import json
import re
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from tests.bench.child import module

from trunkline_testkit.product import Product

_CLOCK = re.compile(rb"t(\d{15,})")


class Line:
    """One connection. `arrived` is what came so far."""

    def __init__(self, ws: aiohttp.ClientWebSocketResponse) -> None:
        self._ws = ws
        self.arrived: list[tuple[int, bytes]] = []

    async def send(self, message: Any) -> None:
        await self._ws.send_str(json.dumps(message))

    async def next(self) -> bytes:
        """The next message, noted."""
        message = await self._ws.receive()
        now = time.time_ns()
        if message.type not in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY):
            raise ConnectionError(f"the connection ended: {message.type.name} {message.data!r}")
        data = message.data.encode() if isinstance(message.data, str) else message.data
        self.arrived.append((now, data))
        return data

    async def until(self, found: Callable[[bytes], bool], within: float = 120) -> bytes:
        """The first message from now on for which `found` is true."""
        async with asyncio.timeout(within):
            while not found(message := await self.next()):
                pass
            return message


def ages(arrived: list[tuple[int, bytes]]) -> list[float]:
    """How old each clock in the messages was when it was first seen, in ms."""
    first: dict[bytes, int] = {}
    for now, message in arrived:
        for clock in _CLOCK.findall(message):
            first.setdefault(clock, now)
    return [(now - int(clock)) / 1e6 for clock, now in first.items()]


class Attached:
    """A client of the product, subscribed to one session."""

    def __init__(self, line: Line, session: str = "") -> None:
        self.line = line
        self.session = session
        self._numbers = itertools.count(1)

    async def call(self, method: str, **params: Any) -> Any:
        number = f"c{next(self._numbers)}"
        await self.line.send({"type": "req", "id": number, "method": method, "params": params})
        mark = f'"id":"{number}"'.encode()
        raw = await self.line.until(lambda message: b'"type":"res"' in message and mark in message)
        answer = json.loads(raw)
        if not answer["ok"]:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["payload"]

    async def subscribe(self, session: str) -> None:
        self.session = session
        await self.call("subscribe", session=session, **{"from": "now"})

    async def play(self, text: str) -> float:
        begin = time.perf_counter()
        await self._prompt(text)
        await self.line.until(lambda message: b'"event":"turn.completed"' in message)
        return time.perf_counter() - begin

    async def answer(self, text: str) -> float:
        begin = time.perf_counter()
        await self._prompt(text)
        while True:
            message = await self.line.next()
            if b'"event":"permission.requested"' in message:
                ask = json.loads(message)["payload"]["data"]["ask"]
                params = {"ask": ask, "behaviour": "allow"}
                await self.line.send({"type": "req", "id": ask, "method": "ask.answer", "params": params})
            elif b'"event":"turn.completed"' in message:
                return time.perf_counter() - begin

    async def _prompt(self, text: str) -> None:
        params = {"session": self.session, "text": text}
        await self.line.send({"type": "req", "id": "prompt", "method": "session.prompt", "params": params})

    def messages(self, since: int) -> list[str]:
        return [
            json.loads(message)["payload"]["data"]["content"][0]["text"]
            for _, message in self.line.arrived[since:]
            if b'"event":"message.assistant"' in message
        ]


class Piped:
    """A client of the pipe without a log."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self._numbers = itertools.count(1)

    async def play(self, text: str) -> float:
        return await self.answer(text)

    async def answer(self, text: str) -> float:
        begin = time.perf_counter()
        await self.line.send({"type": "prompt", "id": str(next(self._numbers)), "text": text})
        while True:
            message = await self.line.next()
            if message.startswith(b'{"type": "ask"'):
                await self.line.send({"type": "answer", "ask": json.loads(message)["ask"], "allow": True})
            elif message.startswith(b'{"type": "turn_done"'):
                return time.perf_counter() - begin

    def messages(self, since: int) -> list[str]:
        return [
            json.loads(message)["text"]
            for _, message in self.line.arrived[since:]
            if message.startswith(b'{"type": "message"')
        ]


Player = Attached | Piped
"""`play` and `answer` give the agent a prompt and take the seconds to its turn's end; `answer` allows what it asks for."""


@asynccontextmanager
async def attached(product: Product) -> AsyncGenerator[Attached]:
    """A client of the product's gateway, signed in over TCP as its owner."""
    headers = {"Authorization": f"Bearer {product.token}"}
    async with (
        aiohttp.ClientSession() as http,
        http.ws_connect(f"{product.state['gateway']}/ws", headers=headers, max_msg_size=0) as ws,
    ):
        client = Attached(Line(ws))
        await client.call("hello", protocol=1, client="bench")
        yield client


@asynccontextmanager
async def piped() -> AsyncGenerator[Piped]:
    """A client of a pipe of its own, with an agent of its own."""
    async with module("tests.bench.pipe") as server:
        assert server.stdout is not None
        port = json.loads(await server.stdout.readline())["port"]
        async with (
            aiohttp.ClientSession() as http,
            http.ws_connect(f"http://127.0.0.1:{port}/ws", max_msg_size=0) as ws,
        ):
            line = Line(ws)
            await line.send({"type": "hello"})
            await line.next()
            yield Piped(line)

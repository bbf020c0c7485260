"""What carries the lines: the CLI's pipes (`AgentProcess` is a `Link`), or a server of ours that the CLI connects to (`--sdk-url`).

Over `--sdk-url` our lines are frames of a WebSocket; the CLI's come as POSTs beside it, which it repeats until they are
answered. It could send them as frames too, but what it says while the connection is away is then lost: its Node build never
sends it again. Which of our lines arrived is known by pings: the answer to the ping behind a line has crossed that line.
"""

import asyncio
import contextlib
import hmac
import secrets
from collections import deque
from collections.abc import AsyncIterator
from typing import Final, Protocol, Self

import aiohttp
import msgspec
from aiohttp import web

from trunkline_agentkit import AgentProcess, Exit, LineTransport
from trunkline_agentkit.framing import LineSplitter, decode_line, frame
from trunkline_agentkit.lines import LARGEST
from trunkline_wire import TrunklineError

FIRST: Final = (2, 1, 50)
LAST: Final = (2, 1, 101)
"""The versions, measured, whose `--sdk-url` takes any host; 2.1.121 refuses all but its maker's."""

LAST_ID: Final = "X-Last-Request-Id"
_OVER: Final = 4001
"""A close code behind which the CLI does not connect again: the end of its input."""
_LARGEST_BODY: Final = 1024 * 1024 * 1024
"""More than the longest string that the CLI's engine can make."""
_REMEMBERED: Final = 1000
"""As many of its frames as the CLI keeps to send them again."""
_CLOSE_S: Final = 1.0
_FOR_EVER: Final = 1e6
"""Seconds: what was received waits for its reader, however slow."""


class Link(LineTransport, Protocol):
    @property
    def pid(self) -> int: ...

    @property
    def running(self) -> bool: ...

    async def close(self, grace: float = 5.0) -> Exit: ...


def takes_any_host(version: str | None) -> bool:
    """Whether the CLI of this version (`2.1.101`) can be told to connect to us."""
    numbers = (version or "").split(".")
    if len(numbers) != len(LAST) or not all(number.isdigit() for number in numbers):
        return False
    return FIRST <= tuple(map(int, numbers)) <= LAST


class Outbox:
    """Our lines until the CLI has them. Pure."""

    def __init__(self) -> None:
        self._lines: deque[tuple[int, bytes]] = deque()
        self._number = 0

    def __bool__(self) -> bool:
        return bool(self._lines)

    def add(self, line: bytes) -> None:
        self._number += 1
        self._lines.append((self._number, line))

    def after(self, number: int) -> list[tuple[int, bytes]]:
        return [entry for entry in self._lines if entry[0] > number]

    def arrived(self, number: int) -> None:
        """The CLI has the line of this number and all before it."""
        while self._lines and self._lines[0][0] <= number:
            self._lines.popleft()

    def answered(self, line: bytes) -> None:
        """The CLI has said `line`: the request that it answers has arrived, and must not be sent again."""
        if not self._lines or b'"control_response"' not in line:
            return
        with contextlib.suppress(msgspec.DecodeError):
            request = msgspec.json.decode(line, type=_Answer).response.request_id
            self._lines = deque(
                entry
                for entry in self._lines
                if b'"control_request"' not in entry[1] or f'"{request}"'.encode() not in entry[1]
            )


class Inbox:
    """The CLI's lines, each once. Pure."""

    def __init__(self) -> None:
        self._batch: list[bytes] = []
        self._seen: dict[str, None] = {}

    @property
    def last(self) -> str | None:
        """The id of the last message that came as a frame."""
        return next(reversed(self._seen), None)

    def posted(self, body: bytes) -> list[bytes]:
        """The new messages of a POST. One that is repeated begins with all that it held before."""
        batch = _events(body)
        known = len(self._batch) if batch[: len(self._batch)] == self._batch else 0
        self._batch = batch
        return batch[known:]

    def framed(self, data: bytes) -> list[bytes]:
        """The new messages of a frame. After a cut a CLI may send what it keeps from the beginning."""
        splitter = LineSplitter()
        return [line for line in (*splitter.feed(data), *splitter.end()) if self._new(line)]

    def _new(self, line: bytes) -> bool:
        with contextlib.suppress(msgspec.DecodeError):
            if (id := msgspec.json.decode(line, type=_Named).uuid) is not None:
                if id in self._seen:
                    return False
                self._seen[id] = None
                if len(self._seen) > _REMEMBERED:
                    del self._seen[next(iter(self._seen))]
        return True


class _Events(msgspec.Struct):
    events: list[msgspec.Raw]


class _Named(msgspec.Struct):
    uuid: str | None = None


class _Request(msgspec.Struct):
    request_id: str


class _Answer(msgspec.Struct):
    response: _Request


def _events(body: bytes) -> list[bytes]:
    for reading in (lambda: body, lambda: decode_line(body).raw):
        with contextlib.suppress(msgspec.DecodeError):
            return [bytes(event) for event in msgspec.json.decode(reading(), type=_Events).events]
    return [body]  # of a form that nobody knows: kept as it is


class SdkUrlLink:
    """A server on loopback for one CLI, which shows a secret of this session. Made by `listen`; `attach` before use."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._token = secrets.token_urlsafe(32)
        self._url = ""
        self._inbox = Inbox()
        self._outbox = Outbox()
        self._news = asyncio.Event()
        self._sent = asyncio.Event()
        self._said: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=16)
        self._order = asyncio.Lock()
        self._attached = asyncio.Event()
        self._process: AgentProcess
        self._draining: asyncio.Task[None]
        self._socket: web.WebSocketResponse | None = None
        self._closing = False
        app = web.Application(client_max_size=_LARGEST_BODY)
        app.add_routes(
            [
                web.get(f"/ws/{session}", self._connected),
                # Where the CLI looks for it, given the address of the WebSocket.
                web.post(f"/session/{session}/events", self._posted),
            ]
        )
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=_FOR_EVER)

    @classmethod
    async def listen(cls, session: str) -> Self:
        link = cls(session)
        await link._runner.setup()
        site = web.TCPSite(link._runner, "127.0.0.1", 0)
        try:
            await site.start()
        except BaseException:
            await link.stop()
            raise
        port = link._runner.addresses[0][1]
        link._url = f"ws://127.0.0.1:{port}/ws/{session}"
        return link

    @property
    def url(self) -> str:
        return self._url

    def environment(self, base: dict[str, str]) -> dict[str, str]:
        """`base` and what makes the CLI speak as described above. The secret goes with it, and no proxy comes between."""
        direct = {name: ",".join(filter(None, (base.get(name), "127.0.0.1"))) for name in ("NO_PROXY", "no_proxy")}
        return (
            base
            | direct
            | {
                "CLAUDE_CODE_SESSION_ACCESS_TOKEN": self._token,
                "CLAUDE_CODE_POST_FOR_SESSION_INGRESS_V2": "1",
            }
        )

    def attach(self, process: AgentProcess) -> None:
        """The CLI has been started: what it prints is read too, and its end ends `lines`."""
        self._process = process
        self._draining = asyncio.create_task(self._drain(), name=f"end of {process.pid}")
        self._attached.set()

    async def stop(self) -> None:
        """For a CLI that could not be started."""
        await self._runner.cleanup()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.running

    async def lines(self) -> AsyncIterator[bytes]:
        while (line := await self._said.get()) is not None:
            yield line
        await self._draining

    async def write_line(self, message: object) -> None:
        line = frame(message)
        if self._closing or not self._process.running:
            raise TrunklineError(
                "agent_failed", "the agent has ended and takes no more messages: send a prompt to start it again"
            )
        self._process.record("host", line[:-1])
        self._outbox.add(line)
        self._sent.clear()
        self._news.set()

    async def close(self, grace: float = 5.0) -> Exit:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(grace, _CLOSE_S)):
                if self._outbox and self._process.running:
                    await self._sent.wait()
        self._closing = True
        if self._socket is not None:
            await self._socket.close(code=_OVER)
        return await self._process.close(grace)

    async def _drain(self) -> None:
        async for line in self._process.lines():
            await self._said.put(line)
        if self._socket is not None:
            await self._socket.close()
        await self._runner.cleanup()
        await self._said.put(None)

    async def _posted(self, request: web.Request) -> web.Response:
        await self._admit(request)
        if self._order.locked():
            # It has given up waiting for us, and we are not through with it yet.
            raise web.HTTPServiceUnavailable
        async with self._order:
            try:
                body = await request.read()
            except (OSError, aiohttp.ClientError) as error:
                raise web.HTTPServiceUnavailable from error  # cut off: it comes again
            for line in self._inbox.posted(body):
                await self._heard(line)
        return web.Response()

    async def _connected(self, request: web.Request) -> web.WebSocketResponse:
        await self._admit(request)
        socket = web.WebSocketResponse(autoping=False, compress=False, max_msg_size=LARGEST, timeout=_CLOSE_S)
        if (last := self._inbox.last) is not None:
            socket.headers[LAST_ID] = last
        await socket.prepare(request)
        before, self._socket = self._socket, socket
        if self._closing:
            await socket.close(code=_OVER)
            return socket
        if before is not None:
            await before.close()
        sending = asyncio.create_task(self._send(socket), name=f"input of {self._process.pid}")
        try:
            async for message in socket:
                match message.type:
                    case aiohttp.WSMsgType.PING:
                        await socket.pong(message.data)
                    case aiohttp.WSMsgType.PONG:
                        self._arrived(message.data)
                    case aiohttp.WSMsgType.TEXT | aiohttp.WSMsgType.BINARY:
                        data: str | bytes = message.data
                        for line in self._inbox.framed(data.encode() if isinstance(data, str) else data):
                            await self._heard(line)
                    case _:
                        pass
        except ConnectionError:
            pass  # the CLI connects again
        finally:
            if self._socket is socket:
                self._socket = None
            sending.cancel()
            await asyncio.wait({sending})
        return socket

    async def _admit(self, request: web.Request) -> None:
        shown = request.headers.get("Authorization", "")
        if not hmac.compare_digest(shown.encode(), f"Bearer {self._token}".encode()):
            raise web.HTTPUnauthorized
        await self._attached.wait()

    async def _send(self, socket: web.WebSocketResponse) -> None:
        sent = 0
        with contextlib.suppress(ConnectionError):
            while True:
                self._news.clear()
                for number, line in self._outbox.after(sent):
                    await socket.send_frame(line, aiohttp.WSMsgType.TEXT)
                    await socket.ping(b"%d" % number)
                    sent = number
                await self._news.wait()

    def _arrived(self, answer: bytes | bytearray) -> None:
        self._outbox.arrived(int(answer) if answer.isdigit() else 0)
        if not self._outbox:
            self._sent.set()

    async def _heard(self, line: bytes) -> None:
        self._outbox.answered(line)
        self._process.record("agent", line)
        await self._said.put(line)

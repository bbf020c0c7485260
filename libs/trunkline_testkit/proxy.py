"""A TCP proxy between one process and its nats-server that understands the client protocol.

It counts what passes, and a test may act at any message: kill somebody before it is forwarded or after, hold it, drop it,
cut the line with the connections left open (as a dead network does), reset them, or delay everything.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import urllib.parse
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, Self

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

Action = Literal["pass", "drop", "hold", "pass_then_hold"]
"""What becomes of a message: forwarded, lost, forwarded after `heal`, or forwarded and nothing after it until `heal`."""

_CHUNK: Final = 256 * 1024
_WAITING: Final = 64


@dataclass(frozen=True, slots=True)
class Passing:
    """A message on its way. `number` counts those of its direction, from 1, over all connections of the proxy."""

    number: int
    subject: str
    reply: str
    headers: dict[str, str]
    payload: bytes = field(repr=False)

    @property
    def type(self) -> str:
        """The event's type (`Trunk-Type`), empty for what is no event."""
        return self.headers.get("Trunk-Type", "")


class NatsProxy:
    """Listens on `host`, loopback by default, in front of `target` (`nats://host:port`, one server). Runs in the test's event loop.

    `on_publish` is called for each message of the client right before it is forwarded, `on_deliver` for each of the server;
    they don't wait, and None means "pass". `delay` is in seconds, each way.
    Further servers that the target advertises are hidden, so that no client finds a way around.
    """

    def __init__(self, target: str, host: str = "127.0.0.1") -> None:
        self._host = host
        self._target = urllib.parse.urlsplit(target)
        self._server: asyncio.Server | None = None
        self._open = asyncio.Event()
        self._open.set()
        self._lines: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._faults: list[Exception] = []
        self._counts = {"publish": 0, "deliver": 0}
        self.delay = 0.0
        self.on_publish: Callable[[Passing], Action | None] | None = None
        self.on_deliver: Callable[[Passing], Action | None] | None = None

    @property
    def url(self) -> str:
        """`nats://<host>:<port>`: what the client is given. Raises AssertionError before `start`."""
        assert self._server is not None, "the proxy is not started"
        return f"nats://{self._host}:{self._server.sockets[0].getsockname()[1]}"

    @property
    def published(self) -> int:
        """How many messages of the client came so far."""
        return self._counts["publish"]

    @property
    def is_cut(self) -> bool:
        return not self._open.is_set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, self._host, 0, limit=_CHUNK)

    async def stop(self) -> None:
        """Closes everything. May be called twice. Raises what a hook raised."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.reset()
        for line in self._lines:
            line.cancel()
        await asyncio.gather(*self._lines, return_exceptions=True)
        if self._faults:
            raise self._faults.pop()

    def cut(self) -> None:
        """From now on nothing passes either way; connections stay open and bytes wait, as behind a dead link."""
        self._open.clear()

    def heal(self) -> None:
        """What waited is forwarded."""
        self._open.set()

    def reset(self) -> None:
        """Aborts every connection; what waited is lost."""
        for writer in self._writers:
            writer.transport.abort()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._lines.add(task)
        self._writers.add(writer)
        try:
            await self._open.wait()
            await self._connect(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()
            self._writers.discard(writer)
            self._lines.discard(task)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection(
            self._target.hostname, self._target.port, limit=_CHUNK
        )
        self._writers.add(server_writer)
        ways = [
            asyncio.create_task(self._forward(reader, server_writer, "publish")),
            asyncio.create_task(self._forward(server_reader, writer, "deliver")),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            for result in await asyncio.gather(*ways, return_exceptions=True):
                if isinstance(result, Exception) and not isinstance(result, OSError):
                    self._faults.append(result)
            server_writer.transport.abort()
            self._writers.discard(server_writer)

    async def _forward(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: Literal["publish", "deliver"]
    ) -> None:
        queue: asyncio.Queue[tuple[float, bytes, Passing | None] | None] = asyncio.Queue(_WAITING)
        loop = asyncio.get_running_loop()

        async def read() -> None:
            async for raw, message in _frames(reader):
                await queue.put((loop.time() + self.delay, raw, message))
            await queue.put(None)

        reading = asyncio.create_task(read())
        try:
            while (entry := await queue.get()) is not None:
                due, raw, message = entry
                if due > loop.time():
                    await asyncio.sleep(due - loop.time())
                await self._open.wait()
                await self._pass(writer, raw, message, way)
        finally:
            reading.cancel()
            with contextlib.suppress(asyncio.CancelledError, OSError):
                await reading

    async def _pass(
        self, writer: asyncio.StreamWriter, raw: bytes, message: Passing | None, way: Literal["publish", "deliver"]
    ) -> None:
        action: Action = "pass"
        if message is not None:
            self._counts[way] += 1
            hook = self.on_publish if way == "publish" else self.on_deliver
            if hook is not None:
                numbered = Passing(self._counts[way], message.subject, message.reply, message.headers, message.payload)
                action = hook(numbered) or "pass"
        if action == "drop":
            return
        if action == "hold":
            self.cut()
            await self._open.wait()
        writer.write(raw)
        if action == "pass_then_hold":
            self.cut()
        await writer.drain()


async def _frames(reader: asyncio.StreamReader) -> AsyncIterator[tuple[bytes, Passing | None]]:
    """The protocol's commands as raw bytes, each with its message if it is one. Ends with the connection."""
    buffer = bytearray()
    while True:
        while (end := buffer.find(b"\r\n")) >= 0:
            line = bytes(buffer[:end])
            verb, _, rest = line.partition(b" ")
            verb = verb.upper()
            size = end + 2
            message = None
            if verb in {b"PUB", b"HPUB", b"MSG", b"HMSG"}:
                size += int(rest.split()[-1]) + 2
                if len(buffer) < size:
                    break
                message = _message(verb, rest.split(), bytes(buffer[end + 2 : size - 2]))
            raw = bytes(buffer[:size])
            del buffer[:size]
            yield (_alone(raw) if verb == b"INFO" else raw), message
        chunk = await reader.read(_CHUNK)
        if not chunk:
            return
        buffer += chunk


def _message(verb: bytes, words: list[bytes], body: bytes) -> Passing:
    with_headers = verb.startswith(b"H")
    names = words[: -2 if with_headers else -1]
    if verb.endswith(b"MSG"):
        del names[1]  # the subscription's id
    length = int(words[-2]) if with_headers else 0
    headers: dict[str, str] = {}
    for header in body[:length].decode(errors="replace").split("\r\n")[1:]:
        name, colon, value = header.partition(":")
        if colon:
            headers[name] = value.strip()
    reply = names[1].decode() if len(names) > 1 else ""
    return Passing(0, names[0].decode(), reply, headers, body[length:])


def _alone(raw: bytes) -> bytes:
    """INFO without the addresses of other servers."""
    info = json.loads(raw[4:])
    info.pop("connect_urls", None)
    info.pop("ws_connect_urls", None)
    return b"INFO " + json.dumps(info).encode() + b"\r\n"

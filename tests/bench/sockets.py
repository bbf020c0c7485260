"""A WebSocket client that costs next to nothing: it counts what comes and looks only for a mark."""

import asyncio
import base64
import json
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

_KEPT = 1024
"""Bytes at the end of what came that are kept, so that a mark is found where two reads cut it."""


class Counter(asyncio.BufferedProtocol):
    """`bytes` counts everything that came, the handshake too."""

    def __init__(self) -> None:
        self.bytes = 0
        self._buffer = bytearray(256 * 1024)
        self._view = memoryview(self._buffer)
        self._end = b""
        self._mark = b""
        self._found: asyncio.Future[None] | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - the protocol's signature
        return self._view

    def received(self, nbytes: int) -> memoryview:
        """The bytes of this read."""
        return self._view[:nbytes]

    def buffer_updated(self, nbytes: int) -> None:
        self.bytes += nbytes
        whole = nbytes < _KEPT
        end = bytes(self._view[max(0, nbytes - _KEPT) : nbytes])
        self._end = (self._end + end)[-_KEPT:] if whole else end
        if self._found is not None and not self._found.done() and self._mark in self._end:
            self._found.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._found is not None and not self._found.done():
            self._found.set_exception(exc or ConnectionError("the server closed the connection"))

    def expect(self, mark: bytes) -> "asyncio.Future[None]":
        """Done once `mark`, which has to stand near the end of a message that nothing follows, has come."""
        self._mark, self._end = mark, b""
        self._found = asyncio.get_running_loop().create_future()
        return self._found

    def send(self, message: Any) -> None:
        """One text message, masked with zeros."""
        body = json.dumps(message).encode()
        size = bytes((0x80 | len(body),)) if len(body) < 126 else b"\xfe" + len(body).to_bytes(2, "big")
        assert self.transport is not None
        self.transport.write(b"\x81" + size + bytes(4) + body)


C = TypeVar("C", bound=Counter)


async def connect(url: str, headers: Sequence[str] = (), *, kind: type[C] = Counter) -> C:
    """A WebSocket connection to `<url>/ws`; `url` begins with http."""
    where = urlsplit(url)
    assert where.hostname is not None
    assert where.port is not None
    _, counter = await asyncio.get_running_loop().create_connection(kind, where.hostname, where.port)
    lines = [
        "GET /ws HTTP/1.1",
        f"Host: {where.netloc}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
        f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
        *headers,
    ]
    upgraded = counter.expect(b"\r\n\r\n")
    assert counter.transport is not None
    counter.transport.write(("\r\n".join(lines) + "\r\n\r\n").encode())
    await asyncio.wait_for(upgraded, 10)
    return counter


@asynccontextmanager
async def subscribed(
    url: str, token: str, session: str, count: int, *, kind: type[C] = Counter
) -> AsyncGenerator[list[C]]:
    """That many clients of a gateway, each subscribed to the session from now on."""
    counters: list[C] = []
    try:
        for _ in range(count):
            counter = await connect(url, [f"Authorization: Bearer {token}"], kind=kind)
            counters.append(counter)
            answered = counter.expect(b'"type":"res"')
            counter.send({"type": "req", "id": 1, "method": "hello", "params": {"protocol": 1}})
            await asyncio.wait_for(answered, 10)
            answered = counter.expect(b'"type":"res"')
            params = {"session": session, "from": "now"}
            counter.send({"type": "req", "id": 2, "method": "subscribe", "params": params})
            await asyncio.wait_for(answered, 10)
        yield counters
    finally:
        close(counters)


def close(counters: Sequence[Counter]) -> None:
    for counter in counters:
        if counter.transport is not None:
            counter.transport.abort()

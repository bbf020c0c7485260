"""A TCP line that a test can cut, as a phone loses its network."""

import asyncio
import contextlib
import urllib.parse
from typing import Final, Self

_CHUNK: Final = 64 * 1024


class Line:
    """Listens on loopback in front of `target` (a URL). Cut, it takes no connection and drops those that there are."""

    def __init__(self, target: str) -> None:
        self._target = urllib.parse.urlsplit(target)
        self._server: asyncio.Server | None = None
        self._port = 0
        self._ways: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def mend(self) -> None:
        """Listen, at the same address as before."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        if self._server is not None:
            self._server.close()
        for way in self._ways:
            way.cancel()
        await asyncio.gather(*self._ways, return_exceptions=True)

    async def __aenter__(self) -> Self:
        await self.mend()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.cut()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        way = asyncio.current_task()
        assert way is not None
        self._ways.add(way)
        far: asyncio.StreamWriter | None = None
        try:
            far_reader, far = await asyncio.open_connection(self._target.hostname, self._target.port)
            async with asyncio.TaskGroup() as group:
                group.create_task(_copy(reader, far))
                group.create_task(_copy(far_reader, writer))
        except* (OSError, asyncio.CancelledError):
            pass
        finally:
            for end in (writer, far):
                if end is not None:
                    end.transport.abort()
            self._ways.discard(way)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(_CHUNK):
        writer.write(chunk)
        await writer.drain()
    with contextlib.suppress(OSError):
        writer.close()

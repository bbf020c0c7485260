"""A line to a gateway that is cut after so many bytes, in the middle of a frame as well, or that passes them slowly."""

import asyncio
import contextlib
from pathlib import Path
from typing import Final, Self

_CHUNK: Final = 16 * 1024


class Line:
    """Listens on the unix socket `path`, passes everything on to `target`. Runs in the test's loop.

    `budget` is how many more bytes of the gateway pass before both ends are reset, None for all of them; `pace` is in
    bytes a second, 0 for no limit. Both count for what passes from then on.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.target = ""
        self.budget: int | None = None
        self.pace = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_unix_server(self._accept, self.path)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await self._serve(reader, writer)
        finally:
            writer.transport.abort()
            self._tasks.discard(task)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Small buffers: what the client does not read stays with the gateway.
        there, back = await asyncio.open_unix_connection(self.target, limit=_CHUNK)
        ways = [asyncio.create_task(self._up(reader, back)), asyncio.create_task(self._down(there, writer))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            back.transport.abort()

    async def _up(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()

    async def _down(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_CHUNK):
            if self.budget is not None:
                data, self.budget = data[: self.budget], self.budget - len(data)
            writer.write(data)
            await writer.drain()
            if self.budget is not None and self.budget <= 0:
                return
            if self.pace:
                await asyncio.sleep(len(data) / self.pace)

"""Something between a Claude CLI and the server that it connects to, that cuts its connections."""

import asyncio
from urllib.parse import urlsplit

import pytest

from trunkline_adapters.claude.link import SdkUrlLink


class Relay:
    """Passes on every connection of the CLI. While `away` is set it takes none."""

    def __init__(self) -> None:
        self.away = False
        self.connections = 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._upstream = 0

    async def between(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """From now on links tell the CLI this relay's address."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        own = SdkUrlLink.url.fget
        assert own is not None

        def url(link: SdkUrlLink) -> str:
            parts = urlsplit(own(link))
            self._upstream = parts.port or 0
            return f"ws://127.0.0.1:{port}{parts.path}"

        monkeypatch.setattr(SdkUrlLink, "url", property(url))

    def cut(self) -> None:
        """Resets every connection."""
        for writer in list(self._writers):
            writer.transport.abort()

    async def stop(self) -> None:
        self.cut()
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.away:
            writer.transport.abort()
            return
        self.connections += 1
        there, back = await asyncio.open_connection("127.0.0.1", self._upstream)
        self._writers |= {writer, back}
        await asyncio.gather(self._copy(reader, back), self._copy(there, writer))
        self._writers -= {writer, back}

    async def _copy(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while chunk := await source.read(65536):
                target.write(chunk)
                await target.drain()
        except ConnectionError:
            pass
        finally:
            target.close()

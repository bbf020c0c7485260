"""What carries the messages: the pipes of a server of our own, or a WebSocket to one that runs already."""

import asyncio
import logging
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlsplit

from trunkline_agentkit import AgentProcess, Exit, LineTransport, connect_websocket
from trunkline_agentkit.lines import WebSocketLines
from trunkline_wire import TrunklineError

log = logging.getLogger(__name__)

_PAUSES: Final = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds between attempts to connect again."""


class Link(Protocol):
    """A way to the server. `outlives`: the server runs on without us."""

    outlives: bool

    async def connect(self) -> LineTransport:
        """Raises TrunklineError with what keeps us from it."""
        ...

    async def again(self) -> LineTransport | None:
        """A new connection to the same server, when the last one has ended; None where there is none any more."""
        ...

    async def close(self, grace: float) -> Exit: ...


class ProcessLink:
    """`codex app-server` as a child: it ends with its input, and its threads with it."""

    outlives = False

    def __init__(self, process: AgentProcess) -> None:
        self._process = process

    async def connect(self) -> LineTransport:
        return self._process

    async def again(self) -> LineTransport | None:
        return None

    async def close(self, grace: float) -> Exit:
        return await self._process.close(grace)


class SocketLink:
    """A server that runs by itself and outlives us: a lost connection is opened anew.

    `address` is `ws://host:port`, `wss://…` or `unix:///path`; the token is read from `token_file`.
    """

    outlives = True

    def __init__(self, address: str, token_file: str | None = None) -> None:
        self._address = address
        self._token_file = Path(token_file) if token_file else None
        self._lines: WebSocketLines | None = None
        self._lost: TrunklineError | None = None
        self._closed = False

    async def connect(self) -> LineTransport:
        parts = urlsplit(self._address)
        local = Path(parts.path) if parts.scheme == "unix" else None
        url = "ws://localhost/" if local is not None else self._address
        self._lines = await connect_websocket(url, unix_socket=local, token_file=self._token_file)
        return self._lines

    async def again(self) -> LineTransport | None:
        for pause in _PAUSES:
            if self._closed:
                return None
            await self._drop()
            try:
                return await self.connect()
            except TrunklineError as error:
                self._lost = error
                log.info("server_unreachable", extra={"code": error.code, "again_s": pause})
            await asyncio.sleep(pause)
        return None

    async def close(self, grace: float) -> Exit:
        del grace  # the server runs on
        self._closed = True
        await self._drop()
        if self._lost is not None:
            return Exit(stderr_tail=self._lost.message)
        return Exit(code=0)

    async def _drop(self) -> None:
        if self._lines is not None:
            await self._lines.close()

"""Follows a server's events for a session: over as many connections as it takes, and what was missed between them read back."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from trunkline_adapters.opencode.native import EVENTS
from trunkline_adapters.opencode.server import Server
from trunkline_adapters.opencode.translate import OpenCodeTranslator
from trunkline_agentkit import Exchange, HttpResponse
from trunkline_agentkit.fields import Obj, objects
from trunkline_wire import TrunklineError

log = logging.getLogger(__name__)

SILENCE: Final = 35.0
"""Seconds without a byte, heartbeats included (one in ten seconds), after which a connection counts as dead."""
PAUSES: Final = (0.1, 0.5, 1.0, 2.0, 4.0, *(8.0,) * 9)
"""Seconds between attempts to connect again: about 80 in all, for a server that is started anew."""
_PAGE: Final = 50
_PAGES: Final = 200

Ask = Callable[..., Awaitable[HttpResponse]]


class Follower:
    """`ask` sends a request and raises TrunklineError where it is refused. Ends the exchange when the server is gone."""

    def __init__(self, exchange: Exchange, server: Server, translator: OpenCodeTranslator, ask: Ask) -> None:
        self._exchange = exchange
        self._server = server
        self._translator = translator
        self._ask = ask
        self._task: asyncio.Task[None] | None = None
        self._failure: TrunklineError | None = None
        self.ready = asyncio.Event()
        """Events come, and nothing is missing."""

    async def start(self) -> None:
        """Returns once events come. Raises TrunklineError with what keeps us from them."""
        self._task = asyncio.create_task(self._follow(), name="events of a server")
        ready = asyncio.create_task(self.ready.wait())
        await asyncio.wait({self._task, ready}, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if not self.ready.is_set():
            raise self._failure or TrunklineError("agent_failed", "the server ended before it sent events")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _follow(self) -> None:
        try:
            await self._connect()
            while await self._again():
                pass
        except TrunklineError as error:
            self._failure = error
        except Exception:
            log.exception("events_failed")
        finally:
            self.ready.clear()
            self._exchange.end()

    async def _again(self) -> bool:
        """Another connection, for as long as it holds; False where there is no server any more."""
        for pause in PAUSES:
            await asyncio.sleep(pause)
            if not self._server.running:
                return False
            try:
                await self._connect()
            except TrunklineError as error:
                log.info("server_unreachable", extra={"code": error.code, "again_s": pause})
            else:
                return True
        return False

    async def _connect(self) -> None:
        """Follows one connection to its end."""
        async with self._exchange.events(EVENTS, silence=SILENCE) as stream:
            # From the first event on none is missed; what came before it is read back.
            if not await stream.begin():
                return
            if self._translator.lost:
                await self._read_back()
            self.ready.set()
            try:
                await stream.follow()
            finally:
                self.ready.clear()

    async def doubt(self) -> None:
        """Reads the state back though events come: they leave something open. Raises TrunklineError."""
        self._exchange.say({"sse": EVENTS, "lost": "doubt"})
        await self._read_back()

    async def _read_back(self) -> None:
        """Reads what `reading` tells of, in its order. Raises TrunklineError."""
        session = self._translator.session
        await self._ask("GET", "/session/status")
        await self._read_messages(session or "")
        for child in self._translator.children():
            await self._read_messages(child)
        await self._ask("GET", f"/session/{session}")
        await self._ask("GET", "/permission")
        await self._ask("GET", "/question")

    async def _read_messages(self, session: str) -> None:
        """Pages of messages, the newest first, until one begins with what is known."""
        cursor = ""
        for _ in range(_PAGES):
            answer = await self._ask("GET", f"/session/{session}/message?limit={_PAGE}{cursor}")
            page: list[Obj] = objects({"page": answer.body}, "page")
            found: Any = answer.headers.get("x-next-cursor")
            if not found or not page or self._translator.is_old(page[0]):
                return
            cursor = f"&before={found}"

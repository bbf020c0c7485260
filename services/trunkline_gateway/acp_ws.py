"""`/acp`: an editor's Agent Client Protocol over a WebSocket, a JSON-RPC message a text frame.

Source: the protocol's RFD "Streamable HTTP & WebSocket Transport" (agentclientprotocol/agent-client-protocol,
docs/rfds/streamable-http-websocket-transport.mdx), a draft: `GET /acp` with `Upgrade: websocket`, answered with
`Acp-Connection-Id`; then `initialize` and the same life as over standard streams. Binary frames are ignored. Its other profile,
POST and event streams over HTTP/2, is not spoken here: the draft lets a server support the WebSocket alone.
"""

import asyncio
import contextlib
import logging
import time
import uuid
from typing import Final

from aiohttp import WSCloseCode, WSMsgType, web

from trunkline_acp.connection import Editor
from trunkline_acp.server import Server, Wanted
from trunkline_bus import metrics
from trunkline_gateway.access import Access, peer_of
from trunkline_gateway.acp_way import OwnWay
from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.outbox import NotReadingError, Outbox
from trunkline_gateway.roles import Principal
from trunkline_wire import TrunklineError

log = logging.getLogger(__name__)

PING_S: Final = 15.0


class AcpConnection:
    """One editor. `run()` returns when the connection has ended; the editor's sessions go on."""

    def __init__(self, gateway: Gateway, access: Access, request: web.Request, principal: Principal | None) -> None:
        if principal is None:
            raise TrunklineError("unauthorized", "send the header `Authorization: Bearer <token>`, or sign in")
        if request.headers.get("Upgrade", "").lower() != "websocket":
            raise TrunklineError("unsupported", "`/acp` is a WebSocket here: send `Upgrade: websocket`")
        self._gateway = gateway
        self._access = access
        self._request = request
        self._principal = principal
        self._ws = web.WebSocketResponse(
            max_msg_size=gateway.settings.max_frame, compress=False, heartbeat=PING_S, writer_limit=0
        )
        self._outbox = Outbox(self._send)
        self._ended: asyncio.Future[tuple[int, str]] = asyncio.get_running_loop().create_future()

    @property
    def token(self) -> str | None:
        return self._principal.token

    def end(self, code: int, reason: str) -> None:
        """End the connection from outside: the gateway stops, or the token was revoked."""
        if not self._ended.done():
            self._ended.set_result((code, reason))

    async def run(self) -> web.WebSocketResponse:
        self._ws.headers["Acp-Connection-Id"] = str(uuid.uuid4())
        await self._ws.prepare(self._request)
        metrics.GATEWAY_CLIENTS.labels("acp").inc()
        self._gateway.audit.signed_in(self._principal, "acp")
        caller = Caller(principal=self._principal, peer=peer_of(self._request))
        editor = Editor(self, self)
        server = Server(editor, lambda: OwnWay(self._gateway, caller), Wanted())
        serving = asyncio.create_task(server.run(), name="acp")
        writing = asyncio.create_task(self._outbox.run(), name="acp writes")
        try:
            await asyncio.wait(
                (serving, writing, self._ended), timeout=self._left(), return_when=asyncio.FIRST_COMPLETED
            )
            await self._close(serving, writing)
        finally:
            for task in (serving, writing):
                task.cancel()
            await asyncio.gather(serving, writing, return_exceptions=True)
            metrics.GATEWAY_CLIENTS.labels("acp").dec()
        return self._ws

    def _left(self) -> float | None:
        """Seconds that the credential is still good for."""
        expires = self._principal.expires
        return None if expires is None else max(0.0, expires - time.time())

    async def _close(self, serving: "asyncio.Task[None]", writing: "asyncio.Task[None]") -> None:
        code, reason = WSCloseCode.POLICY_VIOLATION, "expired"
        if self._ended.done():
            code, reason = self._ended.result()
        elif writing.done():
            failed = writing.exception()
            reason = "not_reading" if isinstance(failed, NotReadingError) else ""
            if self._request.transport is not None:
                self._request.transport.abort()
        elif serving.done():
            failed = serving.exception()
            code, reason = WSCloseCode.OK, ""
            if failed is not None and not isinstance(failed, ConnectionError):
                log.error("acp_failed", exc_info=failed)
                code, reason = WSCloseCode.INTERNAL_ERROR, "internal"
        if reason:
            metrics.GATEWAY_DROPPED.labels(reason).inc()
            log.info("dropped", extra={"reason": reason, "peer": str(self._request.remote or "socket")})
        with contextlib.suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(2):
                await self._ws.close(code=code, message=reason.encode())

    # the editor's end, as a pair of streams

    async def read(self, n: int = -1, /) -> bytes:  # noqa: ARG002 - a message is never read in parts
        """The next message, as a line; empty at the end."""
        async for message in self._ws:
            if message.type is not WSMsgType.TEXT:
                continue
            raw: bytes = message.data.encode()
            try:
                self._access.count(self._request, self._principal, len(raw))
            except TrunklineError as error:
                await asyncio.sleep(error.details["retry_after"])
            # A line break in JSON is always white space.
            return raw.replace(b"\n", b" ").replace(b"\r", b" ") + b"\n"
        return b""

    def write(self, data: bytes, /) -> None:
        """Queue a message; `drain` waits where too many are."""
        if not self._outbox.push(data):
            self._outbox.force(data)

    async def drain(self) -> None:
        if self._ws.closed:
            raise ConnectionResetError
        await self._outbox.room()

    async def _send(self, frames: list[bytes]) -> None:
        for each in frames:
            await self._ws.send_str(each.decode().rstrip("\n"))

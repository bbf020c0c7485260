"""Server-sent events: one subscription over plain HTTP. `Last-Event-ID`, which browsers send by themselves, is the cursor."""

import asyncio
import contextlib
import time
from contextlib import AsyncExitStack
from typing import Any

from aiohttp import web

from trunkline_bus import metrics
from trunkline_gateway.access import Access
from trunkline_gateway.dispatch import require_ready
from trunkline_gateway.gateway import Gateway
from trunkline_gateway.outbox import NotReadingError, Outbox
from trunkline_gateway.registry import read_params
from trunkline_gateway.ring import SseFrames
from trunkline_gateway.roles import Principal
from trunkline_gateway.subscribe import Subscribe, open_subscription
from trunkline_gateway.subscription import Subscription
from trunkline_service.web import HEADERS
from trunkline_wire import TrunklineError, encode

HEARTBEAT_S = 15.0


class EventStream:
    """One client of `GET /api/v1/events`. `run()` returns when it has gone, or `end()` was called."""

    def __init__(self, gateway: Gateway, access: Access, request: web.Request, principal: Principal | None) -> None:
        self._gateway = gateway
        self._request = request
        if principal is None:
            raise TrunklineError("unauthorized", "send the header `Authorization: Bearer <token>`, or sign in")
        principal.require("viewer", "events")
        access.count(request, principal, 0)
        self._principal = principal
        self.token = principal.token
        self._params = read_params(Subscribe, _parameters(request))
        self._response = web.StreamResponse(
            headers={**HEADERS, "Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}
        )
        self._outbox = Outbox(self._write)
        self._ended = asyncio.Event()

    def end(self, _: int, __: str) -> None:
        """End the stream: the gateway stops, or the token was revoked."""
        self._ended.set()

    async def run(self) -> web.StreamResponse:
        await require_ready(self._gateway)
        async with AsyncExitStack() as stack:
            opened = await open_subscription(
                self._gateway, self._principal, self._params, self._outbox, SseFrames, stack
            )
            await self._response.prepare(self._request)
            first = b"event: subscribed\nid: " + opened.cursor.encode() + b"\ndata: "
            self._outbox.force(first + encode(opened.payload("sse")) + b"\n\n")
            if opened.gap is not None:
                self._outbox.force(SseFrames().gap(encode(opened.gap)))
            metrics.GATEWAY_CLIENTS.labels("sse").inc()
            try:
                await self._serve(opened.subscription)
            finally:
                metrics.GATEWAY_CLIENTS.labels("sse").dec()
        return self._response

    async def _serve(self, subscription: Subscription) -> None:
        running: list[asyncio.Task[Any]] = [
            asyncio.create_task(self._outbox.run()),
            asyncio.create_task(subscription.run()),
            asyncio.create_task(self._keep_alive(subscription)),
            asyncio.create_task(self._until_ended()),
        ]
        try:
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                with contextlib.suppress(ConnectionError):
                    task.result()
        except NotReadingError:
            metrics.GATEWAY_DROPPED.labels("not_reading").inc()
            if self._request.transport is not None:
                self._request.transport.abort()
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _until_ended(self) -> None:
        expires = self._principal.expires
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if expires is None else max(0.0, expires - time.time())):
                await self._ended.wait()

    async def _write(self, frames: list[bytes]) -> None:
        await self._response.write(b"".join(frames))

    async def _keep_alive(self, subscription: Subscription) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            cursor = subscription.cursor
            # An id without data moves the client's cursor; a comment only keeps the connection open.
            self._outbox.force(b": heartbeat\n\n" if cursor is None else b"id: " + cursor.encode() + b"\n\n")


def _parameters(request: web.Request) -> dict[str, Any]:
    query = request.query
    found: dict[str, Any] = {name: query[name] for name in query if name not in ("patterns", "deltas")}
    if "patterns" in query:
        found["patterns"] = [part for value in query.getall("patterns") for part in value.split(",") if part]
    if "deltas" in query:
        if query["deltas"] not in ("true", "false", "1", "0"):
            raise TrunklineError("bad_params", "deltas is `true` or `false`", field="deltas")
        found["deltas"] = query["deltas"] in ("true", "1")
    if query.get("messages", "").isdecimal():
        found["messages"] = int(query["messages"])
    last = request.headers.get("Last-Event-ID")
    if last:
        found["cursor"] = last
    return found

"""A gateway's own way to itself, for the agent side of the Agent Client Protocol: the methods and checks of every client."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from types import TracebackType
from typing import Any, Self

from trunkline_bus.tasks import end
from trunkline_client import Gap, Notice, Opened, Received, Snapshot, Start
from trunkline_gateway.dispatch import call, require_ready
from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.outbox import Outbox
from trunkline_gateway.ring import WsFrames
from trunkline_gateway.subscribe import Subscribe, open_subscription
from trunkline_gateway.subscription import Subscription
from trunkline_wire import TrunklineError, decode_json, encode


class OwnWay:
    """`trunkline_acp.way.Way` in the gateway's process. What `caller` may not, it may not."""

    def __init__(self, gateway: Gateway, caller: Caller) -> None:
        self._gateway = gateway
        self._caller = caller
        self._feeding: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stop()

    async def call(self, method: str, *, within: float = 60.0, **params: Any) -> Any:
        """A method's payload, as JSON. Raises TrunklineError; `timeout` after `within` seconds."""
        try:
            async with asyncio.timeout(within):
                return decode_json(encode(await call(self._gateway, self._caller, method, params)))
        except TimeoutError:
            raise TrunklineError(
                "timeout", f"no answer to {method!r} within {within:g} s; it may still take effect"
            ) from None

    async def watch(self, *, session: str, start: Start) -> AsyncIterator[Notice]:
        """Everything that happens in a session, read as slowly as the editor takes it. Raises TrunklineError."""
        await self._stop()
        await require_ready(self._gateway)
        queue: asyncio.Queue[list[bytes] | None] = asyncio.Queue()

        async def write(frames: list[bytes]) -> None:
            queue.put_nowait(frames)
            await queue.join()

        outbox = Outbox(write)
        async with AsyncExitStack() as stack:
            opened = await open_subscription(
                self._gateway,
                self._caller.principal,
                Subscribe(session=session, start=start),
                outbox,
                partial(WsFrames, "acp"),
                stack,
            )
            yield Opened()
            if opened.snapshot is not None:
                yield Snapshot(decode_json(encode(opened.snapshot)))
            feeding = self._feeding = asyncio.create_task(_feed(outbox, opened.subscription, queue))
            try:
                while (frames := await queue.get()) is not None:
                    for frame in frames:
                        for notice in _notices(decode_json(frame)):
                            yield notice
                    queue.task_done()
                await feeding
            finally:
                await end(feeding)

    async def _stop(self) -> None:
        if self._feeding is not None:
            await end(self._feeding)
            self._feeding = None


async def _feed(outbox: Outbox, subscription: Subscription, queue: "asyncio.Queue[list[bytes] | None]") -> None:
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(outbox.run())
            group.create_task(subscription.run())
    finally:
        queue.put_nowait(None)


def _notices(frame: Any) -> list[Notice]:
    payload = frame["payload"]
    if frame["event"] != "gap":
        return [Received(payload, frame.get("cursor"))]
    missing: list[Notice] = [Gap(payload)]
    return missing if payload.get("snapshot") is None else [*missing, Snapshot(payload["snapshot"])]

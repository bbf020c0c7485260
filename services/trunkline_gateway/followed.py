"""What one WebSocket follows: its subscriptions by name, opened, switched and ended."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Final

from trunkline_gateway.dispatch import require_ready
from trunkline_gateway.gateway import Gateway
from trunkline_gateway.outbox import Outbox
from trunkline_gateway.presence import Seat, Watcher, Watching
from trunkline_gateway.registry import Params
from trunkline_gateway.ring import WsFrames
from trunkline_gateway.roles import Principal
from trunkline_gateway.sight import Sight
from trunkline_gateway.subscribe import Subscribe, open_subscription
from trunkline_gateway.subscription import Subscription
from trunkline_wire import TrunklineError, encode

MAX_SUBSCRIPTIONS: Final = 100

Reply = Callable[[dict[str, Any]], None]
"""Queues the answer to the request."""


class Unsubscribe(Params, frozen=True, kw_only=True):
    subscription: str


class Switch(Subscribe, frozen=True, kw_only=True):
    """As `subscribe`. `subscription` is the one that ends; without it every one that is of one session does."""

    session: str  # pyright: ignore[reportGeneralTypeIssues]  # keywords only: it may be required here
    subscription: str | None = None


class Followed:
    """The subscriptions of one connection, each a task of its group."""

    def __init__(self, gateway: Gateway, outbox: Outbox) -> None:
        self._gateway = gateway
        self._outbox = outbox
        self._open: dict[str, tuple[Subscription, asyncio.Task[None]]] = {}
        self._numbered = 0

    def __len__(self) -> int:
        return len(self._open)

    def cursors(self) -> dict[str, str]:
        """Where each may go on, by name; a subscription that catches up is left out."""
        return {name: cursor for name, (one, _) in self._open.items() if (cursor := one.cursor) is not None}

    async def subscribe(
        self, group: asyncio.TaskGroup, principal: Principal, seat: Seat | None, params: Subscribe, reply: Reply
    ) -> None:
        """Raises TrunklineError `rate_limited`, and what `open_subscription` raises."""
        principal.require("viewer", "subscribe")
        if len(self._open) >= MAX_SUBSCRIPTIONS:
            raise TrunklineError("rate_limited", f"a connection may have {MAX_SUBSCRIPTIONS} subscriptions")
        await self._begin(group, principal, seat, params, reply, ends=[])

    async def switch(
        self, group: asyncio.TaskGroup, principal: Principal, seat: Seat | None, params: Switch, reply: Reply
    ) -> None:
        """Nothing ends unless the new one begins; after the answer no event of what has ended comes any more.

        Raises TrunklineError `bad_params`, and what `open_subscription` raises.
        """
        principal.require("viewer", "session.switch")
        if params.subscription is not None:
            ends = [self._named(params.subscription)]
        else:
            ends = [name for name, (one, _) in self._open.items() if one.channel.session is not None]
        if len(self._open) - len(ends) >= MAX_SUBSCRIPTIONS:
            raise TrunklineError("rate_limited", f"a connection may have {MAX_SUBSCRIPTIONS} subscriptions")
        await self._begin(group, principal, seat, params, reply, ends=ends)

    def unsubscribe(self, params: Unsubscribe, reply: Reply) -> None:
        """Raises TrunklineError `bad_params` for a name that is none."""
        self._end(self._named(params.subscription))
        reply({"subscription": params.subscription})

    async def _begin(
        self,
        group: asyncio.TaskGroup,
        principal: Principal,
        seat: Seat | None,
        params: Subscribe,
        reply: Reply,
        *,
        ends: list[str],
    ) -> None:
        await require_ready(self._gateway)
        self._numbered += 1
        name = f"sub_{self._numbered}"
        stack = AsyncExitStack()
        try:
            opened = await open_subscription(
                self._gateway, principal, params, self._outbox, partial(WsFrames, name), stack
            )
        except BaseException:
            await stack.aclose()
            raise
        for former in ends:
            if former in self._open:
                self._end(former)
        reply(opened.payload(name))
        if opened.gap is not None:
            self._outbox.force(WsFrames(name).gap(encode(opened.gap)))
        self._attend(name, params, principal, seat, stack)
        task = group.create_task(_run_in(stack, opened.subscription.run()))
        self._open[name] = (opened.subscription, task)

    def _named(self, name: str) -> str:
        if name not in self._open:
            raise TrunklineError("bad_params", f"there is no subscription {name!r}", field="subscription")
        return name

    def _end(self, name: str) -> None:
        subscription, task = self._open.pop(name)
        subscription.end()
        task.cancel()

    def _attend(
        self, name: str, params: Subscribe, principal: Principal, seat: Seat | None, stack: AsyncExitStack
    ) -> None:
        """Be there for others, and hear of them if that is wanted, until `stack` is closed."""
        session, presence = params.session, self._gateway.presence
        if session is not None and seat is not None:
            seat.watch(session)
            stack.callback(seat.leave, session)
        if not params.presence:
            return
        sight = Sight(self._gateway.directory, principal.scope)

        def tell(at: str, who: list[Watching]) -> None:
            self._outbox.push(encode({"type": "presence", "subscription": name, "session": at, "who": who}))

        def wants(at: str) -> bool:
            return at == session if session is not None else sight.holds(at)

        watcher = Watcher(tell, wants)
        presence.watchers.add(watcher)
        stack.callback(presence.watchers.discard, watcher)
        for at in filter(wants, presence.sessions()):
            tell(at, presence.of(at))


async def _run_in(stack: AsyncExitStack, running: Coroutine[Any, Any, None]) -> None:
    async with stack:
        await running

"""Opening subscriptions: from a cursor, the start, now, or a snapshot."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Literal

import msgspec

from trunkline_bus import metrics
from trunkline_bus.cursor import Gap
from trunkline_gateway.boards import TeamSight
from trunkline_gateway.cursors import position, scope
from trunkline_gateway.gateway import Gateway
from trunkline_gateway.outbox import Outbox
from trunkline_gateway.patterns import Patterns
from trunkline_gateway.registry import Params
from trunkline_gateway.ring import Narrow
from trunkline_gateway.roles import EVERYTHING, Principal
from trunkline_gateway.sight import Sight, require_sight
from trunkline_gateway.snapshot import MESSAGES, check_count, latest_messages, make_snapshot
from trunkline_gateway.subscription import Renders, Subscription
from trunkline_wire import TrunklineError
from trunkline_wire.ids import check_id


class Subscribe(Params, frozen=True, kw_only=True):
    """`session` absent: all sessions, or with `team` those of its lead and its members. A `cursor` wins over `from`."""

    session: str | None = None
    team: str | None = None
    patterns: tuple[str, ...] = ("*",)
    cursor: str | None = None
    start: Literal["start", "now", "snapshot"] = msgspec.field(name="from", default="snapshot")
    deltas: bool = True
    messages: int = MESSAGES
    """How many of the latest messages the snapshot of a session tells, at most MAX_MESSAGES."""
    presence: bool = False
    """Tell who is there too, at once and whenever it changes: frames of the type `presence`. WebSocket only."""


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription that is not running yet, and what its client is to be told first."""

    subscription: Subscription
    cursor: str
    gap: Gap | None = None
    snapshot: dict[str, Any] | None = None

    def payload(self, name: str) -> dict[str, Any]:
        """The answer to `subscribe`."""
        told: dict[str, Any] = {"subscription": name, "cursor": self.cursor}
        if self.snapshot is not None:
            told["snapshot"] = self.snapshot
        if self.gap is not None:
            told["gap"] = self.gap
        return told


async def open_subscription(
    gateway: Gateway,
    principal: Principal,
    params: Subscribe,
    outbox: Outbox,
    renderer: Callable[[Narrow | None], Renders],
    stack: AsyncExitStack,
) -> Opened:
    """Join the channel (until `stack` is closed) and find where to begin.

    `renderer` gets what binds cursors to the patterns and the principal's scope, None where that is everything.
    Raises TrunklineError `unknown_session`, `unknown_team`, `forbidden`, `bad_cursor`, `bad_params`, `log_unavailable`.
    """
    patterns = Patterns(params.patterns)
    check_count(params.messages)
    session = params.session
    if session is not None and params.team is not None:
        raise TrunklineError("bad_params", "give either `session` or `team`", field="team")
    cursor = None if params.cursor is None else gateway.cursors.read(params.cursor)
    if session is not None:
        check_id(session, "ses")
        await require_sight(gateway.directory, principal, session)
        await gateway.directory.session(session)
    channel = await stack.enter_async_context(gateway.hub.channel(session))
    # Who may see a session sees all of it.
    sees = principal.scope if session is None else EVERYTHING
    sight, rights = Sight(gateway.directory, sees), sees.rights
    if params.team is not None:
        found = gateway.boards.find(gateway.directory, sees, params.team)
        sight = TeamSight(gateway.boards, gateway.directory, sees, found)
        rights = f"{rights} {found.id}"
    bound = scope(session, patterns.scope, rights)
    narrow = None if bound == scope(session) else partial(_narrowed, gateway, bound)
    lives, gap = channel.lives, None
    if cursor is not None:
        gap = await gateway.cursors.verify(cursor, session, bound, channel.filters)
        if gap is None:
            # A gateway that is behind the one where the client was would give it cursors that go back.
            await gateway.directory.reached(position(cursor))
    # No await until they are together: the snapshot, the position and the count of deltas.
    snapshot: dict[str, Any] | None = None
    deltas_seen: int | None = None
    if cursor is not None and gap is None:
        seen = position(cursor)
    elif cursor is None and params.start == "start":
        seen = 0
    else:
        seen = channel.position
        if cursor is not None or params.start == "snapshot":
            snapshot, deltas_seen = make_snapshot(gateway, channel, sight), channel.deltas
    how = "gap" if gap is not None else "cursor" if cursor is not None else params.start or "now"
    metrics.GATEWAY_SUBSCRIPTIONS.labels(how).inc()
    if gap is not None:
        metrics.GATEWAY_GAPS.labels(gap.reason).inc()
    began = params.cursor if gap is None else None
    if began is None:
        began = channel.cursor() if seen else gateway.cursors.at(session, 0, None)
    subscription = Subscription(
        gateway.bus,
        channel,
        gateway.cursors,
        outbox,
        renderer(narrow),
        lambda channel: make_snapshot(gateway, channel, sight),
        patterns=patterns,
        deltas=params.deltas,
        seen=seen,
        deltas_seen=deltas_seen,
        narrow=narrow,
        sight=None if sees.whole and params.team is None else sight,
        lives=lives,
    )
    if snapshot is not None and session is not None:
        # Of the log up to where the snapshot stands, whatever has come since: that follows.
        snapshot["messages"] = await latest_messages(gateway, session, params.messages, until=seen)
    return Opened(
        subscription=subscription, cursor=began if narrow is None else narrow(began), gap=gap, snapshot=snapshot
    )


def _narrowed(gateway: Gateway, bound: str, text: str) -> str:
    return gateway.cursors.narrowed(text, bound)

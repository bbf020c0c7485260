"""`event.list`: what happened since a cursor, for programs that ask instead of keeping a connection."""

import contextlib
from typing import Final, NotRequired, TypedDict

import msgspec

from trunkline_bus.cursor import Gap
from trunkline_bus.reader import Reader
from trunkline_gateway.cursors import position, scope
from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.methods.extensions import itself
from trunkline_gateway.patterns import Patterns
from trunkline_gateway.registry import EventAt, Params, method
from trunkline_gateway.ring import frame_of, session_of
from trunkline_gateway.roles import EVERYTHING
from trunkline_gateway.sight import Sight, require_sight
from trunkline_wire import TrunklineError, subjects
from trunkline_wire.ids import check_id

MAX_EVENTS: Final = 500
MAX_BYTES: Final = 512 * 1024
"""An answer over NATS has to fit into one message."""
MAX_SCANNED: Final = 10_000
MAX_WAIT_S: Final = 25.0


class List(Params, frozen=True, kw_only=True):
    after: str | None = None
    session: str | None = None
    patterns: tuple[str, ...] = ("*",)
    limit: int = 100
    wait: float = 0.0
    """Seconds to wait for something to happen, where nothing has yet."""
    routed: bool = False
    """For extensions: only events of turns whose prompt they sent with a `route`."""


class _Source(msgspec.Struct, frozen=True):
    route: str | None = None


class _Routed(msgspec.Struct, frozen=True):
    source: _Source | None = None


class EventsSince(TypedDict):
    events: list[EventAt]
    cursor: str
    gap: NotRequired[Gap]


@method("event.list", "viewer", List, limited="itself")
async def list_(gateway: Gateway, caller: Caller, params: List) -> EventsSince:
    """The facts above the cursor `after`, and the cursor to go on from; without `after` only the cursor of now.

    A `gap` says why not everything can be given; its cursor is of now. An empty answer may still move the cursor.
    """
    if not 1 <= params.limit <= MAX_EVENTS or not 0 <= params.wait <= MAX_WAIT_S:
        raise TrunklineError("bad_params", f"limit is 1 to {MAX_EVENTS}, wait at most {MAX_WAIT_S:g} s", field="limit")
    patterns, session, directory = Patterns(params.patterns), params.session, gateway.directory
    if session is not None:
        await require_sight(directory, caller.principal, check_id(session, "ses"))
    sees = caller.principal.scope if session is None else EVERYTHING
    sight = Sight(directory, sees)
    bound = scope(session, patterns.scope, sees.rights)
    mine = f"{itself(caller)}/" if params.routed else None
    filters = [subjects.ALL_EVENTS if session is None else subjects.session_events(session)]

    def cursor_at(sequence: int, event: str | None) -> str:
        text = gateway.cursors.at(session, sequence, event)
        return text if bound == scope(session) else gateway.cursors.narrowed(text, bound)

    async def now() -> str:
        if session is None:
            return cursor_at(directory.position, directory.last_id)
        last = (await directory.session(session)).sequence
        return cursor_at(last, None)

    if params.after is None:
        return {"events": [], "cursor": await now()}
    cursor = gateway.cursors.read(params.after)
    gap = await gateway.cursors.verify(cursor, session, bound, filters)
    if gap is not None:
        return {"events": [], "cursor": await now(), "gap": gap}
    seen = position(cursor)
    await directory.reached(seen)
    if directory.position <= seen and params.wait:
        with contextlib.suppress(TimeoutError):
            await directory.until("*", lambda: directory.position > seen or None, params.wait)
    found, text, size, scanned = list[EventAt](), params.after, 0, 0
    if directory.position <= seen:
        return {"events": found, "cursor": text}
    async with Reader(gateway.bus, subjects.EVENTS, filters, after=seen, until=directory.position) as reader:
        async for stored in reader:
            if len(found) >= params.limit or size >= MAX_BYTES or scanned >= MAX_SCANNED:
                break
            scanned += 1
            text = cursor_at(stored.sequence, stored.id)
            frame = frame_of(stored, session_of(stored.subject), text)
            wanted = frame is not None and patterns.matches(frame.type) and sight.frame(frame)
            if wanted and (mine is None or _route_of(stored.raw).startswith(mine)):
                if found and size + len(stored.raw) > MAX_BYTES:
                    text = found[-1]["cursor"]
                    break
                found.append({"cursor": text, "event": msgspec.Raw(stored.raw)})
                size += len(stored.raw)
    return {"events": found, "cursor": text}


def _route_of(raw: bytes) -> str:
    try:
        source = msgspec.json.decode(raw, type=_Routed).source
    except msgspec.MsgspecError:
        return ""
    return (source.route if source is not None else None) or ""

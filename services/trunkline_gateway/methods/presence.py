"""`presence.*`: who watches a session, and who types there."""

from typing import TypedDict

from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.presence import Watching
from trunkline_gateway.registry import Params, method
from trunkline_gateway.sight import Sight
from trunkline_wire import TrunklineError


class List(Params, frozen=True, kw_only=True):
    session: str | None = None


class WhoWatches(TypedDict):
    sessions: dict[str, list[Watching]]


@method("presence.list", "viewer", List, limited="itself")
async def list_(gateway: Gateway, caller: Caller, params: List) -> WhoWatches:
    """Who watches a session, or each one where somebody is. A subscription with `presence` hears of every change."""
    sight = Sight(gateway.directory, caller.principal.scope)
    wanted = gateway.presence.sessions() if params.session is None else [params.session]
    return {"sessions": {session: gateway.presence.of(session) for session in wanted if sight.holds(session)}}


class Typing(Params, frozen=True, kw_only=True):
    session: str
    typing: bool = True


class OfSession(TypedDict):
    session: str


@method("presence.typing", "participant", Typing)
async def typing(_: Gateway, caller: Caller, params: Typing) -> OfSession:
    """Say that somebody types a prompt, again every few seconds while it goes on; WebSocket only."""
    if caller.seat is None:
        raise TrunklineError("unsupported", "presence is a connection's: use the WebSocket")
    caller.seat.type(params.session, params.typing)
    return {"session": params.session}

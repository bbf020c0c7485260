"""`ask.link`: a link that decides one ask, for whoever holds it."""

from typing import Literal, TypedDict

from trunkline_gateway import links
from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.registry import Params, method
from trunkline_gateway.sight import require_sight
from trunkline_wire import TrunklineError
from trunkline_wire.actors import check_person
from trunkline_wire.asks import PermissionRequested, PlanProposed
from trunkline_wire.ids import check_id


class Link(Params, frozen=True, kw_only=True):
    ask: str
    actor: str | None = None
    """Who decides with it: the caller without it. Another one only owners may name, and extensions, which vouch for them:
    then the decision is `ext:<name>/<actor>`'s.
    """
    behaviours: tuple[Literal["allow", "deny"], ...] = ("allow", "deny")
    lasts: float = 86400.0
    """Seconds."""
    session: str | None = None


class AskLink(TypedDict):
    """`expires` is in seconds since 1970."""

    code: str
    path: str
    expires: float


@method("ask.link", "approver", Link, acts_as_person=True, limited="itself")
async def link(gateway: Gateway, caller: Caller, params: Link) -> AskLink:
    """A code that decides an ask, once; `path` is where a browser opens it, behind the gateway's URL."""
    check_id(params.ask, "ask")
    ask = gateway.directory.ask(params.ask)
    if ask is None and params.session is not None:
        await gateway.directory.session(check_id(params.session, "ses"))
        ask = gateway.directory.ask(params.ask)
    if ask is None:
        raise TrunklineError("unknown_ask", f"there is no ask {params.ask!r}", ask=params.ask)
    await require_sight(gateway.directory, caller.principal, ask.session)
    if not isinstance(ask.requested, PermissionRequested | PlanProposed):
        raise TrunklineError(
            "bad_params", "a question is answered in the app: a link only allows or denies", field="ask"
        )
    if not params.behaviours or not 0 < params.lasts <= links.MAX_LASTS_S:
        raise TrunklineError("bad_params", "a link has behaviours, and lasts up to seven days", field="lasts")
    actor = caller.principal.actor if params.actor is None else check_person(params.actor)
    if actor != caller.principal.actor and caller.principal.extension is None:
        caller.principal.require("owner", "ask.link for another person")
    code, expires = await links.make(
        gateway.bus,
        ask=ask.ask,
        session=ask.session,
        actor=actor,
        by=caller.principal.actor,
        behaviours=params.behaviours,
        lasts=params.lasts,
        parent=caller.principal.under,
    )
    gateway.audit.note("token", caller.principal.actor, session=ask.session, act="ask_link", ask=ask.ask, of=actor)
    return {"code": code, "path": f"/a/{ask.ask}#code={code}", "expires": expires}

"""The routes of links that decide an ask: the page, what it shows, and the decision."""

from collections.abc import Awaitable, Callable
from typing import Any, Literal

from aiohttp import web

from trunkline_fold.asks import Ask
from trunkline_gateway import links
from trunkline_gateway.access import peer_of
from trunkline_gateway.agents import refuse_agents
from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.methods import asks
from trunkline_gateway.page import small_page
from trunkline_gateway.registry import Params, read_params
from trunkline_gateway.roles import Principal
from trunkline_wire import TrunklineError, encode
from trunkline_wire.asks import PermissionRequested, PlanProposed
from trunkline_wire.blocks import text_of
from trunkline_wire.secret import Secret

SHOWN = 4000

Body = Callable[[web.Request, Principal | None], Awaitable[Any]]


class Look(Params, frozen=True, kw_only=True):
    code: Secret


class Decide(Params, frozen=True, kw_only=True):
    code: Secret
    behaviour: Literal["allow", "deny"]


class Deciding:
    """`body` reads a request's JSON, and counts it against the limits."""

    def __init__(self, gateway: Gateway, body: Body) -> None:
        self._gateway = gateway
        self._body = body

    def add_to(self, router: web.UrlDispatcher) -> None:
        router.add_post("/a/look", self._on_look)
        router.add_post("/a/decide", self._on_decide)
        router.add_get("/a/{ask}", self._on_page)

    async def _on_page(self, _: web.Request) -> web.Response:
        return small_page("/a")

    async def _on_look(self, request: web.Request) -> web.Response:
        params = read_params(Look, await self._body(request, None))
        record = await self._look(params.code)
        ask = self._gateway.directory.ask(record.ask)
        if ask is None:
            raise TrunklineError("unknown_ask", f"there is no ask {record.ask!r} any more", ask=record.ask)
        state = self._gateway.directory.states.get(ask.session)
        title = (state.title or state.cwd or ask.session) if state is not None else ask.session
        shown = {**describe(ask), "session_title": title, "behaviours": record.behaviours, "status": ask.status}
        return web.Response(body=encode(shown), content_type="application/json")

    async def _look(self, code: str) -> links.LinkRecord:
        record = await links.look(self._gateway.bus, code)
        if not self._gateway.devices.stands(record.parent):
            raise TrunklineError("unauthorized", "the link was made on a device that was revoked: ask for another one")
        return record

    async def _on_decide(self, request: web.Request) -> web.Response:
        params = read_params(Decide, await self._body(request, None))
        record = await self._look(params.code)
        principal = Principal(actor=record.decider, role="approver", via="link")
        caller = Caller(principal=principal, peer=peer_of(request))
        await refuse_agents(self._gateway, caller)
        record = await links.redeem(self._gateway.bus, params.code, params.behaviour)
        answer = asks.AnswerParams(ask=record.ask, session=record.session, behaviour=params.behaviour)
        try:
            outcome = await asks.answer(self._gateway, caller, answer)
        except TrunklineError as error:
            if error.status >= 500:
                await links.restore(self._gateway.bus, record)
            raise
        self._gateway.audit.note(
            "token", record.decider, session=record.session, act="ask_link_used", ask=record.ask, by=record.by
        )
        return web.Response(body=encode(outcome), content_type="application/json")


def describe(ask: Ask) -> dict[str, str]:
    """What is asked, as text."""
    match ask.requested:
        case PermissionRequested() as asked:
            about = asked.title or asked.description or ""
            return {"name": asked.name, "about": about[:SHOWN], "input": encode(asked.input).decode()[:SHOWN]}
        case PlanProposed() as asked:
            return {"name": "Plan", "about": "", "input": text_of(asked.plan)[:SHOWN]}
        case _:
            return {"name": ask.kind, "about": "", "input": ""}

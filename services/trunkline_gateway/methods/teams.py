"""`team.*`: teams of agents, their boards, what their members say and use, and asking a lead to shut its team down.

A team is named by its name, or by its id `<lead's session>/<name>` where several have one name.
"""

from typing import Final, Literal, TypedDict

from trunkline_fold.asks import Ask
from trunkline_fold.team.board import BoardMessage, BoardTask, Team, TeamMember, TeamRequest
from trunkline_fold.team.fold import total_usage
from trunkline_gateway.boards import Found, TeamAbout, TeamSummary, about, shown, summary, team_asks
from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.methods.sessions import CommandSent, send
from trunkline_gateway.registry import MAX_PAGE, Page, Paged, Params, method, page_of
from trunkline_gateway.sight import Sight
from trunkline_wire import TrunklineError
from trunkline_wire.blocks import TextBlock, Usage
from trunkline_wire.commands import Prompt

MAX_REASON: Final = 2000
Column = Literal["ready", "blocked", "in_progress", "completed"]


class List(Paged, frozen=True, kw_only=True):
    session: str | None = None
    status: Literal["live", "ended", "all"] = "live"


class TeamPage(Page):
    teams: list[TeamSummary]


@method("team.list", "viewer", List, limited="itself")
async def list_(gateway: Gateway, caller: Caller, params: List) -> TeamPage:
    """The teams, the one that changed last first; `session` is the lead's or a member's."""
    found = [
        one
        for one in gateway.boards.seen(gateway.directory, caller.principal.scope)
        if params.status == "all" or (one.team.ended is None) == (params.status == "live")
        if params.session is None or params.session in one.sessions
    ]
    sight = Sight(gateway.directory, caller.principal.scope)
    chosen, page = page_of(found, params)
    return {"teams": [summary(one, team_asks(one, sight)) for one in chosen], **page}


class One(Params, frozen=True, kw_only=True):
    team: str


class TeamNow(TeamAbout):
    """`asking`: by ask the member that asks, None for the lead; `rest`: how many entries each capped collection has left out."""

    role: Literal["lead", "member"]
    members: list[TeamMember]
    tasks: list[BoardTask]
    requests: list[TeamRequest]
    answered: list[TeamRequest]
    asks: list[Ask]
    asking: dict[str, str | None]
    rest: dict[str, int]


@method("team.get", "viewer", One, limited="itself")
async def get(gateway: Gateway, caller: Caller, params: One) -> TeamNow:
    """A team with its members, tasks, open and answered requests, and the open asks of all its members."""
    found = _find(gateway, caller, params.team)
    asks = team_asks(found, Sight(gateway.directory, caller.principal.scope))
    team = found.team
    return {
        **about(found, asks),
        "role": team.role,
        "members": [shown(member) for member in team.members.values()],
        "tasks": [shown(task) for task in team.tasks.values()],
        "requests": found.requests(asks),
        "answered": list(team.answered.values()),
        "asks": [ask for ask in asks if ask.status == "open"],
        "asking": {ask.ask: found.member_of(ask) for ask in asks if ask.status == "open"},
        "rest": team.rest,
    }


class Card(TypedDict):
    task: BoardTask
    waits_for: list[str]


class TeamBoard(TeamSummary):
    columns: dict[Column, list[Card]]


@method("team.board", "viewer", One, limited="itself")
async def board(gateway: Gateway, caller: Caller, params: One) -> TeamBoard:
    """The tasks by what can be done with them: `ready`, `blocked` by others (`waits_for`), `in_progress`, `completed`."""
    found = _find(gateway, caller, params.team)
    columns: dict[Column, list[Card]] = {"ready": [], "blocked": [], "in_progress": [], "completed": []}
    for task in found.team.tasks.values():
        waits_for = _waits_for(found.team, task)
        column: Column = ("blocked" if waits_for else "ready") if task.status == "pending" else task.status
        columns[column].append({"task": shown(task), "waits_for": waits_for})
    asks = team_asks(found, Sight(gateway.directory, caller.principal.scope))
    return {**summary(found, asks), "columns": columns}


def _waits_for(team: Team, task: BoardTask) -> list[str]:
    """The tasks that have to be completed first; those that are gone hinder nothing."""
    known = [team.tasks[id] for id in task.blocked_by if id in team.tasks]
    return [one.id for one in known if one.status != "completed"]


class Messages(Params, frozen=True, kw_only=True):
    team: str
    member: str | None = None
    before: str | None = None
    limit: int = 50


class MessagePage(TypedDict):
    """`left_out`: how many older ones the board does not keep; `session.history` has all."""

    messages: list[BoardMessage]
    has_more: bool
    left_out: int


@method("team.messages", "viewer", Messages, limited="itself")
async def messages(gateway: Gateway, caller: Caller, params: Messages) -> MessagePage:
    """What the members say to each other, the newest last; of one `member` what it said or was told, `before` a message's event."""
    if params.limit < 1:
        raise TrunklineError("bad_params", "limit must be 1 or more", field="limit")
    found = _find(gateway, caller, params.team)
    said = found.team.messages
    if params.before is not None:
        said = said[: next((at for at, one in enumerate(said) if one.event == params.before), 0)]
    if params.member is not None:
        said = [one for one in said if params.member in (one.sender, one.to) or one.to is None]
    page = said[-min(params.limit, MAX_PAGE) :]
    return {"messages": page, "has_more": len(page) < len(said), "left_out": found.team.rest.get("messages", 0)}


class MemberUsage(TypedDict):
    name: str
    kind: Literal["teammate", "subagent"]
    model: str | None
    session: str | None
    usage: Usage | None


class LeadUsage(TypedDict):
    usage: Usage
    cost_usd: float | None
    turns: int


class TeamUsage(TypedDict):
    id: str
    members: list[MemberUsage]
    total: Usage
    lead: LeadUsage | None


@method("team.usage", "viewer", One, limited="itself")
async def usage(gateway: Gateway, caller: Caller, params: One) -> TeamUsage:
    """Tokens and cost (USD) by member, and of all of them; the lead's session by itself, for it may count its sub-agents too."""
    found = _find(gateway, caller, params.team)
    lead = gateway.directory.states.get(found.lead)
    members = found.team.members.values()
    return {
        "id": found.id,
        "members": [
            {"name": one.name, "kind": one.kind, "model": one.model, "session": one.session, "usage": one.usage}
            for one in members
        ],
        "total": total_usage(one.usage for one in members),
        "lead": None if lead is None else {"usage": lead.usage, "cost_usd": lead.cost_usd, "turns": lead.turns},
    }


class Shutdown(Params, frozen=True, kw_only=True):
    team: str
    reason: str | None = None
    id: str | None = None
    wait: bool = False


class ShutdownAsked(CommandSent):
    session: str
    team: str


@method("team.shutdown", "participant", Shutdown, limited="itself")
async def shutdown(gateway: Gateway, caller: Caller, params: Shutdown) -> ShutdownAsked:
    """Ask the lead to shut its team down: a prompt that says that it is a request. It may refuse; the board shows what it does."""
    found = _find(gateway, caller, params.team)
    if found.team.ended is not None:
        raise TrunklineError("bad_params", f"the team {params.team!r} has ended already", field="team")
    if params.reason is not None and len(params.reason) > MAX_REASON:
        raise TrunklineError("bad_params", f"a reason has up to {MAX_REASON} characters", field="reason")
    gateway.require_room()
    data = Prompt(content=[TextBlock(text=request_text(found, caller.principal.actor, params.reason))])
    sent = await send(gateway, caller, found.lead, data, id=params.id, wait=params.wait)
    return {**sent, "session": found.lead, "team": found.id}


def request_text(found: Found, actor: str, reason: str | None) -> str:
    """The prompt that asks for a shutdown."""
    names = [member.name for member in found.team.members.values() if member.status != "shutdown"]
    asked = f" Ask {', '.join(names)} to shut down first, and wait for their answers." if names else ""
    why = f" The reason: {reason}" if reason else ""
    return f"[Request by {actor}] Please shut down the team {found.team.name!r}.{asked} Then end the team.{why}"


def _find(gateway: Gateway, caller: Caller, wanted: str) -> Found:
    return gateway.boards.find(gateway.directory, caller.principal.scope, wanted)

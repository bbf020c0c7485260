"""The boards of teams: what the team service keeps in `trunk_teams`, mirrored; and which team a name means."""

import asyncio
import logging
from collections.abc import Iterator
from typing import Final, TypedDict, TypeVar, cast

import msgspec

from trunkline_bus.connection import Bus
from trunkline_bus.mirror import Mirror
from trunkline_fold.asks import Ask
from trunkline_fold.team import BoardTask, Team, TeamMember, TeamRequest, TeamsState, decode_teams
from trunkline_fold.team.board import MemberStatus
from trunkline_gateway.directory import Directory
from trunkline_gateway.ring import Frame
from trunkline_gateway.roles import Scope
from trunkline_gateway.sight import Sight
from trunkline_wire import TrunklineError, subjects
from trunkline_wire.blocks import Usage

log = logging.getLogger(__name__)

RETRY_S: Final = 1.0
P = TypeVar("P", TeamMember, BoardTask)


class Found(msgspec.Struct, frozen=True):
    """A team and the session of its lead."""

    lead: str
    team: Team

    @property
    def id(self) -> str:
        """What names it among all: `<lead's session>/<name>`."""
        return f"{self.lead}/{self.team.name}"

    @property
    def sessions(self) -> list[str]:
        """The lead's, and those of the members that have one of their own."""
        own = [member.session for member in self.team.members.values() if member.session is not None]
        return list(dict.fromkeys([self.lead, *own]))

    def member_of(self, ask: Ask) -> str | None:
        """The member that asks; None for the lead, and for who has no name."""
        for member in self.team.members.values():
            if member.session == ask.session or (ask.session == self.lead and member.lane and member.lane == ask.lane):
                return member.name
        return None

    def requests(self, asks: list[Ask]) -> list[TeamRequest]:
        """What members wait for that none of `asks` is: a permission that is asked on the bus is shown there."""
        asking = {self.member_of(ask) for ask in asks if ask.status == "open"}
        return [one for one in self.team.open.values() if one.kind != "permission" or one.member not in asking]


class Boards:
    """Run `run()` as a task; `ready` is set once all that is stored is known."""

    def __init__(self, bus: Bus) -> None:
        self.ready = asyncio.Event()
        self._bus = bus
        self._mirror: Mirror[TeamsState] = self._new()

    def _new(self) -> Mirror[TeamsState]:
        return Mirror(self._bus, subjects.KV_TEAMS, decode_teams)

    async def run(self) -> None:
        """Mirror the bucket until cancelled; what can't be read is tried again."""
        while True:
            mirror = self._mirror
            mirror.ready = self.ready
            try:
                await mirror.run()
            except TrunklineError as error:
                log.warning("boards_restart", extra={"code": error.code, "error": error.message})
            await asyncio.sleep(RETRY_S)
            self._mirror = self._new()

    def get(self, lead: str, name: str) -> Found | None:
        shown = self._mirror.documents.get(lead)
        team = shown.state.teams.get(name) if shown is not None else None
        return None if team is None else Found(lead, team)

    def all(self) -> Iterator[Found]:
        for lead, shown in self._mirror.documents.items():
            for team in shown.state.teams.values():
                yield Found(lead, team)

    def seen(self, directory: Directory, scope: Scope) -> list[Found]:
        """Those whose lead's session is in the scope, the one that changed last first."""
        sight = Sight(directory, scope)
        found = [one for one in self.all() if sight.holds(one.lead)]
        return sorted(found, key=_updated, reverse=True)

    def find(self, directory: Directory, scope: Scope, wanted: str) -> Found:
        """The team of this name or id; of several of one name the one that has not ended.

        Raises TrunklineError `unknown_team` for none that is seen, or for several.
        """
        found = [one for one in self.seen(directory, scope) if wanted in (one.team.name, one.id)]
        live = [one for one in found if one.team.ended is None]
        chosen = live or found[:1]
        if not chosen:
            raise TrunklineError("unknown_team", f"there is no team {wanted!r}; `team.list` names them", team=wanted)
        if len(chosen) > 1:
            ids = ", ".join(one.id for one in chosen)
            raise TrunklineError("unknown_team", f"several teams are called {wanted!r}: {ids}", team=wanted)
        return chosen[0]


def _updated(found: Found) -> str:
    return found.team.updated


class TeamSight(Sight):
    """A scope's sight of one team: its lead's session and those of its members, also of those that join later."""

    def __init__(self, boards: Boards, directory: Directory, scope: Scope, found: Found) -> None:
        super().__init__(directory, scope)
        self._boards = boards
        self._lead, self._name = found.lead, found.team.name

    def holds(self, session: str) -> bool:
        if session != self._lead:
            found = self._boards.get(self._lead, self._name)
            if found is None or session not in found.sessions:
                return False
        return super().holds(session)

    def frame(self, frame: Frame) -> bool:
        return self.holds(frame.session)


def team_asks(found: Found, sight: Sight) -> list[Ask]:
    """The asks of the lead and of all members, in the order in which they came."""
    asks = [ask for session in found.sessions for ask in sight.asks(session)]
    return sorted(asks, key=_sequence)


def _sequence(ask: Ask) -> int:
    return ask.sequence


class TeamAbout(TypedDict):
    """A team, and how much of it waits for people."""

    id: str
    team: str
    lead: str
    sessions: list[str]
    description: str | None
    created: str
    updated: str
    ended: str | None
    open_requests: int
    open_asks: int
    usage: Usage


class TeamSummary(TeamAbout):
    """What a list shows of it: the status of each member, and how many tasks there are of each status."""

    members: dict[str, MemberStatus]
    tasks: dict[str, int]


def shown(part: P) -> P:
    """A member or a task as it is told: its status always among its fields."""
    return cast("P", {"status": part.status, **msgspec.to_builtins(part)})


def summary(found: Found, asks: list[Ask]) -> TeamSummary:
    """What a list shows of a team."""
    team = found.team
    members: dict[str, MemberStatus] = {member.name: member.status for member in team.members.values()}
    tasks: dict[str, int] = {}
    for task in team.tasks.values():
        tasks[task.status] = tasks.get(task.status, 0) + 1
    return {**about(found, asks), "members": members, "tasks": tasks}


def about(found: Found, asks: list[Ask]) -> TeamAbout:
    """What is told of a team in any case."""
    team = found.team
    return {
        "id": found.id,
        "team": team.name,
        "lead": found.lead,
        "sessions": found.sessions,
        "description": team.description,
        "created": team.created,
        "updated": team.updated,
        "ended": team.ended,
        "open_requests": len(found.requests(asks)),
        "open_asks": sum(ask.status == "open" for ask in asks),
        "usage": team.usage,
    }

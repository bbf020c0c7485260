"""The view `teams`: the board of each session that leads a team, from the session's `team` events and nothing else."""

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from trunkline_bus.stored import Stored
from trunkline_bus.views import View
from trunkline_fold.team import Team, TeamsState, decode_teams, encode_teams, fold_teams, initial_teams
from trunkline_fold.team.board import VERSION
from trunkline_wire import subjects
from trunkline_wire.ids import is_id
from trunkline_wire.session import SessionErased

FILTERS: Final = (subjects.ALL_TEAM_EVENTS, subjects.ALL_FACTS)


class TeamsView(View[TeamsState]):
    name: ClassVar[str] = "teams"
    bucket: ClassVar[str] = subjects.KV_TEAMS
    version: ClassVar[int] = VERSION
    filters: ClassVar[Sequence[str]] = FILTERS

    def key(self, stored: Stored) -> str | None:
        if stored.type != SessionErased.TYPE and not is_of_team(stored):
            return None
        session = stored.session
        return session if session is not None and is_id(session, "ses") else None

    def sources(self, key: str) -> Sequence[str]:
        return (subjects.session_events(key),)

    def initial(self, key: str) -> TeamsState:
        return initial_teams(key)

    def fold(self, state: TeamsState, stored: Stored) -> TeamsState:
        return fold_teams(state, stored.event(), stored.sequence)

    def hot(self, before: TeamsState, after: TeamsState) -> bool:
        return {name: _shape(team) for name, team in before.teams.items()} != {
            name: _shape(team) for name, team in after.teams.items()
        }

    def encode(self, state: TeamsState) -> bytes:
        return encode_teams(state)

    def decode(self, raw: bytes) -> TeamsState:
        return decode_teams(raw)


def is_of_team(stored: Stored) -> bool:
    """Whether a message stands on a session's team subject."""
    parsed = subjects.parse(stored.subject)
    return parsed is not None and parsed.rest == "team"


def _shape(team: Team) -> tuple[Any, ...]:
    """What people look at: all but what the members have used."""
    statuses = {name: member.status for name, member in team.members.items()}
    return team.created, team.ended, statuses, team.tasks, team.messages, team.open, team.answered

"""Which lead an input is about."""

from typing import Any

from tests.unit.teams.playing import HOST, NATIVE

from trunkline_teams import router as module
from trunkline_teams.router import Router, by_lead
from trunkline_wire import Data, Event, make_event
from trunkline_wire.blocks import TextBlock
from trunkline_wire.observed import Observation, TeamSeen, make_observation
from trunkline_wire.session import (
    Capabilities,
    SessionClosed,
    SessionCreated,
    SessionErased,
    SessionInitialized,
    SessionOptions,
)
from trunkline_wire.turn import ToolCompleted, ToolStarted

LEAD, MEMBER = "ses_" + "1" * 32, "ses_" + "2" * 32
TIME = "2026-11-27T21:20:10.000000Z"


class Log:
    def __init__(self) -> None:
        self.router = Router()
        self._sequence = 0

    def fact(self, data: Data, session: str = LEAD, **fields: Any) -> set[str]:
        """The leads for which it calls for something."""
        self._sequence += 1
        event: Event = make_event(data, session=session, time=TIME, **fields)
        return set(by_lead(self.router.event(event, self._sequence)))

    def seen(self, data: Data, **fields: Any) -> set[str]:
        self._sequence += 1
        observation: Observation = make_observation(data, host=HOST, time=TIME, **fields)
        return set(by_lead(self.router.observation(observation, self._sequence)))

    def initialized(self) -> set[str]:
        return self.fact(SessionInitialized(capabilities=Capabilities(), native_session=NATIVE))

    def call(self, tool: str, structured: Any, session: str = LEAD, words: str = "", **given: Any) -> set[str]:
        item = f"itm_{self._sequence:032x}"
        self.fact(ToolStarted(name=tool, input=given), session, item=item)
        done = ToolCompleted(status="completed", content=[TextBlock(text=words)], structured=structured)
        return self.fact(done, session, item=item)

    def team(self) -> set[str]:
        return self.call("TeamCreate", {"team_name": "lab"}, team_name="lab")


def joins(team: str) -> SessionCreated:
    command = ["claude", "--agent-name", "ann", "--team-name", team]
    return SessionCreated(
        adapter="claude", cwd="/", host="h", workspace="w", options=SessionOptions(native={"command": command})
    )


def test_what_is_seen_waits_for_the_session_that_runs_the_agent() -> None:
    log = Log()
    assert log.seen(TeamSeen(team="lab"), native_session=NATIVE) == set()
    assert log.seen(TeamSeen(team="other"), native_session="nobody") == set()
    assert log.seen(TeamSeen(team="named"), session=MEMBER) == {MEMBER}
    assert log.initialized() == {LEAD}
    assert log.seen(TeamSeen(team="more"), native_session=NATIVE) == {LEAD}


def test_no_more_is_kept_than_there_is_room_for(monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "MAX_EARLY", 2)
    log = Log()
    for team in ("a", "b", "c"):
        log.seen(TeamSeen(team=team), native_session=NATIVE)
    log.initialized()
    assert log.router.derivers[LEAD].positions == {"EVENTS": 4, "OBSERVED": 3}
    assert len(log.router.derivers[LEAD].listed) == 2, "the oldest is gone"


def test_a_member_of_its_own_session_is_heard_by_its_lead() -> None:
    log = Log()
    assert log.fact(joins("lab"), MEMBER) == set(), "no lead has this team"
    assert log.team() == {LEAD}
    assert log.fact(joins("lab"), MEMBER) == {LEAD}
    created = {"task": {"id": "1"}}
    assert log.call("TaskCreate", created, MEMBER, "Task #1 created successfully: x", subject="x") == {LEAD}
    log.fact(SessionClosed(reason="closed"), MEMBER)
    assert log.call("TaskCreate", created, MEMBER, "Task #2 created successfully: x", subject="x") == set()


def test_a_session_without_a_team_is_forgotten_when_it_closes() -> None:
    log = Log()
    log.initialized()
    log.fact(SessionClosed(reason="closed"))
    assert log.router.derivers == {}
    assert log.seen(TeamSeen(team="lab"), native_session=NATIVE) == set()
    log.team()
    log.fact(SessionClosed(reason="closed"))
    assert list(log.router.derivers) == [LEAD]
    log.fact(SessionErased(by="ann"))
    assert log.router.derivers == {}

"""Which lead an input is about."""

from collections.abc import Iterator
from typing import Any

from tests.bench.teams import life
from tests.unit.teams.playing import HOST, NATIVE

from trunkline_fold.team import encode_deriver
from trunkline_teams import router as module
from trunkline_teams.router import Router, by_lead
from trunkline_wire import Data, Event, decode_event, encode, make_event
from trunkline_wire.blocks import TextBlock, Usage
from trunkline_wire.observed import Observation, TeamSeen, make_observation
from trunkline_wire.session import (
    Capabilities,
    SessionClosed,
    SessionCreated,
    SessionErased,
    SessionInitialized,
    SessionOptions,
)
from trunkline_wire.turn import (
    MessageAssistant,
    MessageUser,
    ToolCompleted,
    ToolStarted,
    TurnCompleted,
    TurnStarted,
)

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


def test_what_need_not_be_decoded_means_nothing() -> None:
    """A log of a session with a team and one without, heard whole and heard only where it is wanted."""
    log, other = Log(), "ses_" + "3" * 32
    chosen, wanted, heard = Router(), list[str](), list[set[str]]()

    def facts() -> Iterator[tuple[Data, str, dict[str, Any]]]:
        for session in (LEAD, other):
            yield SessionInitialized(capabilities=Capabilities(), native_session=session), session, {}
            for data, item, lane in life(3) if session == LEAD else plain():
                yield data, session, {"item": item, "lane": lane}
            said = '<teammate-message teammate_id="m1">\nhello\n</teammate-message>'
            yield MessageUser(content=[TextBlock(text=said if session == LEAD else "hello")]), session, {}
            yield TurnCompleted(outcome="success"), session, {"turn": "tur_1"}
            yield SessionClosed(reason="closed"), session, {}

    for sequence, (data, session, about) in enumerate(facts(), 1):
        event = make_event(data, session=session, time=TIME, **about)
        heard.append(set(by_lead(log.router.event(event, sequence))))
        if chosen.wants(session, event.type, encode(event)):
            wanted.append(session)
            assert set(by_lead(chosen.event(decode_event(encode(event)), sequence))) == heard[-1]
        else:
            assert heard[-1] == set()
    assert sum(map(bool, heard)) > 20
    assert wanted.count(other) == 2, "its beginning and its end"
    assert {id: encode_deriver(one) for id, one in chosen.derivers.items()} == {
        id: encode_deriver(one) for id, one in log.router.derivers.items()
    }


def plain() -> Iterator[tuple[Data, str | None, str | None]]:
    """A turn without a team."""
    item = "itm_" + "e" * 32
    yield TurnStarted(number=1), None, None
    yield ToolStarted(name="Bash", input={"command": "make Task"}), item, None
    yield ToolCompleted(status="completed", content=[]), item, None
    yield MessageAssistant(content=[TextBlock(text="done")], usage=Usage(input=1)), item, None

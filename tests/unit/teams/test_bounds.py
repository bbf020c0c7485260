"""What keeps a board small, and what its readers may count on."""

import pytest
from tests.unit.teams.playing import Playing

from trunkline_fold.team import decode_deriver, decode_teams
from trunkline_fold.team.board import MAX_MESSAGES, MAX_TASKS, MAX_TEAMS
from trunkline_wire import TrunklineError


def test_a_session_keeps_its_newest_teams() -> None:
    playing = Playing()
    for number in [*range(MAX_TEAMS + 5), 7, MAX_TEAMS + 4]:
        name = f"team-{number}"
        playing.call("TeamCreate", "", {"team_name": name}, team_name=name)
        if number != 3:
            playing.call("TeamDelete", "", {"success": True, "team_name": name})
    assert len(playing.board.teams) == MAX_TEAMS
    assert list(playing.board.teams)[-2:] == ["team-7", f"team-{MAX_TEAMS + 4}"]
    assert playing.board.live("team-3") is not None, "a team that has not ended stays before those that have"


def test_a_team_keeps_its_newest_messages_and_gives_up_completed_tasks_first() -> None:
    playing = Playing()
    playing.call("TeamCreate", "", {"team_name": "lab"}, team_name="lab")
    for number in range(MAX_MESSAGES + 1):
        playing.call("SendMessage", "", {"success": True}, to="ann", message=f"message {number}" + "x" * 1000)
    team = playing.team()
    assert len(team.messages) == MAX_MESSAGES
    assert team.messages[0].content.startswith("message 1x")
    assert len(team.messages[0].content) == 500
    assert team.rest == {"messages": 1}
    for number in range(MAX_TASKS):
        playing.call("TaskCreate", f"Task #{number} created successfully: x", subject="x")
    playing.call("TaskUpdate", "Updated task #5 status", taskId="5", status="completed")
    playing.call("TaskCreate", "Task #last created successfully: x", subject="x")
    tasks = playing.team().tasks
    assert len(tasks) == MAX_TASKS
    assert "5" not in tasks
    assert {"0", "last"} < set(tasks)


def test_dependencies_may_form_a_cycle() -> None:
    playing = Playing()
    playing.call("TeamCreate", "", {"team_name": "lab"}, team_name="lab")
    for id in ("1", "2"):
        playing.call("TaskCreate", f"Task #{id} created successfully: x", subject="x")
    playing.call("TaskUpdate", "Updated task #1 blockedBy", taskId="1", addBlockedBy=["2"])
    playing.call("TaskUpdate", "Updated task #2 blockedBy", taskId="2", addBlockedBy=["1"])
    assert {id: (task.blocks, task.blocked_by) for id, task in playing.team().tasks.items()} == {
        "1": (["2"], ["2"]),
        "2": (["1"], ["1"]),
    }


def test_what_is_no_state_is_refused() -> None:
    for decode in (decode_teams, decode_deriver):
        with pytest.raises(TrunklineError) as refused:
            decode(b'{"teams": 1}')
        assert refused.value.code == "bad_event"

"""Calls and results: over any distance, with whatever goes wrong."""

import pytest
from tests.unit.teams.playing import SESSION, Playing, told

from trunkline_fold.team.hearing import MAX_CALLS
from trunkline_wire.session import SessionClosed
from trunkline_wire.turn import ToolStatus, TurnCompleted, TurnStarted


def team() -> Playing:
    playing = Playing()
    playing.begun()
    playing.call("TeamCreate", "", {"team_name": "lab"}, team_name="lab")
    return playing


def codes(playing: Playing) -> list[str]:
    return [caveat.code for caveat in playing.caveats]


def test_a_result_finds_its_call_over_any_distance() -> None:
    playing = team()
    calls = [playing.start("TaskCreate", subject=f"task {number}") for number in range(50)]
    for number, item in reversed(list(enumerate(calls))):
        playing.end(item, f"Task #{number} created successfully: task {number}")
    assert {id: task.subject for id, task in playing.team().tasks.items()} == {
        str(number): f"task {number}" for number in range(50)
    }
    assert playing.deriver.calls == {}


def test_the_id_of_a_task_is_the_structured_one_before_that_of_the_text() -> None:
    playing = team()
    playing.call("TaskCreate", "Task #7 created successfully: a", {"task": {"id": "12", "subject": "a"}}, subject="a")
    playing.call("TaskCreate", "Task #8 created successfully: b", {"task": {"id": 13}}, subject="b")
    playing.call("TaskCreate", "Task #9a created successfully: c", subject="c")
    assert list(playing.team().tasks) == ["12", "13", "9a"]


@pytest.mark.parametrize("status", ["failed", "rejected", "cancelled"])
def test_a_call_that_went_wrong_changes_nothing(status: ToolStatus) -> None:
    playing = team()
    item = playing.start("TaskCreate", subject="a")
    assert playing.end(item, "Task #1 created successfully: a", {"task": {"id": "1"}}, status=status) == []
    assert playing.team().tasks == {}


def test_a_result_without_success_changes_nothing() -> None:
    playing = team()
    playing.call("TaskCreate", "Task #1 created successfully: a", subject="a")
    assert playing.call("TaskUpdate", "Task #1 not found", taskId="1", status="completed") == []
    assert playing.call("TaskUpdate", "", {"success": False}, taskId="1", status="completed") == []
    assert playing.call("SendMessage", '{"success":false,"message":"No agent"}', to="x", message="hi") == []
    assert playing.call("SendMessage", '{"success":true}', to="x", message="hi") != []
    assert playing.team().tasks["1"].status == "pending"


def test_a_result_that_comes_twice_or_without_its_call_changes_nothing() -> None:
    playing = team()
    item = playing.start("TaskCreate", subject="a")
    assert playing.end(item, "Task #1 created successfully: a") != []
    assert playing.end(item, "Task #2 created successfully: a") == []
    assert playing.end("itm_" + "f" * 32, "Task #3 created successfully: a") == []


def test_a_call_is_late_after_thirty_seconds_of_the_log_and_still_heard() -> None:
    """A fact comes each second: the call is of second 4, so that second 34 is the thirtieth behind it, 35 is too late."""
    playing = team()
    item = playing.start("TaskCreate", subject="a")
    for number in range(30):
        playing.fact(TurnStarted(number=number), turn="tur_1")
    assert codes(playing) == []
    playing.fact(TurnStarted(number=99), turn="tur_1")
    assert codes(playing) == ["late_call"]
    playing.fact(TurnStarted(number=100), turn="tur_1")
    assert codes(playing) == ["late_call"]
    assert playing.deriver.calls[item].late
    assert told(playing.end(item, "Task #1 created successfully: a"))[0][0] == "task_created"


def test_open_calls_end_with_the_turn_and_those_of_subagents_with_the_session() -> None:
    playing = team()
    lead, lane = playing.start("TaskCreate", subject="a"), playing.start("TaskCreate", subject="b", lane="itm_lane")
    playing.fact(TurnCompleted(outcome="interrupted"))
    assert list(playing.deriver.calls) == [lane]
    assert playing.end(lead, "Task #1 created successfully: a") == []
    playing.fact(SessionClosed(reason="ended"))
    assert playing.deriver.calls == {}


def test_a_thousand_calls_are_open_and_the_oldest_is_given_up() -> None:
    playing = team()
    first, second = playing.start("TaskCreate", subject="a"), playing.start("TaskCreate", subject="b")
    for _ in range(MAX_CALLS - 1):
        playing.start("TaskList")
    assert codes(playing).count("calls_dropped") == 1
    assert len(playing.deriver.calls) == MAX_CALLS
    assert playing.end(first, "Task #1 created successfully: a") == []
    assert len(playing.end(second, "Task #2 created successfully: b")) == 1


def test_tools_named_like_those_of_a_team_are_counted_as_drift() -> None:
    playing = team()
    for name in ("TeamMerge", "TaskArchive", "TaskArchive", "TaskStop", "TaskOutput", "Taskmaster", "Bash"):
        playing.call(name)
    assert playing.deriver.drift == {"TeamMerge": 1, "TaskArchive": 2}
    assert codes(playing) == ["drift"] * 3


def test_what_lacks_a_field_is_skipped_with_a_warning() -> None:
    playing = team()
    before = playing.board.teams
    playing.call("TeamCreate", "", {})
    playing.call("TaskCreate", "Task #1 created successfully: a")
    playing.call("TaskCreate", "made", subject="a")
    playing.call("TaskUpdate", "Updated task #1 status", status="completed")
    playing.call("SendMessage", "", {"success": True}, message="hi")
    playing.call("SendMessage", "", {"success": True}, to="ann", message={"type": "shutdown_response"})
    playing.call("Agent", "", {"status": "teammate_spawned"})
    assert codes(playing) == ["missing_field"] * 7
    assert playing.board.teams == before


def test_tools_without_an_input_and_results_of_any_shape_do_no_harm() -> None:
    playing = team()
    for name in ("TeamCreate", "TeamDelete", "Task", "Agent", "TaskCreate", "TaskUpdate", "TaskList", "SendMessage"):
        for structured in (None, [], {"task": 1, "tasks": {"a": 1}, "success": "no"}, {"tasks": [1, {"id": None}]}):
            item = playing.start(name)
            playing.end(item, "{", structured)
    assert playing.deriver.session == SESSION

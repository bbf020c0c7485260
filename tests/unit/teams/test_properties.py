"""Properties: what is told twice, a restart anywhere, and lanes that interleave in any way change nothing."""

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.claude.recorded import RECORDINGS
from tests.unit.teams.playing import SESSION, Playing, play_recording

from trunkline_fold.team import (
    Deriver,
    TeamsState,
    decode_deriver,
    decode_teams,
    encode_deriver,
    encode_teams,
    fold_teams,
    hear,
    initial_deriver,
    initial_teams,
    next_event,
)
from trunkline_wire import Event, encode
from trunkline_wire.observed import MailSeen, TaskSeen
from trunkline_wire.team import TeamTask

LANES = ("ann", "bob", "cid")
TASKS = 4
STATUSES = ("pending", "in_progress", "completed", "deleted")

# What a lane does: (task, status or None for a message), on tasks of its own.
acts = st.lists(st.tuples(st.integers(0, TASKS - 1), st.sampled_from((*STATUSES, None))), max_size=12)


def prepared(*, restarts: bool = False) -> tuple[Playing, dict[str, str]]:
    """A team of three with four tasks each; the lanes by name."""
    playing = Playing(restarts=restarts)
    playing.begun()
    playing.call("TeamCreate", "", {"team_name": "lab"}, team_name="lab")
    lanes: dict[str, str] = {}
    for place, name in enumerate(LANES):
        lanes[name] = playing.start("Task", name=name, team_name="lab")
        playing.end(lanes[name], "", {"status": "teammate_spawned", "name": name, "team_name": "lab"})
        for task in range(TASKS):
            id = str(place * TASKS + task)
            playing.call("TaskCreate", f"Task #{id} created successfully: {id}", subject=id)
    return playing, lanes


def act(playing: Playing, lanes: dict[str, str], name: str, task: int, status: str | None) -> None:
    id = str(LANES.index(name) * TASKS + task)
    if status is None:
        playing.call("SendMessage", "", {"success": True}, lane=lanes[name], to="team-lead", message=f"{name} {id}")
    else:
        done = f"Updated task #{id} status"
        playing.call("TaskUpdate", done, lane=lanes[name], taskId=id, status=status)


def shape(playing: Playing) -> Any:
    """The board without what only says when and in which order something was told."""
    team = msgspec.to_builtins(playing.team("lab"))
    for one in (*team["members"].values(), *team["tasks"].values()):
        one.pop("updated")
    said = sorted((message["from"], message["content"]) for message in team.pop("messages", []))
    return {
        **{name: value for name, value in team.items() if name not in ("updated", "heard")},
        "said": said,
        "gone": sorted(team.get("gone", [])),
    }


@settings(max_examples=30)
@given(st.data(), st.fixed_dictionaries(dict.fromkeys(LANES, acts)))
def test_lanes_with_tasks_of_their_own_interleave_in_any_way(data: st.DataObject, plans: dict[str, Any]) -> None:
    one_by_one, lanes = prepared()
    for name in LANES:
        for task, status in plans[name]:
            act(one_by_one, lanes, name, task, status)
    order = data.draw(st.permutations([name for name in LANES for _ in plans[name]]))
    mixed, lanes = prepared()
    left = {name: list(plans[name]) for name in LANES}
    for name in order:
        task, status = left[name].pop(0)
        act(mixed, lanes, name, task, status)
    assert shape(mixed) == shape(one_by_one)


def task_seen(task: int, status: Any, owner: str | None) -> TaskSeen:
    return TaskSeen(list="lab", task=TeamTask(id=str(task), status=status, owner=owner))


def mail_seen(sender: str, words: str) -> MailSeen:
    return MailSeen(team="lab", to="team-lead", sender=sender, text=words)


seen = st.one_of(
    st.builds(task_seen, st.integers(0, 5), st.sampled_from(STATUSES[:3]), st.sampled_from((None, "ann", "bob"))),
    st.builds(mail_seen, st.sampled_from(LANES), st.sampled_from(("one", "two", '{"type":"idle_notification"}'))),
)
steps = st.lists(
    st.one_of(seen, st.tuples(st.sampled_from(LANES), st.integers(0, 3), st.sampled_from((*STATUSES, None))))
)


def play(chosen: list[Any], *, restarts: bool = False) -> Playing:
    playing, lanes = prepared(restarts=restarts)
    for one in chosen:
        if isinstance(one, tuple):
            act(playing, lanes, *one)
        else:
            playing.observe(one)
    return playing


def replay(
    playing: Playing, deriver: Deriver, board: TeamsState, sequence: int, since: int = 0
) -> tuple[TeamsState, list[Event]]:
    """What a writer would append that hears the inputs again, behind what `board` knows."""
    new: list[Event] = []
    for what in playing.inputs[since:]:
        heard = hear(deriver, what)
        while (derived := next_event(board, heard)) is not None:
            sequence += 1
            new.append(derived.event())
            board = fold_teams(board, new[-1], sequence)
    return board, new


@settings(max_examples=30)
@given(steps)
def test_replay_from_zero_is_what_was_live(chosen: list[Any]) -> None:
    playing = play(chosen)
    _, again = replay(playing, initial_deriver(SESSION), initial_teams(SESSION), 0)
    assert [encode(event) for event in again] == [encode(event) for event in playing.written]


@settings(max_examples=15)
@given(steps)
def test_storing_and_reading_all_state_between_any_two_inputs_changes_nothing(chosen: list[Any]) -> None:
    live, stored = play(chosen), play(chosen, restarts=True)
    assert [event.data for event in stored.written] == [event.data for event in live.written]
    assert encode_deriver(stored.deriver) == encode_deriver(live.deriver)


@settings(max_examples=30)
@given(st.data(), steps)
def test_a_restart_anywhere_writes_what_was_left_and_nothing_twice(data: st.DataObject, chosen: list[Any]) -> None:
    """The writer dies with some events written and its deriver stored before them; the next one hears on from there."""
    playing = play(chosen)
    written = data.draw(st.integers(0, len(playing.written)))
    board = initial_teams(SESSION)
    for sequence, event in enumerate(playing.written[:written], 1):
        board = fold_teams(board, event, sequence)
    board = decode_teams(encode_teams(board))
    whole = [
        index
        for index, what in enumerate(playing.inputs)
        if what.what.id not in {e.cause for e in playing.written[written:]}
    ]
    since = data.draw(st.integers(0, next((i for i in range(len(playing.inputs)) if i not in whole), len(whole))))
    deriver = initial_deriver(SESSION)
    for what in playing.inputs[:since]:
        hear(deriver, what)
    deriver = decode_deriver(encode_deriver(deriver))
    _, rest = replay(playing, deriver, board, written, since)
    assert [encode(event) for event in rest] == [encode(event) for event in playing.written[written:]]


@settings(max_examples=20)
@given(st.data(), steps)
def test_inputs_and_events_that_come_again_change_nothing(data: st.DataObject, chosen: list[Any]) -> None:
    playing = play(chosen)
    before = (encode_deriver(playing.deriver), encode_teams(playing.board))
    for what in data.draw(st.lists(st.sampled_from(playing.inputs), max_size=10)):
        assert hear(playing.deriver, what).ops == []
    board = playing.board
    for event in playing.written:
        board = fold_teams(board, event, data.draw(st.integers(1, board.sequence)))
    assert (encode_deriver(playing.deriver), encode_teams(board)) == before


def test_a_recording_that_is_told_again_from_zero_gives_the_same_events() -> None:
    playing = play_recording(RECORDINGS / "all" / "21-team-332-todo-tools.jsonl.gz")
    _, again = replay(playing, initial_deriver(SESSION), initial_teams(SESSION), 0)
    assert [encode(event) for event in again] == [encode(event) for event in playing.written]

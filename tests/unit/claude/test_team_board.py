"""A recorded team in a terminal, as its files and its hooks tell it, on the board."""

import datetime as dt
import json
from pathlib import Path
from typing import Any

from tests.unit.claude.test_team_files import RECORDED, SESSION, Disk

from trunkline_fold.team import Input, TeamsState, fold_teams, hear, initial_deriver, initial_teams, next_event
from trunkline_wire import Event, make_event
from trunkline_wire.observed import Observation, make_observation
from trunkline_wire.work import HookFired

BEGAN = dt.datetime(2026, 11, 29, 6, 18, 40, tzinfo=dt.UTC)


def stamp(seconds: float) -> str:
    return (BEGAN + dt.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Told:
    """The board of what is told, one after the other."""

    def __init__(self) -> None:
        self.deriver = initial_deriver(SESSION)
        self.board: TeamsState = initial_teams(SESSION)
        self.events: list[Event] = []
        self._sequence = 0

    def hear(self, stream: str, what: Event | Observation) -> None:
        self._sequence += 1
        heard = hear(self.deriver, Input(stream=stream, sequence=self._sequence, what=what))
        while (derived := next_event(self.board, heard)) is not None:
            self.events.append(derived.event())
            self.board = fold_teams(self.board, self.events[-1], len(self.events))


def steps(mode: str) -> list[tuple[float, str, dict[str, Any]]]:
    """What was recorded of files and hooks, in order."""
    found: list[tuple[float, str, dict[str, Any]]] = []
    for name in ("files", "hooks"):
        for line in (RECORDED / mode / f"{name}.jsonl").read_text().splitlines():
            step = json.loads(line)
            found.append((step["t"], name, step))
    return sorted(found, key=lambda step: step[0])


def play(mode: str, root: Path, kinds: set[str], until: float = 1000.0) -> Told:
    told, disk = Told(), Disk(root)
    for at, kind, step in steps(mode):
        if kind not in kinds or at > until:
            continue
        if kind == "hooks":
            data = HookFired(hook_event=step["body"]["hook_event_name"], input=step["body"])
            told.hear("EVENTS", make_event(data, session=SESSION, time=stamp(at)))
            continue
        disk.put(step["path"].removeprefix(".claude/"), step["text"])
        for sight in disk.look():
            seen = make_observation(
                sight.data, host="hst_x", time=stamp(at), native_session=sight.native_session, session=SESSION
            )
            told.hear("OBSERVED", seen)
    return told


def shown(told: Told) -> dict[str, Any]:
    ((_, team),) = told.board.teams.items()
    return {
        "members": {one.name: (one.status, one.pane, one.colour) for one in team.members.values()},
        "tasks": {one.id: (one.status, one.owner, one.blocked_by) for one in team.tasks.values()},
    }


def test_files_alone_at_any_moment(tmp_path: Path) -> None:
    alpha = {"alpha": ("idle", None, "blue")}
    moments: list[tuple[float, dict[str, Any]]] = [
        (25, {"members": {}, "tasks": {"1": ("pending", None, []), "2": ("pending", None, [])}}),
        (31, {"members": {}, "tasks": {"1": ("pending", None, []), "2": ("pending", None, ["1"])}}),
        (45, {"members": alpha, "tasks": {"1": ("in_progress", "alpha", []), "2": ("pending", None, ["1"])}}),
        (130, {"members": alpha, "tasks": {"1": ("completed", "alpha", []), "2": ("pending", None, ["1"])}}),
    ]
    for at, expected in moments:
        told = play("in-process", tmp_path / f"{at:g}", {"files"}, until=at)
        assert shown(told) == expected, f"at {at} s"


def test_hooks_beside_files_double_nothing(tmp_path: Path) -> None:
    files = play("in-process", tmp_path / "files", {"files"}, until=130)
    both = play("in-process", tmp_path / "both", {"files", "hooks"}, until=130)
    assert shown(both) == shown(files)
    named = [sorted(event.type for event in one.events if "message" not in event.type) for one in (files, both)]
    assert named[0] == named[1]
    # At 40 and at 48 s the CLI has asked its TaskCompleted hook about a task that went on.
    at_work = play("in-process", tmp_path / "at work", {"files", "hooks"}, until=50)
    assert shown(at_work)["tasks"]["1"] == ("in_progress", "alpha", [])


def test_a_member_in_its_pane(tmp_path: Path) -> None:
    assert shown(play("tmux", tmp_path, {"files", "hooks"}))["members"] == {"alpha": ("idle", "%1", "blue")}

"""What is seen in the files of recorded teams, in the order in which they were written, torn ones among them."""

import json
from pathlib import Path
from typing import Any

import pytest

from trunkline_adapters.claude import team_watch
from trunkline_adapters.claude.team_watch import ClaudeTeamFiles
from trunkline_agentkit.team_files import Sight
from trunkline_wire.blocks import Usage, text_of
from trunkline_wire.observed import ActivitySeen, MailSeen, TaskGone, TaskSeen, TeamGone, TeamSeen

RECORDED = Path(__file__).parents[2] / "recordings" / "claude-team"
SESSION = "ses_" + "a" * 32


class Disk:
    """A directory of the CLI's, and whoever looks at it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files = ClaudeTeamFiles(root)
        self.asked: set[tuple[str | None, int | None]] = set()
        self.whose: str | None = SESSION

    def put(self, path: str, text: str | None) -> None:
        file = self.root / path
        if text is None:
            file.unlink(missing_ok=True)
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def look(self) -> list[Sight]:
        def leads(native: str | None, pid: int | None) -> str | None:
            self.asked.add((native, pid))
            return self.whose

        return self.files.look(leads)

    def play(self, mode: str) -> list[Sight]:
        """Writes what was recorded, one file after the other, and looks after each."""
        found: list[Sight] = []
        for line in (RECORDED / mode / "files.jsonl").read_text().splitlines():
            step = json.loads(line)
            self.put(step["path"].removeprefix(".claude/"), step["text"])
            found += self.look()
        return found


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def brief(sight: Sight) -> tuple[Any, ...]:
    match sight.data:
        case TeamSeen() as data:
            return ("team", *((one.name, one.pane, one.active) for one in data.members))
        case TaskSeen(task=task):
            return ("task", task.id, task.status, task.owner, task.blocks, task.blocked_by)
        case MailSeen() as data:
            said = text_of(data.text)
            said = json.loads(said)["type"] if said.startswith("{") else data.summary
            return ("mail", data.sender, data.to, said)
        case TeamGone():
            return ("gone",)
        case _:
            raise AssertionError(sight.data)


def test_a_team_within_its_leads_process(disk: Disk) -> None:
    lead = ("team-lead", None, None)
    alpha = ("alpha", None, None)
    idle = ("mail", "alpha", "team-lead", "idle_notification")
    found = disk.play("in-process")
    assert [brief(one) for one in found] == [
        ("team", lead),
        ("task", "1", "pending", None, [], []),
        ("task", "2", "pending", None, [], []),
        ("task", "1", "pending", None, ["2"], []),
        ("task", "2", "pending", None, [], ["1"]),
        ("team", lead, alpha),
        ("task", "1", "in_progress", "alpha", ["2"], []),
        ("mail", "alpha", "alpha", "task_assignment"),
        idle,
        idle,
        ("mail", "team-lead", "alpha", "carry on"),
        ("task", "1", "completed", "alpha", ["2"], []),
        idle,
        ("mail", "team-lead", "alpha", "run it"),
        idle,
        ("mail", "team-lead", "alpha", "shutdown_request"),
        idle,
        ("gone",),
    ]
    assert disk.asked == {("fcdd15db-63d6-4a33-b083-52b82e50cbbc", 31979)}
    assert {(one.native_session, one.session) for one in found} == {("fcdd15db-63d6-4a33-b083-52b82e50cbbc", SESSION)}
    team = found[5].data
    assert isinstance(team, TeamSeen)
    assert (team.team, team.lead, found[5].path) == (
        "session-fcdd15db",
        "team-lead@session-fcdd15db",
        "teams/session-fcdd15db/config.json",
    )
    assert (team.members[1].agent_id, team.members[1].type, team.members[1].model, team.members[1].colour) == (
        "alpha@session-fcdd15db",
        "general-purpose",
        "claude-opus-5-5",
        "blue",
    )
    mail = found[10].data
    assert isinstance(mail, MailSeen)
    assert (mail.message, mail.sent) == ("065aa3f1-b6af-4d3b-b849-5346ecc8cd1e", "2026-11-29T06:19:37.333Z")


def test_a_team_in_panes_whose_file_is_torn_once(disk: Disk) -> None:
    members = [brief(one)[1:] for one in disk.play("tmux") if isinstance(one.data, TeamSeen)]
    lead = ("team-lead", None, None)
    assert members == [
        (lead,),
        (lead, ("alpha", None, None)),
        (lead, ("alpha", "%1", None)),
        (lead, ("alpha", "%1", True)),
        (lead, ("alpha", "%1", False)),
        (lead, ("alpha", "%1", True)),
        (lead, ("alpha", "%1", False)),
    ]


def test_somebody_who_looks_anew_sees_the_same_mail_by_the_same_name(disk: Disk) -> None:
    disk.put("teams/t/config.json", '{"members": []}')
    disk.put("teams/t/inboxes/a.json", '[{"from": "b", "text": "hi", "timestamp": "2026-11-29T06:19:37.333Z"}]')
    first = disk.look()
    assert disk.look() == []
    again = Disk(disk.root).look()
    assert [one.id for one in first if isinstance(one.data, MailSeen)] == [one.id for one in again[1:]]
    assert first == again
    # The one who reads it marks it, and says no more by that; the next one is new.
    disk.put(
        "teams/t/inboxes/a.json", '[{"from": "b", "text": "hi", "timestamp": "2026-11-29T06:19:37.333Z", "read": 1}]'
    )
    assert disk.look() == []
    disk.put("teams/t/inboxes/a.json", '[{"from": "b", "text": "hi", "timestamp": "2026-11-29T06:20:00.000Z"}]')
    assert len(disk.look()) == 1


def test_tasks_that_go_are_told_of_behind_their_team(disk: Disk) -> None:
    disk.put("teams/t/config.json", '{"members": []}')
    disk.put("tasks/t/1.json", '{"id": "1"}')
    disk.put("tasks/t/2.json", '{"id": "2"}')
    assert len(disk.look()) == 3
    disk.put("tasks/t/1.json", None)
    assert [one.data for one in disk.look()] == [TaskGone(list="t", task="1")]
    disk.put("tasks/t/2.json", None)
    disk.put("teams/t/config.json", None)
    assert [one.data for one in disk.look()] == [TeamGone(team="t"), TaskGone(list="t", task="2")]


def test_of_many_tasks_the_newest_are_seen_and_none_is_taken_for_gone(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(team_watch, "MOST_FILES", 9)
    disk.put("teams/t/config.json", '{"members": []}')
    for number in range(1, 13):
        disk.put(f"tasks/t/{number}.json", f'{{"id": "{number}"}}')
        told = [one.data for one in disk.look() if not isinstance(one.data, TeamSeen)]
        assert [(type(one), one.task.id) for one in told if isinstance(one, TaskSeen)] == [(TaskSeen, str(number))]
        assert len(told) == 1
    disk.put("tasks/t/12.json", None)
    assert TaskGone(list="t", task="12") in [one.data for one in disk.look()]


def test_a_strangers_team_is_not_told_of_until_it_is_known(disk: Disk) -> None:
    disk.whose = None
    disk.put("teams/t/config.json", '{"members": []}')
    assert disk.look() == []
    disk.whose = SESSION
    assert [one.data.TYPE for one in disk.look()] == ["observed.team"]


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"x"', "[" * 100_000, '{"members": [3, {"name": 4}]}', "\x00"])
def test_files_that_say_nothing(disk: Disk, text: str) -> None:
    disk.put("teams/t/config.json", '{"members": []}')
    assert len(disk.look()) == 1
    for path in ("teams/t/config.json", "teams/t/inboxes/a.json", "tasks/t/1.json"):
        disk.put(path, text)
    assert disk.look() == []


def test_many_changes_are_told_of_in_portions(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team_watch, "AT_A_TIME", 10)
    disk.put("teams/t/config.json", '{"members": []}')
    disk.put("teams/t/inboxes/a.json", json.dumps([{"from": "b", "text": str(n)} for n in range(25)]))
    portions = [disk.look() for _ in range(4)]
    assert [len(one) for one in portions] == [10, 10, 6, 0]
    mail = [one.data.text for portion in portions for one in portion if isinstance(one.data, MailSeen)]
    assert mail == [str(n) for n in range(25)]


def test_each_message_of_a_transcript_counts_once(disk: Disk) -> None:
    """Eight messages of the model, three of them told in two lines; the sums are those of the recorded usages."""
    name = "agent-aalpha-ae07d4110f644e3b"
    lines = (RECORDED / "in-process" / f"{name}.jsonl").read_text()
    folder = "projects/-x/native-1"
    disk.put("teams/t/config.json", '{"leadSessionId": "native-1", "members": []}')
    disk.put(f"{folder}.jsonl", "")
    disk.put(f"{folder}/subagents/{name}.meta.json", (RECORDED / "in-process" / f"{name}.meta.json").read_text())
    seen: list[ActivitySeen] = []
    for size in range(0, len(lines), 3000):  # it grows, and ends in the middle of lines
        disk.put(f"{folder}/subagents/{name}.jsonl", lines[: size + 3000])
        seen += [one.data for one in disk.look() if isinstance(one.data, ActivitySeen)]
    assert [one.messages for one in seen] == sorted(one.messages for one in seen)
    assert seen[-1] == ActivitySeen(
        agent_id="aalpha-ae07d4110f644e3b",
        name="alpha",
        team="t",
        model="claude-opus-5-5",
        state="active",
        messages=8,
        usage=Usage(input=864, output=31, reasoning=0),
    )
    assert disk.look() == []


def test_a_member_in_a_pane_has_a_session_of_its_own(disk: Disk) -> None:
    said = {"type": "assistant", "teamName": "t", "agentName": "alpha"}
    message = {"id": "m1", "model": "x", "usage": {"input_tokens": 3, "output_tokens": 4}}
    disk.put(
        "teams/t/config.json",
        '{"leadSessionId": "native-1", "members": [{"name": "alpha", "agentId": "alpha@t", "tmuxPaneId": "%1"}]}',
    )
    disk.put("projects/-x/native-1.jsonl", "")
    disk.put("projects/-x/native-2.jsonl", json.dumps({"type": "mode"}) + "\n")
    disk.put("projects/-x/native-3.jsonl", json.dumps(said | {"teamName": "other", "message": message}) + "\n")
    assert [one.data.TYPE for one in disk.look()] == ["observed.team"]
    disk.put("projects/-x/native-2.jsonl", json.dumps(said | {"message": message}) + "\n")
    (seen,) = [one.data for one in disk.look()]
    assert isinstance(seen, ActivitySeen)
    assert (seen.agent_id, seen.name, seen.messages, seen.usage) == ("alpha@t", "alpha", 1, Usage(input=3, output=4))


def test_where_to_watch(disk: Disk) -> None:
    assert list(disk.files.directories) == [disk.root]
    disk.put("teams/t/config.json", '{"leadSessionId": "native-1", "members": []}')
    disk.put("teams/t/inboxes/a.json", "[]")
    disk.put("tasks/t/1.json", '{"id": "1"}')
    disk.put("projects/-x/native-1.jsonl", "")
    disk.put("projects/-x/native-1/subagents/agent-a.jsonl", "")
    disk.look()
    assert [str(one.relative_to(disk.root)) for one in disk.files.directories] == [
        "teams",
        "teams/t",
        "teams/t/inboxes",
        "tasks/t",
        "projects/-x/native-1/subagents",
    ]

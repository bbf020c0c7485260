"""Recorded teams through the translator of Claude Code, to team events derived by hand from the recordings."""

from tests.unit.claude.recorded import CONTEXT, RECORDINGS
from tests.unit.teams.playing import play_recording, told

from trunkline_wire.ids import item_id

ALL = RECORDINGS / "all"


def item(native: str) -> str:
    return item_id(CONTEXT.session, CONTEXT.incarnation, native)


def test_named_subagents_of_todays_dialect() -> None:
    """Recording 21, 2.1.332 with the tools of its to-do list.

    The tasks are the session's own until the named sub-agent makes a team of it. What is refused changes nothing: TeamCreate,
    the sub-agent's TaskUpdate and its message to a lead that it can't reach, TeamDelete. The sub-agent's messages have used
    106, 108, 111 and 112 tokens of input and 1 of output each; the lead's turn ends behind the second of them.
    """
    playing = play_recording(ALL / "21-team-332-todo-tools.jsonl.gz")
    alpha = {"name": "alpha", "agent_id": "a8a875accfe80a002", "kind": "subagent"}
    write_alpha = {"id": "1", "subject": "Write alpha"}
    agents = ["alpha"]
    assert told(playing.written) == [
        ("created", {}),
        (
            "task_created",
            {
                "task": {
                    **write_alpha,
                    "description": "write alpha file",
                    "active_form": "Writing alpha",
                    "status": "pending",
                    "blocks": ["2"],
                }
            },
        ),
        (
            "task_created",
            {
                "task": {
                    "id": "2",
                    "subject": "Write beta",
                    "description": "write beta file",
                    "status": "pending",
                    "blocked_by": ["1"],
                }
            },
        ),
        (
            "member_joined",
            {
                "agents": agents,
                "member": {
                    **alpha,
                    "type": "general-purpose",
                    "status": "active",
                    "lane": item("toolu_fake004_5159261e"),
                },
            },
        ),
        ("member_active", {"agents": agents, "member": {**alpha, "status": "active", "model": "claude-opus-5-5"}}),
        ("task_claimed", {"by": "team-lead", "task": {**write_alpha, "status": "in_progress", "owner": "alpha"}}),
        (
            "message",
            {"from": "team-lead", "to": "alpha", "summary": "start please", "content": "please start on task 1"},
        ),
        (
            "member_active",
            {
                "agents": agents,
                "member": {**alpha, "status": "active", "usage": {"input": 214, "output": 2, "source": "computed"}},
            },
        ),
        (
            "member_idle",
            {
                "agents": agents,
                "member": {**alpha, "status": "idle", "usage": {"input": 437, "output": 4, "source": "computed"}},
            },
        ),
        (
            "shutdown_requested",
            {"member": "alpha", "reason": "done", "request": "shutdown-1795814533766@alpha"},
        ),
        (
            "shutdown_requested",
            {"member": "alpha", "reason": "done", "request": "shutdown-1795814541007@alpha"},
        ),
    ]
    assert list(playing.board.teams) == ["session-8f6c5c11"]
    assert playing.caveats == []
    team = playing.team()
    assert {id: (task.status, task.owner, task.blocked_by) for id, task in team.tasks.items()} == {
        "1": ("in_progress", "alpha", []),
        "2": ("pending", None, ["1"]),
    }
    assert (team.usage.input, team.usage.output) == (437, 4)


def test_a_model_without_tools_for_tasks() -> None:
    """Recording 20, 2.1.332: every tool of a team but Agent and SendMessage is refused."""
    playing = play_recording(ALL / "20-team-inproc.jsonl.gz")
    assert [kind for kind, _ in told(playing.written)] == [
        "created",
        "member_joined",
        "member_active",
        "message",
        "member_active",
        "member_idle",
        "shutdown_requested",
        "shutdown_requested",
    ]
    team = playing.team("session-fff01afc")
    assert team.tasks == {}
    assert team.members["alpha"].kind == "subagent"
    assert team.members["alpha"].status == "idle"
    assert list(team.open) == ["shutdown-1795814451445@alpha", "shutdown-1795814458722@alpha"]


def test_the_classic_dialect() -> None:
    """Recording 23, 2.1.50. Its Agent and SendMessage are of today's dialect, so the CLI refuses them."""
    playing = play_recording(ALL / "23-team-v2.1.50.jsonl.gz")
    write_alpha, write_beta = {"id": "1", "subject": "Write alpha"}, {"id": "2", "subject": "Write beta"}
    lead = {"by": "team-lead"}
    assert told(playing.written) == [
        ("created", {"description": "Lab test team", "lead": "team-lead@lab-team"}),
        (
            "task_created",
            lead
            | {
                "task": write_alpha
                | {"description": "write alpha file", "active_form": "Writing alpha", "status": "pending"}
            },
        ),
        ("task_created", lead | {"task": write_beta | {"description": "write beta file", "status": "pending"}}),
        ("task_updated", lead | {"task": write_beta | {"status": "pending", "blocked_by": ["1"]}}),
        ("task_updated", lead | {"task": write_alpha | {"status": "pending", "blocks": ["2"]}}),
        ("task_claimed", lead | {"task": write_alpha | {"status": "in_progress", "owner": "alpha"}}),
        ("deleted", {}),
    ]
    assert playing.team("lab-team").ended == playing.written[-1].time


def test_subagents_without_a_name_are_no_members() -> None:
    """Recording 14: a sub-agent in the foreground."""
    assert play_recording(ALL / "14-subagent-foreground.jsonl.gz").written == []


def test_unnamed_subagents_with_hooks_are_no_members_either() -> None:
    """Recording 42: hooks that call back, and a sub-agent without a name."""
    assert play_recording(ALL / "42-hooks-callback.jsonl.gz").written == []

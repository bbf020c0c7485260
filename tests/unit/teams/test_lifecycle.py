"""The classic example: a team from its creation to its end, step by step, in the words that the classic tools use."""

from tests.unit.teams.playing import Playing, told

from trunkline_fold.team.board import Team
from trunkline_wire.turn import MessageAssistant

SPAWNED = "Spawned successfully.\nagent_id: {0}@lab\nname: {0}\nteam_name: lab\nThe agent is now running."


def spawn(playing: Playing, name: str) -> str:
    item = playing.start("Task", description=name, prompt="go", subagent_type="coder", team_name="lab", name=name)
    playing.end(
        item,
        SPAWNED.format(name),
        {"status": "teammate_spawned", "teammate_id": f"{name}@lab", "name": name, "color": "blue", "team_name": "lab"},
    )
    return item


def statuses(team: Team) -> dict[str, str]:
    return {name: member.status for name, member in team.members.items()}


def tasks(team: Team) -> dict[str, tuple[str, str | None]]:
    return {id: (task.status, task.owner) for id, task in team.tasks.items()}


def test_the_classic_lifecycle() -> None:
    playing = Playing()
    playing.begun()

    created = playing.call(
        "TeamCreate",
        "",
        {"team_name": "lab", "team_file_path": "/x/config.json", "lead_agent_id": "team-lead@lab"},
        team_name="lab",
        description="Two writers",
    )
    assert told(created) == [("created", {"description": "Two writers", "lead": "team-lead@lab"})]
    assert (playing.team().role, playing.team().agents) == ("lead", [])

    playing.call("TaskCreate", "Task #1 created successfully: Write a", subject="Write a", description="a")
    playing.call("TaskCreate", "Task #2 created successfully: Write b", subject="Write b", description="b")
    playing.call("TaskCreate", "Task #3 created successfully: Join", subject="Join", description="c")
    playing.call("TaskUpdate", "Updated task #3 blockedBy", taskId="3", addBlockedBy=["1", "2"])
    assert tasks(playing.team()) == {"1": ("pending", None), "2": ("pending", None), "3": ("pending", None)}
    assert playing.team().tasks["3"].blocked_by == ["1", "2"]
    assert playing.team().tasks["1"].blocks == playing.team().tasks["2"].blocks == ["3"]

    ann, bob = spawn(playing, "ann"), spawn(playing, "bob")
    assert statuses(playing.team()) == {"ann": "active", "bob": "active"}
    assert playing.team().agents == ["ann", "bob"]
    member = playing.team().members["ann"]
    assert (member.kind, member.agent_id, member.type, member.colour) == ("teammate", "ann@lab", "coder", "blue")

    claimed = playing.call(
        "TaskUpdate", "Updated task #1 owner, status", lane=ann, taskId="1", status="in_progress", owner="ann"
    )
    assert told(claimed) == [
        (
            "task_claimed",
            {"by": "ann", "task": {"id": "1", "subject": "Write a", "status": "in_progress", "owner": "ann"}},
        )
    ]
    playing.call("TaskUpdate", "Updated task #2 owner, status", lane=bob, taskId="2", status="in_progress")
    assert tasks(playing.team()) == {"1": ("in_progress", "ann"), "2": ("in_progress", "bob"), "3": ("pending", None)}

    said = playing.call(
        "SendMessage",
        "",
        {"success": True, "message": "Message sent"},
        lane=ann,
        type="message",
        recipient="bob",
        content="half done",
        summary="progress",
    )
    assert told(said) == [("message", {"from": "ann", "to": "bob", "content": "half done", "summary": "progress"})]
    said = playing.call("SendMessage", "", {"success": True}, type="broadcast", content="hurry", summary="all")
    assert told(said) == [("message", {"from": "team-lead", "content": "hurry", "summary": "all"})]

    done = playing.call("TaskUpdate", "Updated task #1 status", lane=ann, taskId="1", status="completed")
    assert [kind for kind, _ in told(done)] == ["task_completed"]
    assert statuses(playing.team()) == {"ann": "active", "bob": "active"}
    # Ann takes up another task at once and stays active; bob does not, and is idle.
    playing.call("TaskUpdate", "Updated task #3 owner, status", lane=ann, taskId="3", status="in_progress", owner="ann")
    playing.call("TaskUpdate", "Updated task #2 status", lane=bob, taskId="2", status="completed")
    assert statuses(playing.team()) == {"ann": "active", "bob": "active"}
    rests = playing.fact(MessageAssistant(content=[]), lane=bob, item="itm_" + "b" * 32)
    assert [kind for kind, _ in told(rests)] == ["member_idle"]
    assert statuses(playing.team()) == {"ann": "active", "bob": "idle"}
    playing.call("TaskUpdate", "Updated task #3 status", lane=ann, taskId="3", status="completed")
    assert tasks(playing.team()) == {"1": ("completed", "ann"), "2": ("completed", "bob"), "3": ("completed", "ann")}

    planned = playing.call(
        "SendMessage",
        "",
        {"success": True},
        lane=ann,
        type="plan_approval_request",
        request_id="plan-1",
        content="1. do it",
    )
    # That was her next event after the completed task, and it takes up none.
    assert statuses(playing.team()) == {"ann": "idle", "bob": "idle"}
    assert told(planned) == [("plan_requested", {"member": "ann", "plan": "1. do it", "request": "plan-1"})]
    answered = playing.call(
        "SendMessage",
        "",
        {"success": True},
        type="plan_approval_response",
        recipient="ann",
        request_id="plan-1",
        approve=False,
        content="shorter",
    )
    assert [kind for kind, _ in told(answered)] == ["plan_answered"]
    plan = playing.team().answered["plan-1"]
    assert (plan.approve, plan.feedback, plan.member) == (False, "shorter", "ann")

    asked = playing.call(
        "SendMessage",
        "",
        {"success": True, "request_id": "shutdown-1@bob", "target": "bob"},
        type="shutdown_request",
        recipient="bob",
        content="thanks",
    )
    assert told(asked) == [("shutdown_requested", {"member": "bob", "reason": "thanks", "request": "shutdown-1@bob"})]
    assert list(playing.team().open) == ["shutdown-1@bob"]
    gone = playing.call(
        "SendMessage",
        "",
        {"success": True},
        lane=bob,
        type="shutdown_response",
        request_id="shutdown-1@bob",
        approve=True,
    )
    assert [kind for kind, _ in told(gone)] == ["shutdown_answered", "member_shutdown"]
    assert statuses(playing.team()) == {"ann": "idle", "bob": "shutdown"}
    assert playing.team().open == {}
    assert playing.team().agents == ["ann", "bob"]

    refused = playing.call("TeamDelete", "", {"success": False, "message": "1 active member(s): ann"})
    assert refused == []
    ended = playing.call("TeamDelete", "", {"success": True, "team_name": "lab"})
    assert [kind for kind, _ in told(ended)] == ["deleted"]
    assert playing.team().ended is not None
    assert statuses(playing.team()) == {"ann": "shutdown", "bob": "shutdown"}
    assert playing.call("TaskCreate", "Task #1 created successfully: later", subject="later") == []


def test_every_event_names_its_source_and_is_the_same_when_it_is_made_again() -> None:
    first, second = Playing(), Playing()
    for playing in (first, second):
        playing.begun()
    created = [
        playing.call("TeamCreate", "", {"team_name": "lab"}, team_name="lab", id="x") for playing in (first, second)
    ]
    assert created[0][0].cause == first.inputs[-1].what.id
    assert created[0][0].src == ("EVENTS", 3, 0)
    assert created[0][0].id == created[1][0].id
    assert created[0][0].time == first.inputs[-1].what.time

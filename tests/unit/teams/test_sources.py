"""Hooks, files and sessions of members beside the lead's stream: the same board, nothing twice."""

from tests.unit.teams.playing import NATIVE, Playing, told

from trunkline_wire.blocks import Usage
from trunkline_wire.ids import imported_event_id
from trunkline_wire.observed import (
    ActivitySeen,
    HookSeen,
    MailSeen,
    SeenMember,
    TaskGone,
    TaskSeen,
    TeamGone,
    TeamSeen,
)
from trunkline_wire.session import SessionClosed, SessionCreated, SessionOptions
from trunkline_wire.team import TeamTask
from trunkline_wire.turn import MessageAssistant, ToolStarted, TurnCompleted
from trunkline_wire.work import HookFired, TaskUpdated

TEAM = "session-6a3701f9"
SPAWNED = {
    "status": "teammate_spawned",
    "agent_id": "aalpha-3a57ab5950208841",
    "teammate_id": f"alpha@{TEAM}",
    "name": "alpha",
    "color": "blue",
    "team_name": TEAM,
    "tmux_pane_id": "in-process",
}
"""The result of a spawn as interactive 2.1.332 gives it."""
SHUT = '{"type":"shutdown_approved","requestId":"shutdown-1@alpha","from":"alpha"}'
CONFIG = TeamSeen(
    team=TEAM,
    lead=f"team-lead@{TEAM}",
    members=[
        SeenMember(name="team-lead", agent_id=f"team-lead@{TEAM}"),
        SeenMember(name="alpha", agent_id="aalpha-3a57ab5950208841", type="general-purpose", pane="%3"),
    ],
)


def interactive(*, restarts: bool = False) -> Playing:
    playing = Playing(restarts=restarts)
    playing.begun()
    playing.call("TaskCreate", "", {"task": {"id": "1"}}, subject="Write alpha", description="a")
    playing.call("Agent", "", SPAWNED, name="alpha", subagent_type="general-purpose", prompt="go")
    return playing


def kinds(playing: Playing) -> list[str]:
    return [kind for kind, _ in told(playing.written)]


def test_an_implicit_team_takes_over_the_sessions_tasks() -> None:
    playing = interactive()
    assert kinds(playing) == ["created", "task_created", "member_joined"]
    assert playing.team(TEAM).members["alpha"].kind == "teammate"
    assert playing.team(TEAM).members["alpha"].pane is None


def test_files_tell_the_same_team_and_add_only_what_they_alone_know() -> None:
    playing = interactive()
    before = len(playing.written)
    news = playing.observe(CONFIG)
    assert [kind for kind, _ in told(news)] == ["member_active"]
    assert playing.team().members["alpha"].pane == "%3"
    assert playing.observe(CONFIG) == []
    assert (
        playing.observe(
            TaskSeen(list=TEAM, task=TeamTask(id="1", subject="Write alpha", description="a", status="pending"))
        )
        == []
    )
    assert len(playing.written) == before + 1
    assert news[0].src == ("OBSERVED", 1, 1)
    assert news[0].cause == playing.inputs[-3].what.id


def test_a_team_that_only_its_files_tell_of() -> None:
    playing = Playing()
    playing.observe(TaskSeen(list=TEAM, task=TeamTask(id="1", subject="Write alpha", status="pending", blocks=["2"])))
    playing.observe(
        TaskSeen(list=TEAM, task=TeamTask(id="2", subject="Write beta", status="pending", blocked_by=["1"]))
    )
    assert playing.written == []
    playing.observe(CONFIG)
    assert kinds(playing) == ["created", "task_created", "task_created", "member_joined"]
    playing.observe(TaskSeen(list=TEAM, task=TeamTask(id="1", status="in_progress", owner="alpha")))
    assert playing.team().tasks["1"].owner == "alpha"
    playing.observe(TaskSeen(list=TEAM, task=TeamTask(id="1", status="completed", owner="alpha")))
    playing.observe(TaskGone(list=TEAM, task="1"))
    playing.observe(TaskGone(list=TEAM, task="2"))
    assert {id: task.status for id, task in playing.team().tasks.items()} == {"1": "completed"}
    playing.observe(TeamSeen(team=TEAM, lead=f"team-lead@{TEAM}", members=[]))
    assert playing.team().members["alpha"].status == "shutdown"
    playing.observe(TeamGone(team=TEAM))
    assert kinds(playing)[-1] == "deleted"


def test_a_file_that_lags_behind_the_stream_reverts_nothing() -> None:
    playing = interactive()
    playing.call("TaskUpdate", "Updated task #1 owner, status", taskId="1", status="in_progress", owner="alpha")
    playing.call("TaskUpdate", "Updated task #1 status", taskId="1", status="completed")
    for status in ("pending", "in_progress", "completed"):
        owner = None if status == "pending" else "alpha"
        assert playing.observe(TaskSeen(list=TEAM, task=TeamTask(id="1", status=status, owner=owner))) == []
    assert playing.team().tasks["1"].status == "completed"


def test_a_stream_that_lags_behind_the_files_reverts_nothing() -> None:
    playing = interactive()
    playing.observe(TaskSeen(list=TEAM, task=TeamTask(id="1", status="in_progress", owner="alpha")))
    playing.observe(TaskSeen(list=TEAM, task=TeamTask(id="1", status="completed", owner="alpha")))
    assert playing.call("TaskUpdate", "Updated task #1 owner, status", taskId="1", status="in_progress") == []
    assert playing.call("TaskUpdate", "Updated task #1 status", taskId="1", status="completed") == []
    # What comes then is news again.
    again = playing.call("TaskUpdate", "Updated task #1 status", taskId="1", status="pending")
    assert [kind for kind, _ in told(again)] == ["task_updated"]


def test_mail_that_is_seen_anew_says_nothing_again() -> None:
    playing = interactive(restarts=True)
    mail = MailSeen(team=TEAM, to="alpha", sender="team-lead", text="ping")
    idle = MailSeen(team=TEAM, to="team-lead", sender="alpha", text='{"type":"idle_notification","from":"alpha"}')
    ids = {mail: imported_event_id(TEAM, "alpha/1", 1), idle: imported_event_id(TEAM, "lead/1", 2)}
    assert [len(playing.observe(one, id=id)) for one, id in ids.items()] == [1, 1]
    playing.observe(TaskSeen(list=TEAM, task=TeamTask(id="1", status="in_progress", owner="alpha")))
    assert playing.team().members["alpha"].status == "active"
    # Another worker looks at the same files.
    assert [playing.observe(one, id=id) for one, id in ids.items()] == [[], []]
    assert playing.team().members["alpha"].status == "active"


def test_a_team_that_is_made_anew_under_its_name_is_another() -> None:
    playing = Playing()
    mail = MailSeen(team="lab", to="ann", sender="team-lead", text="ping")
    seen = TeamSeen(team="lab", members=[SeenMember(name="ann")])
    for _ in range(2):
        playing.call("TeamCreate", "", {"team_name": "lab"}, team_name="lab")
        playing.observe(TeamGone(team="lab"))  # of the one before, seen late
        assert playing.team().ended is None
        playing.observe(seen)
        playing.call("SendMessage", "", {"success": True}, to="ann", message="ping")
        assert playing.observe(mail) == []
        assert len(playing.team().messages) == 1
        playing.call("TeamDelete", "", {"success": True, "team_name": "lab"})
        assert playing.observe(seen) == [], "what is seen late of a team that has ended is no team"
    # Where files alone tell, they tell of the next one, too.
    playing.observe(TeamGone(team="lab"))
    assert [kind for kind, _ in told(playing.observe(seen))] == ["created", "member_joined"]


def test_a_team_ends_with_its_lead_unless_a_member_lives_on() -> None:
    playing = interactive()
    playing.fact(SessionClosed(reason="ended"))
    assert kinds(playing)[-2:] == ["member_shutdown", "deleted"]
    assert playing.observe(CONFIG) == [], "its files are left behind"
    # Taken up again, the lead has the team that its files tell of.
    playing.begun()
    assert [kind for kind, _ in told(playing.observe(CONFIG))] == ["created", "member_joined"]
    joined = {"command": ["claude", "--agent-name", "alpha", "--team-name", TEAM]}
    created = SessionCreated(adapter="c", cwd="/", host="h", workspace="w", options=SessionOptions(native=joined))
    playing.fact(created, session="ses_" + "c" * 32)
    playing.fact(SessionClosed(reason="ended"))
    assert playing.team().ended is None
    assert playing.team().members["alpha"].status == "active"


def test_a_member_that_is_spawned_again_goes_on_counting() -> None:
    playing = interactive()
    playing.observe(ActivitySeen(agent_id="aalpha-1", name="alpha", messages=1, usage=Usage(input=100)))
    playing.observe(MailSeen(team=TEAM, to="team-lead", sender="alpha", text=SHUT))
    playing.call("Agent", "", SPAWNED, name="alpha", prompt="again")
    playing.observe(ActivitySeen(agent_id="aalpha-2", name="alpha", messages=1, usage=Usage(input=7)))
    member = playing.team().members["alpha"]
    assert member.usage is not None
    assert (member.status, member.usage.input) == ("active", 107)


def test_a_message_in_stream_and_inbox_is_one_and_said_twice_is_two() -> None:
    playing = interactive()
    mail = MailSeen(team=TEAM, to="alpha", sender="team-lead", text="ping", summary="s")
    assert len(playing.call("SendMessage", "", {"success": True}, to="alpha", message="ping", summary="s")) == 1
    assert playing.observe(mail) == []
    assert len(playing.observe(mail)) == 1
    assert playing.call("SendMessage", "", {"success": True}, to="alpha", message="ping", summary="s") == []
    assert len(playing.team().messages) == 2


def test_inboxes_tell_of_shutdowns_idleness_and_permissions() -> None:
    playing = interactive()
    asked = '{"type":"shutdown_request","requestId":"shutdown-1@alpha","from":"team-lead","reason":"done"}'
    playing.observe(MailSeen(team=TEAM, to="alpha", sender="team-lead", text=asked))
    request = (
        '{"type":"permission_request","request_id":"perm-1","agent_id":"alpha","tool_name":"Bash",'
        '"description":"run it","input":{"command":"touch x"}}'
    )
    playing.observe(MailSeen(team=TEAM, to="team-lead", sender="alpha", text=request))
    permission = playing.team().open["perm-1"]
    assert (permission.kind, permission.member, permission.tool) == ("permission", "alpha", "Bash")
    assert permission.input == {"command": "touch x"}
    answer = '{"type":"permission_response","request_id":"perm-1","subtype":"success"}'
    playing.observe(MailSeen(team=TEAM, to="alpha", sender="team-lead", text=answer))
    assert playing.team().answered["perm-1"].approve is True
    playing.observe(
        MailSeen(team=TEAM, to="team-lead", sender="alpha", text='{"type":"idle_notification","from":"alpha"}')
    )
    assert playing.team().members["alpha"].status == "idle"
    gone = '{"type":"shutdown_approved","requestId":"shutdown-1@alpha","from":"alpha"}'
    ended = playing.observe(MailSeen(team=TEAM, to="team-lead", sender="alpha", text=gone))
    assert [kind for kind, _ in told(ended)] == ["shutdown_answered", "member_shutdown"]
    assert playing.team().open == {}


def test_hooks_of_a_session_and_of_a_host_are_one() -> None:
    playing = interactive()
    made = {"task_id": "2", "task_subject": "Write beta", "task_description": "b"}
    assert [kind for kind, _ in told(playing.fact(HookFired(hook_event="TaskCreated", input=made)))] == ["task_created"]
    assert playing.observe(HookSeen(hook_event="TaskCreated", input=made)) == []
    playing.call("TaskCreate", "", {"task": {"id": "2"}}, subject="Write beta", description="b", activeForm="Writing")
    assert kinds(playing)[-1] == "task_updated"
    idle = playing.observe(HookSeen(hook_event="TeammateIdle", input={"teammate_name": "alpha", "team_name": TEAM}))
    assert [kind for kind, _ in told(idle)] == ["member_idle"]
    begun = playing.observe(HookSeen(hook_event="SubagentStart", input={"agent_id": "aalpha-3a57ab5950208841"}))
    assert [kind for kind, _ in told(begun)] == ["member_active"]
    for event in ("PermissionRequest", "Notification", "Stop", "Unheard"):
        assert playing.observe(HookSeen(hook_event=event, input={"agent_id": "aalpha-3a57ab5950208841"})) == []


def test_usage_of_transcript_and_stream_counts_once() -> None:
    playing = interactive()
    lane = next(iter(playing.deriver.lanes))
    usage = Usage(input=100, output=10)
    playing.fact(MessageAssistant(content=[], usage=usage), lane=lane, item="itm_a")
    playing.fact(MessageAssistant(content=[], usage=usage), lane=lane, item="itm_a")
    playing.fact(TurnCompleted(outcome="success"))
    assert (playing.team().usage.input, playing.team().usage.output) == (100, 10)
    seen = ActivitySeen(agent_id="aalpha-3a57ab5950208841", usage=Usage(input=150, output=12, cost_usd=0.5))
    playing.observe(seen)
    assert playing.observe(seen) == []
    assert (playing.team().usage.input, playing.team().usage.output) == (150, 12)
    assert playing.team().usage.cost_usd == 0.5


def test_a_member_with_a_session_of_its_own() -> None:
    """Claude Code starts teammates in tmux panes with flags that name them."""
    playing = interactive()
    other = "ses_" + "7" * 32
    command = ["claude", "--agent-id", f"alpha@{TEAM}", "--agent-name", "alpha", "--team-name", TEAM]
    created = SessionCreated(
        adapter="pty", cwd="/", host="hst_", workspace="ws_", options=SessionOptions(native={"command": command})
    )
    assert [kind for kind, _ in told(playing.fact(created, session=other))] == ["member_active"]
    assert playing.team().members["alpha"].session == other
    item = playing.start("TaskUpdate", session=other, taskId="1", status="in_progress", owner="alpha")
    claimed = playing.end(item, "Updated task #1 owner, status", session=other)
    assert told(claimed)[0][1]["by"] == "alpha"
    done = playing.fact(
        TurnCompleted(outcome="success", usage=Usage(input=5, output=7), cost_usd=0.25), session=other, turn="tur_1"
    )
    assert [kind for kind, _ in told(done)] == ["member_idle"]
    assert (playing.team().usage.output, playing.team().usage.cost_usd) == (7, 0.25)
    playing.fact(SessionClosed(reason="ended"), session=other)
    assert playing.team().members["alpha"].status == "shutdown"


def test_a_named_subagent_of_any_agent_is_a_member_with_a_lane() -> None:
    playing = Playing()
    playing.begun()
    begun = TaskUpdated(task="thr_1", kind="subagent", status="running", name="scout", tool="itm_spawn")
    assert [kind for kind, _ in told(playing.fact(begun))] == ["created", "member_joined"]
    member = playing.team().members["scout"]
    assert (member.kind, member.agent_id, member.lane) == ("subagent", "thr_1", "itm_spawn")
    playing.fact(TaskUpdated(task="thr_1", kind="subagent", status="completed", tool="itm_spawn"))
    assert playing.team().members["scout"].status == "idle"
    playing.fact(ToolStarted(name="Bash"), lane="itm_spawn", item="itm_b")
    assert playing.team().members["scout"].status == "active"
    assert playing.fact(TaskUpdated(task="thr_2", kind="subagent", status="running", tool="itm_other")) == []


def test_prompts_that_carry_messages_of_teammates() -> None:
    """What the lead reads, as recording 25 has it."""
    from trunkline_wire.blocks import TextBlock
    from trunkline_wire.turn import MessageUser

    playing = interactive()
    words = (
        "Another Claude session sent a message:\n"
        '<teammate-message teammate_id="alpha" color="blue" summary="alpha done">\nalpha finished task 1\n</teammate-message>'
    )
    heard = playing.fact(MessageUser(content=[TextBlock(text=words)], synthetic=True))
    assert told(heard) == [
        ("message", {"from": "alpha", "to": "team-lead", "summary": "alpha done", "content": "alpha finished task 1"})
    ]
    sent = MailSeen(team=TEAM, to="team-lead", sender="alpha", text="alpha finished task 1", summary="alpha done")
    assert playing.observe(sent) == []
    assert NATIVE.startswith(TEAM.removeprefix("session-"))

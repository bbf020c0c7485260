"""Starting, watching, prompting and closing sessions with the demo agent, as scripts do it: without a terminal."""

import json
from pathlib import Path

from tests.integration.supervisor.running import Up

from trunkline_testkit import eventually_sync
from trunkline_testkit.processes import cont, marked, stop, wait_gone_sync


def new_session(up: Up, prompt: str | None = None, *flags: str) -> str:
    words = [] if prompt is None else [prompt]
    return up.ok("run", "demo", *words, "--detach", "--cwd", str(up.home), *flags).strip()


def status(up: Up, session: str) -> str:
    lines = [json.loads(line) for line in up.ok("ls", "--all", "--json").splitlines()]
    return next(state["status"] for state in lines if state["session"] == session)


def test_a_run_without_a_terminal_prints_the_text_alone_and_ends_with_its_turn(up: Up) -> None:
    done = up.spawn("run", "demo", "say hello from the agent", "--cwd", str(up.home))
    assert (done.returncode, done.stdout) == (0, "hello from the agent\n")
    assert "— done" in done.stderr


def test_a_prompt_comes_from_a_pipe(up: Up) -> None:
    assert up.ok("run", "demo", "--cwd", str(up.home), stdin="say piped words\n") == "piped words\n"


def test_a_turn_that_fails_is_exit_code_1_and_says_why(up: Up) -> None:
    done = up.cli("run", "demo", "fail out of paper", "--cwd", str(up.home))
    assert done.returncode == 1
    assert "out of paper" in done.stderr


def test_json_is_every_event_in_order(up: Up) -> None:
    events = [
        json.loads(line) for line in up.ok("run", "demo", "say a b", "--json", "--cwd", str(up.home)).splitlines()
    ]
    facts = [event for event in events if "seq" in event]
    assert [event["seq"] for event in facts] == list(range(1, len(facts) + 1))
    types = [event["type"] for event in facts]
    assert types[0] == "session.created"
    assert types[-1] == "turn.completed"
    assert [event["data"]["content"][0]["text"] for event in facts if event["type"] == "message.assistant"] == ["a b"]


def test_options_of_a_run_reach_the_session(up: Up) -> None:
    session = new_session(up, "say x", "--model", "demo-large", "--mode", "free", "--title", "My title")
    state = json.loads(eventually_sync(lambda: _replayed(up, session, "demo-large"), 20))
    assert (state["title"], state["mode"]) == ("My title", "free")
    assert state["options"] == {"mode": "free", "model": "demo-large"}


def _replayed(up: Up, session: str, model: str) -> str | None:
    out = up.ok("replay", session, "--json")
    return out if json.loads(out)["model"] == model else None


def test_send_waits_for_the_turn_it_caused(up: Up) -> None:
    session = new_session(up)
    first = up.cli("send", session, "--wait", "say one two three")
    assert (first.returncode, first.stdout) == (0, "one two three\n")
    assert up.cli("send", session, "--wait", "fail now").returncode == 1
    assert up.ok("send", session, "say later").startswith(f"sent to {session} as cmd_")
    sent = json.loads(up.ok("send", session, "say again", "--json"))
    assert sent["command"].startswith("cmd_")


def test_ids_may_be_shortened_and_last_is_the_newest(up: Up) -> None:
    session = new_session(up, None, "--title", "short")
    for reference in (session[:18], session[4:18], "last"):
        assert up.ok("events", reference, "--json").splitlines()[0].count(session) >= 1
    done = up.cli("events", "ses_")
    assert (done.returncode, done.stderr.split(":")[1].strip()) == (1, "bad_id")
    done = up.cli("events", "ses_ffff")
    assert "error: unknown_session: nothing begins with 'ses_ffff'" in done.stderr


def test_ls_shows_what_is_open_and_with_all_what_is_closed(up: Up) -> None:
    session = new_session(up, None, "--title", "to be closed")
    row = next(line for line in up.ok("ls").splitlines() if line.startswith(session[:16]))
    assert row.split("\t")[1:3] == ["idle", "demo"]
    assert row.endswith("to be closed")
    assert up.ok("close", session, "--reason", "done").startswith("closing")
    eventually_sync(lambda: status(up, session) == "closed", 20)
    assert session[:16] not in up.ok("ls")
    assert session[:16] in up.ok("ls", "--status", "closed")
    done = up.cli("send", session, "hello")
    assert (done.returncode, done.stderr.startswith("error: session_closed:")) == (1, True)


def test_an_interrupt_ends_the_turn(up: Up) -> None:
    session = new_session(up, "silent")
    eventually_sync(lambda: status(up, session) == "running", 20)
    up.ok("interrupt", session)
    eventually_sync(lambda: status(up, session) == "idle", 20)
    last = json.loads(up.ok("events", session, "--type", "turn.completed", "--json").splitlines()[-1])
    assert last["data"]["outcome"] == "interrupted"


def test_events_are_picked_by_type_and_place(up: Up) -> None:
    session = new_session(up, "say x")
    eventually_sync(lambda: "turn.completed" in up.ok("events", session), 20)
    lines = up.ok("events", session, "--type", "turn.*").splitlines()
    assert [line.split()[2] for line in lines] == ["turn.started", "turn.completed"]
    whole = up.ok("events", session, "--json").splitlines()
    late = up.ok("events", session, "--from", "4", "--json").splitlines()
    assert late == whole[3:]
    assert up.ok("events", session, "--nats", "--json").splitlines() == whole
    assert up.ok("events", session, "--from", "now") == ""
    done = up.cli("events")
    assert (done.returncode, "name a SESSION" in done.stderr) == (2, True)
    followed = up.cli("events", session, "--nats", "--from", "eyJ4")
    assert followed.returncode == 2


def test_a_large_value_is_printed_by_its_hash(up: Up, tmp_path: Path) -> None:
    assert up.spawn("run", "demo", "big 700000", "--cwd", str(up.home)).stdout == "x" * 700_000 + "\n"
    session = new_session(up, "big 700000")
    types = ("--type", "message.assistant", "--json")
    lines = eventually_sync(lambda: up.ok("events", session, *types).splitlines(), 20)
    text = json.loads(lines[0])["data"]["content"][0]["text"]
    assert text["size"] == 700_000
    assert up.spawn("blob", text["sha256"]).stdout == "x" * 700_000
    up.ok("blob", text["sha256"], "-o", str(tmp_path / "output"))
    assert (tmp_path / "output").read_text() == "x" * 700_000
    missing = up.cli("blob", "0" * 64)
    assert (missing.returncode, missing.stderr.split(":")[1].strip()) == (1, "blob_missing")


def test_replay_is_the_state_as_it_was(up: Up) -> None:
    session = new_session(up, "say x")
    eventually_sync(lambda: "turn.completed" in up.ok("events", session), 20)
    events = [json.loads(line) for line in up.ok("events", session, "--json").splitlines()]
    started = next(event["seq"] for event in events if event["type"] == "turn.started")
    then = json.loads(up.ok("replay", session, "--at", str(started), "--json"))
    now = json.loads(up.ok("replay", session, "--json"))
    assert (then["status"], then["turn"]["number"], then["seq"]) == ("running", 1, started)
    assert (now["status"], now["turn"], now["last_text"]) == ("idle", None, "x")
    before = json.loads(up.ok("replay", session, "--at", "2020-01-01T00:00:00Z", "--json"))
    assert before["seq"] == 0
    assert "status        idle since" in up.ok("replay", session)
    done = up.cli("replay", session, "--at", "yesterday")
    assert done.stderr.startswith("error: bad_params: 'yesterday' is not a time")


def test_verify_finds_the_log_in_order(up: Up) -> None:
    session = new_session(up, "say x; ask ls")
    eventually_sync(lambda: status(up, session) == "waiting", 20)
    assert up.ok("verify", session).endswith("events: all is well\n")
    assert up.ok("verify", session, "--json") == ""


def test_doctor_finds_the_instance_well(up: Up) -> None:
    found = {one["check"]: one for one in map(json.loads, up.ok("doctor", "--json").splitlines())}
    assert {name: found[name]["state"] for name in ("python", "nats-server", "state directory", "running", "log")} == {
        "python": "ok",
        "nats-server": "ok",
        "state directory": "ok",
        "running": "ok",
        "log": "ok",
    }
    assert found["gateway"]["state"] == "ok"
    assert found["agent demo (demo)"]["state"] == "ok"


def test_topology_has_nothing_to_change(up: Up) -> None:
    assert up.ok("topology", "apply") == "nothing to change\n"
    assert "--restored" in up.ok("topology", "apply", "--help")


def test_the_token_is_named_and_never_shown(up: Up) -> None:
    path = Path(up.ok("token").strip())
    assert path == up.home / "token"
    assert path.read_text().strip() not in up.ok("token")


def test_a_session_that_cannot_be_made_says_why(up: Up) -> None:
    done = up.cli("run", "nonsense", "hello", "--cwd", str(up.home))
    assert done.returncode == 1
    assert done.stderr.startswith("error: agent_not_found:")
    done = up.cli("run", "demo", "hello", "--cwd", "/nowhere/at/all")
    assert done.stderr.startswith("error: bad_directory:")


def test_over_tcp_with_the_token_everything_is_the_same(up: Up) -> None:
    remote = Up.__new__(Up)
    remote.environment = {
        key: value for key, value in up.environment.items() if key not in ("HOME", "TRUNKLINE_HOME")
    } | {
        "TRUNKLINE_HOME": "/nowhere",
        "TRUNKLINE_URL": up.state["gateway"],
        "TRUNKLINE_TOKEN": (up.home / "token").read_text().strip(),
    }
    assert remote.ok("run", "demo", "say far away", "--cwd", str(up.home)) == "far away\n"
    remote.environment["TRUNKLINE_TOKEN"] = "wrong"
    done = remote.cli("ls")
    assert (done.returncode, done.stderr.startswith("error: unauthorized:")) == (1, True)


def test_a_kill_is_obeyed_also_where_the_worker_hangs(up: Up) -> None:
    session = new_session(up, "children; silent")
    eventually_sync(lambda: status(up, session) == "running", 20)
    agents = eventually_sync(lambda: marked("TRUNKLINE_SESSION", session))
    worker = up.children()["adapters"]
    stop(worker.pid)
    try:
        assert up.ok("close", session, "--kill", "--reason", "enough") == f"killing {session}\n"
        eventually_sync(lambda: status(up, session) == "closed", 20)
        wait_gone_sync(agents, 5)
    finally:
        cont(worker.pid)
    assert up.ok("verify", session).endswith("all is well\n")
    closed = json.loads(up.ok("events", session, "--type", "session.closed", "--json"))
    assert closed["data"]["reason"] == "enough"
    assert up.ok("run", "demo", "say still here", "--cwd", str(up.home)) == "still here\n"


def test_an_overview_is_what_all_sessions_come_to(up: Up) -> None:
    before = json.loads(up.ok("overview", "--json"))
    session = new_session(up, "ask make test")
    eventually_sync(lambda: status(up, session) == "waiting", 20)
    found = json.loads(up.ok("overview", "--json"))
    assert found["sessions"]["total"] == before["sessions"]["total"] + 1
    assert found["asks"]["open"] == before["asks"]["open"] + 1
    said = up.ok("overview").splitlines()
    assert said[0].startswith(f"sessions     {found['sessions']['total']}: ")
    assert f"{found['sessions']['by_status']['waiting']} waiting" in said[0]
    assert said[1].startswith(
        f"asks open    {found['asks']['open']} in {found['asks']['sessions']} sessions, the oldest "
    )
    assert [line.split(":")[0] for line in said if line.startswith("projection ")] == [
        f"projection   {name}" for name in ("asks", "pages", "sessions", "teams")
    ]
    (demo,) = (one for one in found["spent"]["by_agent"] if one["agent"] == "demo")
    assert any(line.startswith(f"demo\t{demo['sessions']}\t{demo['turns']}\t") for line in said)
    up.ok("close", session)


def test_a_closed_session_is_opened_again_and_any_method_called(up: Up) -> None:
    session = new_session(up, "say once")
    up.ok("close", session)
    eventually_sync(lambda: status(up, session) == "closed", 20)
    refused = up.cli("send", session, "say more")
    assert (refused.returncode, "session_closed" in refused.stderr, "trunkline resume" in refused.stderr) == (
        1,
        True,
        True,
    )
    assert up.ok("resume", session) == f"resuming {session}\n"
    eventually_sync(lambda: status(up, session) == "idle", 20)
    renamed = json.loads(up.ok("call", "session.rename", f"session={session[:14]}", "title=42 is a text", "wait=true"))
    assert renamed["outcome"] == "finished"
    assert json.loads(up.ok("replay", session, "--json"))["title"] == "42 is a text"
    assert up.cli("call", "session.rename", "title").returncode == 2
    assert up.cli("call", "nope").stderr.startswith("error: unknown_method: there is no method 'nope'")
    up.ok("close", session)

"""Decisions from the command line reach the agent, one of them."""

import json

from tests.integration.cli.test_sessions import new_session
from tests.integration.supervisor.running import Up

from trunkline_testkit import eventually_sync


def asking(up: Up, prompt: str) -> tuple[str, str]:
    """A session whose agent asks, and the ask's id."""
    session = new_session(up, prompt)
    found = eventually_sync(lambda: up.ok("asks", "--session", session, "--json").strip(), 20)
    return session, json.loads(found)["ask"]


def said(up: Up, session: str) -> str:
    """What the agent wrote, once its turn has ended."""
    eventually_sync(lambda: up.ok("events", session, "--type", "turn.completed"), 20)
    lines = up.ok("events", session, "--type", "message.assistant", "--json").splitlines()
    return " ".join(block["text"] for line in lines for block in json.loads(line)["data"]["content"])


def tool_end(up: Up, session: str) -> tuple[str, str]:
    """How the agent's tool call ended, by its own word: status and output."""
    found = eventually_sync(lambda: up.ok("events", session, "--type", "tool.completed", "--json").strip(), 20)
    data = json.loads(found)["data"]
    return data["status"], "".join(block["text"] for block in data.get("content", [])) or data.get("reason", "")


def test_approve_by_a_short_id(up: Up) -> None:
    session, ask = asking(up, "ask rm -rf build")
    assert up.ok("approve", ask[:14]) == f"allow: {ask} of {session}\n"
    status, output = tool_end(up, session)
    assert (status, output) == ("completed", "ran: rm -rf build")
    again = up.cli("approve", ask)
    assert (again.returncode, again.stderr.startswith("error: already_decided:")) == (1, True)


def test_last_is_the_newest_open_ask(up: Up) -> None:
    session, ask = asking(up, "ask make")
    assert up.ok("approve", "last") == f"allow: {ask} of {session}\n"
    assert tool_end(up, session) == ("completed", "ran: make")


def test_deny_with_a_reason_for_the_only_ask_of_a_session(up: Up) -> None:
    session, ask = asking(up, "ask deploy")
    assert up.ok("deny", "--session", session, "--message", "not today") == f"deny: {ask} of {session}\n"
    decided = json.loads(up.ok("events", session, "--type", "ask.decided", "--json"))
    assert (decided["data"]["behaviour"], decided["data"]["message"]) == ("deny", "not today")
    assert decided["source"]["via"]
    assert tool_end(up, session) == ("rejected", "not today")


def test_an_ask_shows_its_input_and_options_and_takes_one_of_them(up: Up) -> None:
    session, ask = asking(up, "ask make install")
    shown = up.ok("asks", "--session", session, "-v")
    assert ask in shown
    assert '"command": "make install"' in shown
    wrong = up.cli("approve", ask, "--option", "perhaps")
    assert "is no option of" in wrong.stderr
    assert up.cli("approve", ask, "--input", "[1]").stderr.startswith(
        "error: bad_answer: --input must be a JSON object"
    )
    up.ok("approve", ask, "--option", "1", "--input", '{"command": "make check"}')
    assert tool_end(up, session) == ("completed", "ran: make check")


def test_questions_are_answered_by_number_or_word(up: Up) -> None:
    session, ask = asking(up, "question Shall I")
    assert up.cli("approve", ask).stderr.startswith(f"error: bad_answer: {ask} asks questions: use `trunkline answer`")
    assert "names no question" in up.cli("answer", ask, "-a", "9=yes").stderr
    up.ok("answer", ask, "-a", "1=1")
    decided = json.loads(up.ok("events", session, "--type", "ask.decided", "--json"))
    assert decided["data"]["behaviour"] == "answered"
    assert list(decided["data"]["answers"].values()) in (["yes"], [["yes"]])
    assert "yes" in said(up, session)


def test_without_a_terminal_a_waiting_run_names_the_ask(up: Up) -> None:
    import subprocess
    import sys

    run = subprocess.Popen(
        [sys.executable, "-m", "trunkline_cli", "run", "demo", "ask ls alone; say finished", "--cwd", str(up.home)],
        env=up.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    session = eventually_sync(lambda: next(iter(_waiting(up)), None), 20)
    up.ok("approve", "--session", session)
    out, err = run.communicate(timeout=30)
    assert run.returncode == 0
    assert "finished" in out
    assert "waits for a decision: trunkline approve ask_" in err


def _waiting(up: Up) -> list[str]:
    asks = [json.loads(line) for line in up.ok("asks", "--json").splitlines()]
    return [ask["session"] for ask in asks if ask["requested"].get("input") == {"command": "ls alone"}]

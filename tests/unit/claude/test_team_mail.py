"""Permissions that teammates ask for by mail: files as 2.1.101 writes them, and answers that its teammates take."""

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.unit.claude.recorded import CONTEXT

from trunkline_adapters.claude import replies, team_mail
from trunkline_adapters.claude.adapter import CAPABILITIES
from trunkline_adapters.claude.team_mail import answer, requests
from trunkline_adapters.claude.translate import ClaudeTranslator
from trunkline_wire import TrunklineError
from trunkline_wire.asks import AskDecided

NATIVE = "5c187c22-3531-4234-bb72-33f65207c4b0"
ID = "perm-1795946317906-ijujb0q"
ASKED_AT = 1795946317.907
"""2026-11-29T09:58:37.907Z, in seconds of the epoch."""
SUGGESTION = {"type": "setMode", "mode": "acceptEdits", "destination": "session"}
REQUEST = {
    "type": "permission_request",
    "request_id": ID,
    "agent_id": "ann",
    "tool_name": "Bash",
    "tool_use_id": "toolu_acd432b4f290262f8c604335",
    "description": "Run a scripted command",
    "input": {"command": "touch by-ann", "description": "Run a scripted command"},
    "permission_suggestions": [SUGGESTION],
}
IDLE = {"type": "idle_notification", "from": "ann", "timestamp": "2026-11-29T09:58:34.218Z", "idleReason": "available"}


def letter(sender: str, said: Any, at: str, *, read: bool = True) -> dict[str, Any]:
    return {"from": sender, "text": said if isinstance(said, str) else json.dumps(said), "timestamp": at, "read": read}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """What stands in the CLI's directory when ann waits."""
    team = tmp_path / "teams" / "lab"
    (team / "inboxes").mkdir(parents=True)
    members = [{"name": "team-lead"}, {"name": "ann", "agentId": "ann@lab"}]
    config = {"name": "lab", "leadSessionId": NATIVE, "members": members}
    (team / "config.json").write_text(json.dumps(config))
    mail = [
        letter("ann", IDLE, "2026-11-29T09:58:34.218Z"),
        letter("ann", "hello from ann", "2026-11-29T09:58:34.158Z"),
        letter("ann", REQUEST, "2026-11-29T09:58:37.907Z"),
    ]
    (team / "inboxes" / "team-lead.json").write_text(json.dumps(mail))
    told = letter("team-lead", "SCENARIO=bash CMD=touch by-ann", "2026-11-29T09:58:37.631Z")
    (team / "inboxes" / "ann.json").write_text(json.dumps([told]))
    return tmp_path


def inbox(root: Path) -> list[dict[str, Any]]:
    return json.loads((root / "teams" / "lab" / "inboxes" / "ann.json").read_text())


def translator() -> ClaudeTranslator:
    return ClaudeTranslator(CONTEXT, CAPABILITIES)


def decided(made: ClaudeTranslator, ask: str, **decision: Any) -> dict[str, Any]:
    waiting = made.open_ask(ask)
    assert waiting is not None
    return replies.decision(waiting, AskDecided(ask=ask, by="user", **decision))


def test_a_request_becomes_an_ask_and_its_decision_an_answer(root: Path) -> None:
    made = translator()
    (asked,) = requests(root, NATIVE, 0)
    assert (asked.request_id, asked.team, asked.member, asked.answered) == (ID, "lab", "ann", False)
    (told,) = made.mailed([asked])
    assert made.mailed([asked]) == []
    data: Any = told.data  # type: ignore[union-attr]
    assert (data.TYPE, data.name, data.input, data.tool) == ("permission.requested", "Bash", REQUEST["input"], None)
    assert [one.id for one in data.options] == ["allow_once", "suggestion:0", "reject"]
    payload = decided(made, data.ask, behaviour="allow", option="suggestion:0")
    answer(root, asked, payload)
    *before, said = inbox(root)
    assert len(before) == 1
    assert (said["from"], said["read"]) == ("team-lead", False)
    assert json.loads(said["text"]) == {
        "type": "permission_response",
        "request_id": ID,
        "subtype": "success",
        "response": {"updated_input": REQUEST["input"], "permission_updates": [SUGGESTION]},
    }
    assert not (root / "teams" / "lab" / "inboxes" / "ann.json.lock").exists()
    # Told again, as after a death between the answer and its note: it stands there once.
    answer(root, asked, {"behavior": "deny", "message": "no"})
    assert len(inbox(root)) == 2
    (asked,) = requests(root, NATIVE, 0)
    assert asked.answered
    assert translator().mailed([asked]) == []


def test_a_refusal_says_why(root: Path) -> None:
    made = translator()
    (asked,) = requests(root, NATIVE, 0)
    (told,) = made.mailed([asked])
    ask = told.data.ask  # type: ignore[union-attr]
    answer(root, asked, decided(made, ask, behaviour="deny", message="leave it"))
    assert json.loads(inbox(root)[-1]["text"]) == {
        "type": "permission_response",
        "request_id": ID,
        "subtype": "error",
        "error": "leave it",
    }


def test_what_is_settled_without_us_is_withdrawn(root: Path) -> None:
    made = translator()
    made.mailed(requests(root, NATIVE, 0))
    waits = made.open_asks(mailed=True)
    assert len(waits) == 1
    # A turn's end and the CLI's own list say nothing of it.
    made.feed({"type": "result", "subtype": "success", "is_error": False, "result": ""})
    assert made.open_asks() == waits
    answer(root, requests(root, NATIVE, 0)[0], {"behavior": "allow"})
    (told,) = made.mailed(requests(root, NATIVE, 0))
    assert (told.data.TYPE, told.data.why) == ("ask.withdrawn", "answered_elsewhere")  # type: ignore[union-attr]
    assert made.open_asks() == set()

    other = translator()
    (root / "teams" / "lab" / "inboxes" / "ann.json").write_text("[]")
    other.mailed(requests(root, NATIVE, 0))
    (told,) = other.mailed([])
    assert (told.data.TYPE, told.data.why) == ("ask.withdrawn", "cancelled")  # type: ignore[union-attr]


def test_who_asked_is_of_this_team_and_this_process(root: Path) -> None:
    assert requests(root, "another", 0) == []
    assert requests(root, NATIVE, ASKED_AT - 0.01) != []
    assert requests(root, NATIVE, ASKED_AT + 0.01) == [], "asked of a process that is gone"
    config = root / "teams" / "lab" / "config.json"
    (asked,) = requests(root, NATIVE, 0)
    config.write_text(config.read_text().replace('"ann"', '"bob"'))
    assert requests(root, NATIVE, 0) == []
    with pytest.raises(TrunklineError, match="has left") as refused:
        answer(root, asked, {"behavior": "allow"})
    assert refused.value.code == "unknown_ask"
    assert len(inbox(root)) == 1


def test_a_member_that_was_never_written_to_has_no_inbox_yet(root: Path) -> None:
    (root / "teams" / "lab" / "inboxes" / "ann.json").unlink()
    (asked,) = requests(root, NATIVE, 0)
    answer(root, asked, {"behavior": "allow"})
    assert len(inbox(root)) == 1


def test_the_lock_is_waited_for_and_a_dead_holder_s_taken(root: Path) -> None:
    (asked,) = requests(root, NATIVE, 0)
    lock = root / "teams" / "lab" / "inboxes" / "ann.json.lock"
    lock.mkdir()
    writing = threading.Thread(target=answer, args=(root, asked, {"behavior": "allow"}))
    writing.start()
    writing.join(0.1)
    assert writing.is_alive()
    assert len(inbox(root)) == 1
    lock.rmdir()
    writing.join(10)
    assert len(inbox(root)) == 2

    (root / "teams" / "lab" / "inboxes" / "ann.json").write_text("[]")
    lock.mkdir()
    os.utime(lock, (0, 0))
    answer(root, asked, {"behavior": "allow"})
    assert len(inbox(root)) == 1
    assert not lock.exists()


def test_an_inbox_that_is_none_is_left_alone(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (asked,) = requests(root, NATIVE, 0)
    monkeypatch.setattr(team_mail, "_EVERY_S", 0.0)
    file = root / "teams" / "lab" / "inboxes" / "ann.json"
    for content in ("{", '{"a": 1}', ""):
        file.write_text(content)
        with pytest.raises(TrunklineError) as refused:
            answer(root, asked, {"behavior": "allow"})
        assert refused.value.code == "agent_failed"
        assert file.read_text() == content
    assert not file.with_name("ann.json.lock").exists()

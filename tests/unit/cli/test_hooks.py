"""`trunkline hooks`: what it makes of a user's settings, and what it says."""

import json
from pathlib import Path

import pytest

from trunkline_cli.root import run


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Those of a user whose home is here."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TRUNKLINE_HOME", str(tmp_path / "trunkline"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    return tmp_path / ".claude" / "settings.json"


def test_install_status_uninstall(settings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings.parent.mkdir()
    settings.write_text('{"model": "opus", "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say"}]}]}}')
    before = json.loads(settings.read_text())
    assert run(["hooks", "install", "claude"]) == 0
    assert capsys.readouterr().out == f"{settings}: 10 hooks installed, for sessions that begin from now on\n"
    installed = settings.read_bytes()
    endpoint = json.loads((settings.parents[1] / "trunkline" / "hooks.json").read_text())
    secret = f"Bearer {endpoint['secret']}"
    assert json.loads(installed)["hooks"]["Stop"][1]["hooks"][0]["headers"]["Authorization"] == secret
    assert endpoint["secret"] not in json.loads(installed)["hooks"]["Stop"][1]["hooks"][0]["url"]

    assert run(["hooks", "install", "claude"]) == 0
    assert capsys.readouterr().out == f"{settings}: unchanged\n"
    assert settings.read_bytes() == installed

    assert run(["hooks", "status", "claude"]) == 1
    said = capsys.readouterr().out
    assert "no receiver listens" in said
    assert "TeammateIdle" in said
    assert endpoint["secret"] not in said

    assert run(["hooks", "uninstall", "claude"]) == 0
    assert json.loads(settings.read_text()) == before
    assert run(["hooks", "uninstall", "claude"]) == 0
    assert capsys.readouterr().out.endswith("there are none of ours\n")


def test_another_file_and_what_hinders_it(settings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = settings.parents[1] / "project.json"
    file.write_text('{"disableAllHooks": true}')
    assert run(["hooks", "install", "claude", "--file", str(file)]) == 0
    assert capsys.readouterr().err == "`disableAllHooks` is on: no hook is called\n"
    assert not settings.exists()
    assert run(["hooks", "status", "claude", "--file", str(file), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["file"], found["current"], found["heard"]) == (str(file), True, False)
    assert len(found["events"]) == 10


def test_what_can_not_be_read_is_left_as_it_is(settings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings.parent.mkdir()
    settings.write_text("{ // mine\n}")
    assert run(["hooks", "install", "claude"]) == 1
    assert capsys.readouterr().err.startswith(f"error: bad_settings: '{settings}' can't be read: ")
    assert settings.read_text() == "{ // mine\n}"


def test_an_agent_without_hooks(settings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    del settings
    assert run(["hooks", "install", "demo"]) == 1
    assert capsys.readouterr().err.startswith("error: unsupported: ")

"""What a real agent gets to see: its own home, a dummy key, the scripted model, and nothing of this machine."""

import functools
import os
from pathlib import Path

import pytest

from trunkline_testkit import offline
from trunkline_testkit.agents import AGENTS

URL = "http://127.0.0.1:4711"


def _at(path: Path | None, _: str) -> Path | None:
    return path


@pytest.mark.parametrize("name", sorted(AGENTS))
def test_an_agent_is_told_of_the_scripted_model_and_inherits_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "the machine's own")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "the machine's own")
    monkeypatch.setattr(offline, "agent_path", functools.partial(_at, tmp_path / "bin" / "program"))
    home = tmp_path / "home"
    environment = offline.offline_env(name, home, URL)
    assert environment["HOME"] == str(home)
    assert Path(environment["TMPDIR"]).is_dir()
    assert environment["PATH"].split(":")[0] == str(tmp_path / "bin")
    settings = [path.read_text() for path in home.rglob("*") if path.is_file()]
    assert any(URL in text for text in [*environment.values(), *settings])
    assert "the machine's own" not in environment.values()
    assert os.environ["HOME"] not in environment.values()


def test_an_agent_that_is_not_installed_is_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offline, "agent_path", functools.partial(_at, None))
    with pytest.raises(LookupError, match="gemini is not installed: run `just agents gemini`"):
        offline.offline_env("gemini", tmp_path, URL)

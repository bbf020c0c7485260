"""The installer against a stand-in for npm, so that no test downloads 400 MB."""

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from trunkline_testkit import agents

NPM = """#!/bin/sh
[ "$1" = ci ] || exit 9
echo run >> "$NPM_LOG"
cat package-lock.json > /dev/null || exit 8
[ -f fail ] && { echo "it is broken" >&2; exit 1; }
dir=node_modules/@anthropic-ai/claude-code-linux-x64
mkdir -p "$dir" node_modules/.bin
printf '#!/bin/sh\\necho 2.1.332\\n' > "$dir/claude"
printf '#!/bin/sh\\nexit 1\\n' > node_modules/.bin/claude
chmod +x "$dir/claude" node_modules/.bin/claude
"""


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lock, an empty cache and the stand-in npm; the folder of all three."""
    (tmp_path / "lock" / "claude").mkdir(parents=True)
    (tmp_path / "lock" / "claude" / "package.json").write_text("{}")
    (tmp_path / "lock" / "claude" / "package-lock.json").write_text('{"lockfileVersion": 3}')
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "npm").write_text(NPM)
    (tmp_path / "bin" / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TRUNKLINE_AGENTS", str(tmp_path / "lock"))
    monkeypatch.setenv("NPM_LOG", str(tmp_path / "npm.log"))
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    return tmp_path


def runs(stage: Path) -> int:
    return len((stage / "npm.log").read_text().split())


def test_the_folder_is_named_by_the_lock(stage: Path) -> None:
    digest = hashlib.sha256(b'{"lockfileVersion": 3}').hexdigest()
    assert agents.install_folder("claude") == stage / "cache" / "trunkline" / "agents" / digest[:16]


def test_an_install_happens_once_and_finds_the_program_of_this_platform(stage: Path) -> None:
    assert agents.claude_path() is None
    program = agents.install("claude")
    assert program == agents.install_folder("claude") / "node_modules/@anthropic-ai/claude-code-linux-x64/claude"
    assert agents.install("claude") == agents.claude_path() == program
    assert runs(stage) == 1


def test_a_half_finished_folder_is_replaced(stage: Path) -> None:
    (agents.install_folder("claude") / "node_modules").mkdir(parents=True)
    assert agents.install("claude").is_file()
    assert runs(stage) == 1


def test_a_failed_install_leaves_nothing_and_says_why(stage: Path) -> None:
    (stage / "bin" / "npm").write_text(NPM.replace("[ -f fail ]", "true"))
    with pytest.raises(agents.InstallError, match="it is broken"):
        agents.install("claude")
    assert agents.claude_path() is None
    assert [path.suffix for path in agents.install_folder("claude").parent.iterdir()] == [".lock"]


def test_of_many_at_once_one_installs(stage: Path) -> None:
    command = [sys.executable, "-m", "trunkline_testkit.agents", "install", "claude"]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    printed = {process.communicate()[0].strip() for process in started}
    assert printed == {str(agents.claude_path())}
    assert runs(stage) == 1


@pytest.mark.usefixtures("stage")
def test_the_command_line_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert agents.main(["path", "claude"]) == 1
    assert "run `just agents claude`" in capsys.readouterr().err
    assert agents.main(["install", "claude"]) == 0
    assert capsys.readouterr().out.strip() == str(agents.claude_path())
    assert agents.main(["path", "claude"]) == 0


@pytest.mark.usefixtures("stage")
def test_a_live_test_fails_without_the_agent_unless_told_to_skip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRUNKLINE_SKIP_LIVE", raising=False)
    with pytest.raises(pytest.fail.Exception, match="run `just agents claude`"):
        agents.require("claude")
    monkeypatch.setenv("TRUNKLINE_SKIP_LIVE", "1")
    with pytest.raises(pytest.skip.Exception):
        agents.require("claude")
    agents.install("claude")
    assert agents.require("claude") == agents.claude_path()


def test_an_agent_inherits_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "the machine's own")
    environment = agents.agent_env(tmp_path / "h", "http://127.0.0.1:1", CLAUDE_CODE_MAX_RETRIES="0")
    assert environment["HOME"] == str(tmp_path / "h")
    assert environment["TMPDIR"] == environment["CLAUDE_CODE_TMPDIR"] == str(tmp_path / "h" / "tmp")
    assert (tmp_path / "h" / "tmp").is_dir()
    assert environment["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:1"
    assert environment["CLAUDE_CODE_MAX_RETRIES"] == "0"
    assert not {"ANTHROPIC_AUTH_TOKEN", "PYTHONPATH", "USER"} & set(environment)
    assert os.environ["HOME"] not in environment.values()


@pytest.mark.parametrize("name", sorted(agents.AGENTS))
def test_a_lock_names_no_host_and_the_version_that_was_measured(name: str) -> None:
    agent, folder = agents.AGENTS[name], agents.lock_folder(name)
    if agent.python:
        lock = (folder / "requirements.txt").read_text()
        assert f"\n{agent.package}=={agent.version} " in f"\n{lock}"
        assert "--hash=sha256:" in lock
    else:
        lock = (folder / "package-lock.json").read_text()
        assert re.search(f'"{agent.package}(-linux-x64)?": "{agent.version}"', lock)
        assert '"resolved"' not in lock
    assert "index-url" not in lock


def test_every_folder_with_a_lock_is_an_agent() -> None:
    assert {path.name for path in agents.lock_folder("claude").parent.iterdir() if path.is_dir()} == set(agents.AGENTS)


PYTHON = """#!/bin/sh
case "$*" in
    --version) exit 0 ;;
    "-m venv "*) mkdir -p "$4/bin" && cp "$0" "$4/bin/python" ;;
    *) exit 9 ;;
esac
"""
UV = """#!/bin/sh
echo run >> "$NPM_LOG"
[ "$1 $2 $7" = "pip install --require-hashes" ] || exit 9
[ -f ../fail ] && { echo "no such hash" >&2; exit 1; }
cp "$6" "$(dirname "$6")/fast-agent-acp"
"""


def test_an_agent_from_pypi_gets_an_environment_of_its_own(stage: Path) -> None:
    (stage / "lock" / "fast-agent").mkdir()
    (stage / "lock" / "fast-agent" / "requirements.txt").write_text("fast-agent-mcp==1\n")
    with pytest.raises(agents.InstallError, match="uv is not on PATH"):
        agents.install("fast-agent")
    for name, program in (("python3.13", PYTHON), ("uv", UV)):
        (stage / "bin" / name).write_text(program)
        (stage / "bin" / name).chmod(0o755)
    folder = agents.install_folder("fast-agent")
    (folder.parent / "fail").touch()
    with pytest.raises(agents.InstallError, match="no such hash"):
        agents.install("fast-agent")
    assert agents.agent_path("fast-agent") is None
    (folder.parent / "fail").unlink()
    assert agents.install("fast-agent") == folder / "bin" / "fast-agent-acp"
    assert agents.install("fast-agent") == agents.agent_path("fast-agent")
    assert runs(stage) == 2

"""The real agents that live tests run: each installed by itself from a pinned lock, below the cache directory.

`python -m trunkline_testkit.agents install claude codex` installs, `… path claude` prints where the program is.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

LOCK_VARIABLE = "TRUNKLINE_AGENTS"
"""Names a folder with a folder for each agent, for those who don't work in Trunkline's tree."""
SKIP_VARIABLE = "TRUNKLINE_SKIP_LIVE"

_ARCHITECTURES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
_NPM_LOCK = "package-lock.json"
_PYTHON_LOCK = "requirements.txt"
_NPM_FILES = ("package.json", _NPM_LOCK, ".npmrc")
_SAID = 1500
"""Characters of an installer's errors that are told from their start, and from their end."""
_COMPLETE = ".complete"
"""Is written into a finished environment of Python: it can't be moved into its place when it is whole."""


@dataclass(frozen=True, slots=True)
class Agent:
    """How an agent is packed. `python` is set for those from PyPI: the version of Python that it needs."""

    package: str
    program: str
    version: str
    python: str | None = None
    native: bool = False
    """Whether the program itself is in a package for each platform, `<package>-linux-x64` and so on."""


_SDK = "lib/python3.11/site-packages/claude_agent_sdk"
"""A package and no program: it is imported, and brings the program that it runs."""

AGENTS = {
    "aider": Agent("aider-chat", "aider", "0.86.2", python="3.12"),
    "claude": Agent("@anthropic-ai/claude-code", "claude", "2.1.332", native=True),
    "claude-2.1.101": Agent("@anthropic-ai/claude-code", "claude", "2.1.101"),
    "claude-agent-acp": Agent("@agentclientprotocol/claude-agent-acp", "claude-agent-acp", "0.101.0"),
    "claude-sdk": Agent("claude-agent-sdk", f"../{_SDK}/_bundled/claude", "0.2.189", python="3.11"),
    "cline": Agent("@cline/cli", "bin/cline", "3.0.65", native=True),
    "codex": Agent("@openai/codex", "codex", "0.171.0"),
    "codex-acp": Agent("@agentclientprotocol/codex-acp", "codex-acp", "2.6.0"),
    "continue": Agent("@continuedev/cli", "cn", "1.5.47"),
    "copilot": Agent("@github/copilot", "copilot", "1.0.102"),
    "fast-agent": Agent("fast-agent-mcp", "fast-agent-acp", "0.10.48", python="3.13"),
    "gemini": Agent("@google/gemini-cli", "gemini", "0.61.0"),
    "gemini-a2a": Agent("@google/gemini-cli-a2a-server", "gemini-cli-a2a-server", "0.25.2"),
    "kilo": Agent("@kilocode/cli", "bin/kilo", "7.7.7", native=True),
    "opencode": Agent("opencode", "bin/opencode", "1.18.33", native=True),
    "openhands": Agent("openhands", "openhands", "1.16.0", python="3.12"),
    "qwen": Agent("@qwen-code/qwen-code", "qwen", "0.24.4"),
    "vibe": Agent("mistral-vibe", "vibe-acp", "3.0.2", python="3.12"),
}


class InstallError(RuntimeError):
    """An installer failed, or what it installed has no program; the message carries the end of its output."""


def lock_folder(name: str) -> Path:
    """The folder that holds an agent's lock: in TRUNKLINE_AGENTS, else in `tests/agents` of this tree."""
    return Path(os.environ.get(LOCK_VARIABLE) or Path(__file__).parents[2] / "tests" / "agents") / name


def install_folder(name: str) -> Path:
    """Where the agent of the present lock lives: the cache directory, by the lock's hash."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    lock = lock_folder(name) / (_PYTHON_LOCK if AGENTS[name].python else _NPM_LOCK)
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()
    return cache / "trunkline" / "agents" / digest[:16]


def agent_path(name: str) -> Path | None:
    """The installed program of an agent, or None. Raises KeyError for a name that the kit does not know.

    Where npm ran no install scripts the package's own entry is a placeholder: then the program in the package for
    this platform is taken.
    """
    agent, folder = AGENTS[name], install_folder(name)
    if agent.python:
        program = folder / "bin" / agent.program
        return program if (folder / _COMPLETE).is_file() and os.access(program, os.X_OK) else None
    modules = folder / "node_modules"
    system = "darwin" if sys.platform == "darwin" else "linux"
    architecture = _ARCHITECTURES.get(platform.machine().lower(), platform.machine())
    candidates = [modules / f"{agent.package}-{system}-{architecture}" / agent.program] if agent.native else []
    for candidate in (*candidates, modules / ".bin" / agent.program):
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate.resolve() if agent.native else candidate
    return None


def claude_path() -> Path | None:
    """The real, pinned Claude Code, or None if it is not installed."""
    return agent_path("claude") if (lock_folder("claude") / _NPM_LOCK).is_file() else None


def require(name: str) -> Path:
    """`agent_path`, for tests: fails the test if it is not installed, or skips it with TRUNKLINE_SKIP_LIVE=1."""
    import pytest  # this module also runs alone, where an image is built

    path = agent_path(name)
    if path is not None:
        return path
    if os.environ.get(SKIP_VARIABLE) == "1":
        pytest.skip(f"{name} is not installed and {SKIP_VARIABLE}=1")
    raise pytest.fail.Exception(
        f"{name} is not installed: run `just agents {name}`, or set {SKIP_VARIABLE}=1 to do without", pytrace=False
    )


def install(name: str) -> Path:
    """Install the lock of an agent unless it is there, and give the program.

    Any number of processes may call it at once: one installs, the others wait. A half-finished install is never seen.
    Raises InstallError.
    """
    folder = install_folder(name)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _exclusive(folder.with_suffix(".lock")):
        found = agent_path(name)
        if found is None:
            python = AGENTS[name].python
            if python is None:
                _npm_ci(lock_folder(name), folder)
            else:
                _make_venv(lock_folder(name), folder, python)
            found = agent_path(name)
    if found is None:
        raise InstallError(f"{folder} is installed, but there is no program {name!r} in it: look at its lock")
    return found


def agent_env(home: Path, api_url: str, **extra: str) -> dict[str, str]:
    """The whole environment for a real agent: its own HOME and TMPDIR below `home`, the scripted API, nothing inherited.

    Makes `home` and `home/tmp`. `extra` adds or replaces variables, such as CLAUDE_CODE_MAX_RETRIES="0".
    """
    temporary = home / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "CLAUDE_CODE_TMPDIR": str(temporary),
        "LANG": "C.UTF-8",
        "SHELL": "/bin/bash",
        "ANTHROPIC_BASE_URL": api_url,
        "ANTHROPIC_API_KEY": "scripted",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        **extra,
    }


@contextmanager
def _exclusive(path: Path) -> Generator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _npm_ci(lock: Path, folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise InstallError("npm is not on PATH: install Node 20 or newer")
    work = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
    try:
        for name in _NPM_FILES:
            if (source := lock / name).is_file():
                shutil.copy(source, work / name)
        _run([npm, "ci", "--no-audit", "--no-fund"], work)
        if folder.exists():
            # Without its program, so no run can be using it.
            shutil.rmtree(folder)
        work.rename(folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _make_venv(lock: Path, folder: Path, version: str) -> None:
    uv = shutil.which("uv")
    if uv is None:
        raise InstallError("uv is not on PATH: `just setup` installs it")
    shutil.rmtree(folder, ignore_errors=True)
    _run([_python(version), "-m", "venv", "--without-pip", str(folder)], folder.parent)
    python = str(folder / "bin" / "python")
    options = ["-q", "--compile-bytecode", "--python", python, "--require-hashes"]
    _run([uv, "pip", "install", *options, "-r", str(lock / _PYTHON_LOCK)], folder)
    (folder / _COMPLETE).touch()


def _python(version: str) -> str:
    """A Python of this version: on PATH, or one of those that pyenv keeps. Raises InstallError."""
    kept = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python{version}"))
    for candidate in (shutil.which(f"python{version}"), *map(str, kept)):
        # The first may be a shim that only says that it has no such version.
        if candidate and subprocess.run([candidate, "--version"], capture_output=True, check=False).returncode == 0:
            return candidate
    raise InstallError(f"there is no python{version} on PATH, which this agent needs: install it")


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        what = " ".join([Path(command[0]).name, *command[1:3]])
        # Some say at the start what is wrong, some at the end.
        said = done.stderr if len(done.stderr) < 2 * _SAID else f"{done.stderr[:_SAID]}\n…\n{done.stderr[-_SAID:]}"
        raise InstallError(f"{what} ended with {done.returncode}:\n{said}")


def main(arguments: list[str] | None = None) -> int:
    """The command line. Returns 1 with a message on stderr where there is no program."""
    parser = argparse.ArgumentParser(prog="python -m trunkline_testkit.agents", description=__doc__)
    parser.add_argument("action", choices=["install", "path"])
    parser.add_argument("names", nargs="+", choices=sorted(AGENTS), metavar="name", help=", ".join(sorted(AGENTS)))
    options = parser.parse_args(arguments)
    for name in options.names:
        try:
            found = install(name) if options.action == "install" else agent_path(name)
        except (InstallError, OSError) as error:
            print(error, file=sys.stderr)  # noqa: T201 - a command line
            return 1
        if found is None:
            print(f"{name} is not installed: run `just agents {name}`", file=sys.stderr)  # noqa: T201 - a command line
            return 1
        print(found)  # noqa: T201 - a command line
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The real agents that live tests run: installed by npm from a pinned lock, started with an explicit environment.

`python -m trunkline_testkit.agents install claude` installs, `… path claude` prints where the program is.
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
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

LOCK_VARIABLE = "TRUNKLINE_AGENTS"
"""Names a folder with package.json and package-lock.json, for those who don't work in Trunkline's tree."""
SKIP_VARIABLE = "TRUNKLINE_SKIP_LIVE"

_ARCHITECTURES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
_PACKAGES = {"claude": "@anthropic-ai/claude-code"}
_FILES = ("package.json", "package-lock.json", ".npmrc")


class InstallError(RuntimeError):
    """npm failed, or what it installed has no program; the message carries the end of npm's output."""


def lock_folder() -> Path:
    """The folder that holds the lock: TRUNKLINE_AGENTS, else `tests/agents` of this tree."""
    return Path(os.environ.get(LOCK_VARIABLE) or Path(__file__).parents[2] / "tests" / "agents")


def install_folder() -> Path:
    """Where the agents of the present lock live: the cache directory, by the lock's hash."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    digest = hashlib.sha256((lock_folder() / "package-lock.json").read_bytes()).hexdigest()
    return cache / "trunkline" / "agents" / digest[:16]


def agent_path(name: str) -> Path | None:
    """The installed program of an agent, or None. Raises KeyError for a name that the kit does not know.

    Where npm ran no install scripts the package's own entry is a placeholder: then the program in the package for
    this platform is taken.
    """
    package = _PACKAGES[name]
    modules = install_folder() / "node_modules"
    system = "darwin" if sys.platform == "darwin" else "linux"
    architecture = _ARCHITECTURES.get(platform.machine().lower(), platform.machine())
    for candidate in (modules / f"{package}-{system}-{architecture}" / name, modules / ".bin" / name):
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate.resolve()
    return None


def claude_path() -> Path | None:
    """The real, pinned Claude Code, or None if it is not installed."""
    return agent_path("claude") if (lock_folder() / "package-lock.json").is_file() else None


def require_claude() -> Path:
    """`claude_path`, for tests: fails the test if it is not installed, or skips it with TRUNKLINE_SKIP_LIVE=1."""
    path = claude_path()
    if path is not None:
        return path
    if os.environ.get(SKIP_VARIABLE) == "1":
        pytest.skip(f"Claude Code is not installed and {SKIP_VARIABLE}=1")
    pytest.fail(
        f"Claude Code is not installed: run `just agents`, or set {SKIP_VARIABLE}=1 to do without", pytrace=False
    )


def install(name: str) -> Path:
    """Install the lock with `npm ci` unless it is there, and give the program of `name`.

    Any number of processes may call it at once: one installs, the others wait. A half-finished install is never seen.
    Raises InstallError.
    """
    folder = install_folder()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _exclusive(folder.with_suffix(".lock")):
        found = agent_path(name)
        if found is None:
            _npm_ci(folder)
            found = agent_path(name)
    if found is None:
        raise InstallError(f"npm installed {folder}, but there is no program {name!r} in it: look at package.json")
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


def _npm_ci(folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise InstallError("npm is not on PATH: install Node 20 or newer")
    work = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
    try:
        for name in _FILES:
            if (source := lock_folder() / name).is_file():
                shutil.copy(source, work / name)
        done = subprocess.run(
            [npm, "ci", "--no-audit", "--no-fund"], cwd=work, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise InstallError(f"npm ci ended with {done.returncode}:\n{done.stdout[-1000:]}\n{done.stderr[-2000:]}")
        if folder.exists():
            # Without its program, so no run can be using it.
            shutil.rmtree(folder)
        work.rename(folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def main(arguments: list[str] | None = None) -> int:
    """The command line. Returns 1 with a message on stderr where there is no program."""
    parser = argparse.ArgumentParser(prog="python -m trunkline_testkit.agents", description=__doc__)
    parser.add_argument("action", choices=["install", "path"])
    parser.add_argument("name", choices=sorted(_PACKAGES))
    options = parser.parse_args(arguments)
    try:
        found = install(options.name) if options.action == "install" else agent_path(options.name)
    except (InstallError, OSError) as error:
        print(error, file=sys.stderr)  # noqa: T201 - a command line
        return 1
    if found is None:
        print(f"{options.name} is not installed: run `just agents`", file=sys.stderr)  # noqa: T201 - a command line
        return 1
    print(found)  # noqa: T201 - a command line
    return 0


if __name__ == "__main__":
    sys.exit(main())

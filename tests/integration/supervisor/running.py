"""`trunkline up` as a user starts it, for plain tests: its output, its state, its processes, its end."""

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any
from unittest import mock

from trunkline_testkit import eventually_sync
from trunkline_testkit.forbidden import TRUST_NOBODY
from trunkline_testkit.processes import ProcessInfo, kill_all, marked, snapshot, wait_gone_sync

START_S = 40.0
SERVICES = ("projector", "permissions", "teams", "gateway", "adapters")


class Up:
    """One `trunkline up` in `home`. Everything it starts has TRUNKLINE_HOME in its environment, so nothing can hide."""

    def __init__(self, home: Path, *flags: str) -> None:
        self.home = home
        self._log = home / "up.out"
        self.environment = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}",
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "TRUNKLINE_HOME": str(home),
            **TRUST_NOBODY,
            **{key: value for key, value in os.environ.items() if key.startswith(("COVERAGE_", "COV_CORE_"))},
        }
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "trunkline_cli", "up", "--port", "0", *flags],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        return self._log.read_text(errors="replace")

    @property
    def state(self) -> dict[str, Any]:
        return json.loads((self.home / "state.json").read_text())

    def wait_ready(self) -> None:
        def ready() -> bool:
            if self.process.poll() is not None:
                raise RuntimeError(f"trunkline up ended:\n{self.output}")
            state = self.state
            return state["pid"] == self.process.pid and state["ready"]

        eventually_sync(ready, START_S, ignore=(OSError, ValueError))

    def children(self) -> dict[str, ProcessInfo]:
        """The living processes that the state file names."""
        found = {name: snapshot(child["pid"]) for name, child in self.state["children"].items()}
        return {name: info for name, info in found.items() if info is not None}

    def all(self) -> list[ProcessInfo]:
        return marked("TRUNKLINE_HOME", str(self.home))

    def cli(self, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command against it, in this process: the command line's own entry point, without its start-up."""
        from trunkline_cli.root import run

        out, err = io.StringIO(), io.StringIO()
        with (
            mock.patch.dict(os.environ, self.environment, clear=True),
            mock.patch.object(sys, "stdin", io.StringIO(stdin or "")),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            code = run(arguments)
        return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())

    def spawn(self, *arguments: str, timeout: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Run a command against it as a process of its own."""
        return subprocess.run(
            [sys.executable, "-m", "trunkline_cli", *arguments],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def ok(self, *arguments: str, stdin: str | None = None) -> str:
        """The output of a command that must succeed."""
        done = self.cli(*arguments, stdin=stdin)
        assert done.returncode == 0, f"trunkline {' '.join(arguments)}: {done.stdout}\n{done.stderr}"
        return done.stdout

    def stop(self) -> int:
        """Ctrl-C; the exit code. Nothing may be left."""
        before = self.all()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        code = self.process.wait(30)
        try:
            wait_gone_sync(before, 5)
        finally:
            kill_all(self.all())
        return code


@contextlib.contextmanager
def fresh_home() -> Generator[Path]:
    path = Path(tempfile.mkdtemp(prefix="tl-up-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def running(home: Path, *flags: str) -> Generator[Up]:
    """It, ready; stopped in the end, whatever happened."""
    up = Up(home, *flags)
    try:
        up.wait_ready()
        yield up
    finally:
        up.stop()

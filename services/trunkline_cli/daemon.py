"""The instance in the background: its start, its end, and what its state file and its logs say."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from trunkline_cli.discovery import RunningState, running_state
from trunkline_wire import TrunklineError

T = TypeVar("T")

CONSOLE: Final = "daemon"
"""The log of what `trunkline up` would tell the person in front of it."""
START_S: Final = 90.0
KILL_S: Final = 10.0
STALE_S: Final = 180.0
"""Seconds without a beat, which comes once a minute, after which the supervisor hangs."""
_LOOK_S: Final = 0.1
_TAIL: Final = 64 * 1024
_CLOCK_S: Final = 0.02


class ServiceState(msgspec.Struct, frozen=True, kw_only=True):
    """A service as `state.json` has it."""

    ready: bool = False
    starts: int = 0
    deaths: int = 0
    exit: int | None = None
    given_up: bool = False

    @property
    def words(self) -> str:
        return ("ready" if self.ready else "not ready") + (f", started {self.starts} times" if self.starts > 1 else "")


class Process(msgspec.Struct, frozen=True, kw_only=True):
    pid: int
    start: float


class DaemonState(RunningState, frozen=True, kw_only=True):
    """All that `state.json` says of the running instance."""

    children: dict[str, Process] = {}
    services: dict[str, ServiceState] = {}
    beat: float = 0.0
    installed: str = ""
    flags: tuple[str, ...] = ()

    def troubles(self, now: float) -> list[str]:
        """What is not well with it at `now` (seconds since the epoch), a line each."""
        found = [
            f"{name} died {one.deaths} times in a row and is not started again: see `trunkline daemon logs {name}`"
            if one.given_up
            else f"{name} is {one.words}"
            for name, one in self.services.items()
            if one.given_up or not one.ready
        ]
        if not self.ready:
            found.append("it is still starting")
        if self.beat and now - self.beat > STALE_S:
            found.append(f"it has not said for {now - self.beat:.0f} s that it lives: it hangs, or the machine slept")
        if self.installed not in {"", self.version}:
            found.append(f"version {self.installed} is installed: `trunkline daemon restart` runs it")
        return found


def daemon_state(home: Path) -> DaemonState:
    """The running instance of a state directory. Raises `not_running`."""
    running_state(home)
    state = msgspec.json.decode((home / "state.json").read_bytes(), type=DaemonState)
    if not runs(state):
        raise TrunklineError("not_running", f"Trunkline ran in {str(home)!r} as process {state.pid}, which has ended")
    return state


def runs(state: RunningState) -> bool:
    """Whether that very process runs, and no later one of its number."""
    import psutil

    try:
        process = psutil.Process(state.pid)
        return abs(process.create_time() - state.start) < _CLOCK_S and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def start(home: Path, flags: Sequence[str], environment: Mapping[str, str], tell: Callable[[str], None]) -> DaemonState:
    """Starts the supervisor apart from this terminal; returns once all of it answers. `tell` gets each line that it says.

    Raises TrunklineError `already_running` with pid and address, `not_running` where it ends at once, `timeout`.
    """
    _refuse_second(home)
    logs = home / "logs"
    for directory in (home, logs):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    console = logs / f"{CONSOLE}.log"
    descriptor = os.open(console, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        begin = os.fstat(descriptor).st_size
        process = subprocess.Popen(
            [sys.executable, "-m", "trunkline_supervisor", f"--home={home}", *flags],
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=descriptor,
            env=dict(environment),
            cwd=home,
            start_new_session=True,
        )
    finally:
        os.close(descriptor)
    said = _Lines(console, begin)

    def ready() -> DaemonState | None:
        for line in said.new():
            tell(line)
        ended = process.poll()
        if ended is not None:
            for line in said.new():
                tell(line)
            raise TrunklineError(
                "not_running",
                f"it ended with status {ended} before it was ready; what it said is above",
                log=str(console),
            )
        with contextlib.suppress(TrunklineError):
            state = daemon_state(home)
            return state if state.ready and state.pid == process.pid else None
        return None

    try:
        found = _until(ready, START_S)
    except BaseException:
        process.terminate()
        raise
    if found is None:
        process.terminate()
        raise TrunklineError("timeout", f"it was not ready within {START_S:g} s: see {console}", log=str(console))
    for line in said.new():
        tell(line)
    return found


def stop(state: DaemonState, within: float) -> bool:
    """SIGTERM, and a second one, which kills what still runs, after `within` seconds. Returns whether it took that.

    Raises TrunklineError `timeout` where it still runs 10 s later.
    """

    def gone() -> bool | None:
        return None if runs(state) else True

    _signal(state, signal.SIGTERM)
    if _until(gone, within):
        return False
    _signal(state, signal.SIGTERM)
    if _until(gone, KILL_S):
        return True
    raise TrunklineError("timeout", f"process {state.pid} does not end: `kill -9 {state.pid}`, and start it again")


def log_files(home: Path, names: Sequence[str] = ()) -> dict[str, Path]:
    """The logs by name, those of `names` or all. Raises TrunklineError `bad_params` for one that there is none of."""
    found = {path.stem: path for path in sorted((home / "logs").glob("*.log"))}
    for name in names:
        if name not in found:
            raise TrunklineError(
                "bad_params", f"there is no log of {name!r}; there are: {', '.join(found) or 'none yet'}"
            )
    return {name: found[name] for name in names or found}


def last_lines(path: Path, count: int) -> list[str]:
    """The last `count` lines of a file, of its last 64 KiB."""
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
        return file.read().decode(errors="replace").splitlines()[-count:] if count else []


def follow(files: Mapping[str, Path]) -> Iterator[tuple[str, str]]:
    """Each new line with its log's name, for ever; a file that was emptied is read from its beginning."""
    watched = {name: _Lines(path, path.stat().st_size) for name, path in files.items()}
    while True:
        for name, lines in watched.items():
            for line in lines.new():
                yield name, line
        time.sleep(_LOOK_S * 2)


class _Lines:
    """The lines that come into a file behind `offset`."""

    def __init__(self, path: Path, offset: int) -> None:
        self._path = path
        self._offset = offset
        self._rest = b""

    def new(self) -> list[str]:
        try:
            with self._path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                if size < self._offset:
                    self._offset, self._rest = 0, b""
                file.seek(self._offset)
                content = file.read()
        except OSError:
            return []
        self._offset += len(content)
        *whole, self._rest = (self._rest + content).split(b"\n")
        return [line.decode(errors="replace") for line in whole]


def _refuse_second(home: Path) -> None:
    try:
        state = daemon_state(home)
    except TrunklineError:
        return
    raise TrunklineError(
        "already_running",
        f"Trunkline runs in {str(home)!r} already, as process {state.pid} at {state.gateway}; "
        "stop it with `trunkline daemon stop`, or choose another --home",
        home=str(home),
        pid=state.pid,
        gateway=state.gateway,
    )


def _signal(state: DaemonState, number: signal.Signals) -> None:
    if runs(state):
        with contextlib.suppress(ProcessLookupError):
            os.kill(state.pid, number)


def _until(found: Callable[[], T | None], within: float) -> T | None:
    deadline = time.monotonic() + within
    while True:
        value = found()
        if value is not None or time.monotonic() > deadline:
            return value
        time.sleep(_LOOK_S)

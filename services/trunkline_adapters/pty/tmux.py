"""Programs held by tmux, which go on when their worker dies; and sessions of the user's own, which are looked at.

A program of ours has a tmux server of its own, on a socket in the session's directory for temporary files. It bears another mark than what
a worker started itself, so that it is spared where that is swept away, and is still known as an agent's.
"""

import asyncio
import contextlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from trunkline_agentkit.death import HELD
from trunkline_agentkit.environment import INCARNATION_MARK, SESSION_MARK
from trunkline_agentkit.sweep import end_family
from trunkline_wire import TrunklineError

SIZE: Final = (200, 50)
NAME: Final = "agent"
ATTACHED: Final = "tmux:"
"""Begins the name of an agent that is a tmux session of the user's own."""

_WITHIN_S: Final = 10.0
_SETTINGS: Final = """\
set-option -g history-limit 20000
set-option -g default-terminal screen-256color
set-option -g remain-on-exit off
set-option -s escape-time 0
"""
_TELLS_ITS_END: Final = '"$@"; status=$?; echo "$status" > "$0"; exit "$status"'


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """A tmux server, and the session in it that is meant. `held`: it is ours, of the session with that id."""

    program: str
    socket: Path
    session: str
    held: str | None = None

    @property
    def exit_file(self) -> Path:
        return self.socket.with_name("tmux-exit")

    @property
    def attach(self) -> str:
        """The command with which people see it."""
        return f"tmux -S {self.socket} attach-session -t {self.session}"

    def client(self, *, writable: bool = False) -> list[str]:
        """The command of a client in control mode."""
        looking = "ignore-size" if writable else "ignore-size,read-only"
        flags = [] if self.held is not None else ["-f", looking]
        return [*self._command, "-C", "attach-session", "-t", f"={self.session}", *flags]

    @property
    def _command(self) -> list[str]:
        return [self.program, "-u", "-S", str(self.socket), "-f", os.devnull]

    async def start(self, argv: Sequence[str], cwd: str, environment: Mapping[str, str], size: tuple[int, int]) -> None:
        """Starts the server with a program in it. Raises TrunklineError `agent_failed`."""
        settings = self.socket.with_name("tmux.conf")
        await asyncio.to_thread(settings.write_text, _SETTINGS)
        await asyncio.to_thread(self.exit_file.unlink, missing_ok=True)
        variables = {name: value for name, value in environment.items() if name != INCARNATION_MARK}
        variables[SESSION_MARK] = f"{HELD}{self.held}"
        columns, rows = map(str, size)
        what = ["/bin/sh", "-c", _TELLS_ITS_END, str(self.exit_file), *argv]
        command = [self.program, "-u", "-S", str(self.socket), "-f", str(settings)]
        begin = ["new-session", "-d", "-s", self.session, "-x", columns, "-y", rows, "-c", cwd, "--", *what]
        code, said = await _run([*command, *map(_word, begin)], cwd=cwd, environment=variables)
        if code == 0:
            # Among the settings it ends tmux 3.3a at once.
            code, said = await _run([*self._command, "set-option", "-g", "window-size", "manual"])
        if code != 0:
            await self.end()
            raise TrunklineError("agent_failed", f"tmux could not hold the program: {said or f'exit code {code}'}")

    async def history(self, lines: int) -> list[str]:
        """The last lines that have scrolled away, with their colours."""
        command = ["capture-pane", "-p", "-e", "-S", str(-lines), "-E", "-1", "-t", f"={self.session}:"]
        code, said = await _run([*self._command, *command])
        return said.splitlines() if code == 0 else []

    async def runs(self) -> bool:
        return (await _run([*self._command, "has-session", "-t", f"={self.session}"]))[0] == 0

    async def end(self) -> None:
        """Ends the server with all that it holds, if it is ours."""
        if self.held is None:
            return
        await _run([*self._command, "kill-server"])
        await end_family({SESSION_MARK: f"{HELD}{self.held}"})

    def exit_code(self) -> int | None:
        """With which the program has ended; None where it did not say."""
        try:
            return int(self.exit_file.read_text())
        except (OSError, ValueError):
            return None


def held(program: str, session: str, environment: Mapping[str, str]) -> Server:
    """The server of a session of ours."""
    return Server(program=program, socket=Path(environment["TMPDIR"]) / "tmux", session=NAME, held=session)


def users(program: str, name: str, source: Mapping[str, str]) -> Server:
    """The user's own server, as tmux finds it."""
    folder = Path(source.get("TMUX_TMPDIR") or "/tmp") / f"tmux-{os.getuid()}"  # noqa: S108  # tmux's own place
    return Server(program=program, socket=folder / "default", session=name)


async def sessions(program: str, source: Mapping[str, str]) -> list[str]:
    """The names of the user's own tmux sessions."""
    server = users(program, "", source)
    if not await asyncio.to_thread(server.socket.exists):
        return []
    listing = [program, "-u", "-S", str(server.socket), "-f", os.devnull, "list-sessions", "-F", "#{session_name}"]
    code, said = await _run(listing)
    return said.splitlines() if code == 0 else []


def _word(word: str) -> str:
    """Tmux takes a semicolon at the end of an argument for the end of its command."""
    return f"{word[:-1]}\\;" if word.endswith(";") else word


async def _run(
    command: Sequence[str], *, cwd: str | None = None, environment: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Exit code and what was printed: into a file, for a server that is started so keeps what it inherits."""
    with tempfile.TemporaryFile() as printed:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=printed,
            stderr=asyncio.subprocess.STDOUT,
            cwd=cwd,
            env=dict(environment) if environment is not None else {"PATH": os.defpath, "LC_ALL": "C.UTF-8"},
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(_WITHIN_S):
                code = await process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            return 1, "it did not answer"
        printed.seek(0)
        return code, printed.read().decode(errors="replace").strip()

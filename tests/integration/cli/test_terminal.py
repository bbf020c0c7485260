"""In front of a terminal: typing prompts, answering, interrupting, leaving; and a gateway that dies meanwhile."""

import contextlib
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Generator

import pytest
from tests.integration.cli.test_sessions import new_session, status
from tests.integration.supervisor.running import Up

from trunkline_testkit import eventually_sync
from trunkline_testkit.processes import kill

_STYLES = re.compile(r"\x1b\[[0-9;]*m")


class Terminal:
    """A command with a terminal of its own. `seen` is what it has shown so far, without colours."""

    def __init__(self, up: Up, *arguments: str) -> None:
        self._master, slave = pty.openpty()
        self.seen = ""
        self._mark = 0
        self.process = subprocess.Popen(
            [sys.executable, "-m", "trunkline_cli", *arguments],
            env={**up.environment, "TERM": "xterm"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def wait(self, text: str, timeout: float = 20.0) -> None:
        """Until `text` has been shown after what was waited for before."""
        deadline = time.monotonic() + timeout
        while True:
            place = self.seen.find(text, self._mark)
            if place >= 0:
                self._mark = place + len(text)
                return
            if time.monotonic() > deadline:
                raise AssertionError(f"{text!r} was not shown; since then: {self.seen[self._mark :]!r}")
            self._read(0.1)

    def ended(self, timeout: float = 20.0) -> int:
        deadline = time.monotonic() + timeout
        while self.process.poll() is None and time.monotonic() < deadline:
            self._read(0.05)
        return self.process.wait(0.1)

    def _read(self, timeout: float) -> None:
        ready, _, _ = select.select([self._master], [], [], timeout)
        if ready:
            with contextlib.suppress(OSError):
                shown = os.read(self._master, 65536).decode(errors="replace")
                self.seen += _STYLES.sub("", shown).replace("\r", "")

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)


@pytest.fixture
def terminals() -> Generator[list[Terminal]]:
    opened: list[Terminal] = []
    yield opened
    for terminal in opened:
        terminal.close()


def test_a_conversation_with_prompt_ask_and_leave(up: Up, terminals: list[Terminal]) -> None:
    terminals.append(terminal := Terminal(up, "run", "demo", "--cwd", str(up.home)))
    terminal.wait("/help says what to type")
    terminal.type("say good morning\n")
    terminal.wait("good morning")
    terminal.wait("— done")
    terminal.type("ask rm -rf /\n")
    terminal.wait("? run: rm -rf /")
    terminal.wait("y allow, n deny")
    terminal.type("perhaps\n")
    terminal.wait("error: bad_answer: 'perhaps' is no answer")
    terminal.type("n never\n")
    terminal.wait("deny by")
    terminal.wait("run rejected: never")
    terminal.wait("— done")
    terminal.type("/model demo-large\n")
    terminal.wait("model demo-large")
    terminal.type("\x04")
    terminal.wait("left; the session goes on: trunkline attach ses_")
    assert terminal.ended() == 0
    session = terminal.seen.split()[0]
    assert status(up, session) == "idle"


def test_questions_are_asked_one_by_one(up: Up, terminals: list[Terminal]) -> None:
    terminals.append(terminal := Terminal(up, "run", "demo", "question Shall I go on", "--cwd", str(up.home)))
    terminal.wait("1  yes")
    terminal.type("2\n")
    terminal.wait('You answered: {"Shall I go on"')
    terminal.wait("no")
    terminal.type("/close\n")
    terminal.wait("session closed")
    assert terminal.ended() == 0


def test_ctrl_c_interrupts_the_turn_and_without_one_leaves(up: Up, terminals: list[Terminal]) -> None:
    terminals.append(terminal := Terminal(up, "run", "demo", "slow 1000", "--cwd", str(up.home)))
    terminal.wait("word3 ")
    terminal.process.send_signal(signal.SIGINT)
    terminal.wait("interrupting")
    terminal.wait("— interrupted")
    terminal.process.send_signal(signal.SIGINT)
    terminal.wait("left; the session goes on")
    assert terminal.ended() == 0


def test_attach_shows_what_is_open_and_everything_that_follows_through_a_gateways_death(
    up: Up, terminals: list[Terminal]
) -> None:
    session = new_session(up, "slow 160; ask ls; say the end")
    eventually_sync(lambda: status(up, session) == "running", 20)
    terminals.append(terminal := Terminal(up, "attach", session))
    terminal.wait("word5 ")
    kill(up.children()["gateway"].pid)
    terminal.wait("the gateway is gone; reconnecting")
    terminal.wait("connected again", 30)
    terminal.wait("? run: ls", 30)
    terminal.wait("y allow")
    terminal.type("y\n")
    terminal.wait("the end")
    terminal.wait("— done")
    words = re.findall(r"word(\d+)", terminal.seen)
    assert words == [str(number) for number in range(160)], "each word of the streamed text, once and in order"
    terminal.type("/detach\n")
    assert terminal.ended() == 0


def test_two_people_at_the_terminal_of_a_program(up: Up, terminals: list[Terminal]) -> None:
    session = up.ok("run", "pty", "--agent", "shell", "--cwd", str(up.home), "-d").strip()
    terminals.append(first := Terminal(up, "terminal", session))
    first.wait("you type here", 30)
    first.type("echo fir''st\r")
    first.wait("first")
    terminals.append(second := Terminal(up, "terminal", session))
    second.wait("first", 30)
    second.type("not typed")
    second.type("\x1dt")
    second.wait("you type here")
    first.wait("types now")
    second.type("echo sec''ond\r")
    second.wait("second")
    first.wait("second")
    assert "not typed" not in first.seen
    second.type("\x1dd")
    assert second.ended() == 0
    assert "second" in up.ok("terminal", session, "--screen")

    old = up.children()["gateway"].pid
    kill(old)
    first.wait("reconnecting")
    first.wait("second", 40)
    first.type("\x1dt")
    first.wait("you type here", 30)
    first.type("exit\r")
    first.wait("the program does not run", 30)
    up.ok("close", session)
    first.type("\x1dd")
    assert first.ended() == 0


def test_whoever_has_no_terminal_hears_what_to_do(up: Up) -> None:
    session = new_session(up, "say hello")
    refused = up.spawn("terminal", session, "--screen")
    assert refused.returncode == 1
    assert "no_terminal" in refused.stderr
    assert up.spawn("terminal", session, "--shell", "--read-only").stderr.startswith("error: unsupported: shells in")

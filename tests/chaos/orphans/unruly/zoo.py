"""What an agent may start, from the tame to what flees by every means: `zoo.py KIND DIRECTORY TOKEN`.

Each creature bears TOKEN in its arguments, by which a test finds it, makes the file DIRECTORY/KIND when it is what it is,
and lives until it is killed. Only the standard library is used.
"""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path


def out(kind: str) -> None:
    """Makes the creature's file known."""
    Path(sys.argv[2], kind).touch()


def alive() -> bool:
    """For two minutes after the last creature was made known: one that a broken test leaves must not stay for ever."""
    try:
        return time.time() - Path(sys.argv[2]).stat().st_mtime < 120
    except OSError:
        return False


def live() -> None:
    """For as long as any test may take."""
    while alive():
        time.sleep(1)


def become(kind: str, environment: dict[str, str] | None = None) -> None:
    """Goes on as another creature in a new program."""
    argv = [sys.executable, "-I", "-S", __file__, kind, *sys.argv[2:]]
    os.execve(sys.executable, argv, dict(os.environ) if environment is None else environment)


def flee() -> None:
    """Leaves parent, group and session."""
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    os.chdir("/")


def child() -> None:
    """As an MCP server: it reads its input."""
    out("child")
    sys.stdin.buffer.read()
    live()


def deaf() -> None:
    """Ignores every signal that can be ignored."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    out("deaf")
    live()


def alone() -> None:
    """In a session of its own, a child still."""
    os.setsid()
    out("alone")
    live()


def daemon() -> None:
    """Forked twice."""
    flee()
    out("daemon")
    live()


def unmarked() -> None:
    """Forked twice, with an empty environment; it keeps the descriptors."""
    flee()
    become("unmarked_now", {})


def unmarked_now() -> None:
    out("unmarked")
    live()


def bare() -> None:
    """Forked twice, with an empty environment and no descriptor: nothing shows where it came from."""
    flee()
    os.closerange(0, 1024)
    become("bare_now", {})


def bare_now() -> None:
    out("bare")
    live()


def stopped() -> None:
    """A daemon that takes no signal because it is stopped."""
    flee()
    out("stopped")
    os.kill(os.getpid(), signal.SIGSTOP)
    live()


def wrapper() -> None:
    """Starts its child again whenever that dies."""
    flee()
    while alive():
        pid = os.fork()
        if pid == 0:
            out("wrapper")
            live()
        os.waitpid(pid, 0)


def avenger() -> None:
    """A child that starts its parent again when that dies; parent and child have left everything."""
    flee()
    become("avenger_now", {})


def avenger_now() -> None:
    if os.fork():
        live()
    parent = os.getppid()
    out("avenger")
    while os.getppid() == parent and alive():
        time.sleep(0.001)
    if alive():
        become("avenger_now")


def hydra() -> None:
    """Never the same process for longer than a moment."""
    flee()
    os.closerange(0, 1024)
    number = 0
    while alive():
        number += 1
        if number == 3:
            out("hydra")
        time.sleep(0.005)
        if os.fork():
            os._exit(0)


KINDS: dict[str, Callable[[], None]] = {
    each.__name__: each
    for each in (
        child,
        deaf,
        alone,
        daemon,
        unmarked,
        unmarked_now,
        bare,
        bare_now,
        stopped,
        wrapper,
        avenger,
        avenger_now,
        hydra,
    )
}
if __name__ == "__main__":
    with contextlib.suppress(OSError):
        KINDS[sys.argv[1]]()

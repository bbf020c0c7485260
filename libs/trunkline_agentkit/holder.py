"""The holder of one agent: a small process between worker and agent that nothing of the agent escapes.

Run as a program: `python -I -S holder.py FD`. Each agent waits for it to start, so it imports only what starts at once
(measured: with `json`, `socket`, `contextlib`, `typing` it takes twice the time). `FD` is a socket to the worker:

- the worker says what to run (`read_order`); the holder answers with the agent's pid and a line end,
- the worker sends a byte: the gate opens, and the agent's program runs,
- the worker closes it, or dies: the agent and all of its descendants are killed.

On Linux orphans of the agent become children of the holder, whatever they did to their group, session, environment or open
files; so it knows when none is left: when it has no child. Elsewhere it kills the agent's process group.
If the agent ends by itself, what it left is killed as well. The holder ends last, with the agent's own exit code or
signal. It keeps the files that it inherited (the session's lock) open until then.
"""

import ctypes
import os
import resource
import select
import signal
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
"""Sent to whole groups of processes by those who mean the worker: it then says itself what is to be done."""
_CHANGED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
_PATIENCE = 10.0
"""Seconds after which a process that does not die of SIGKILL is left to the kernel."""
_LOOK = 0.02


def prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def read_order(control: int) -> tuple[list[bytes], dict[bytes, bytes]]:
    """The program with its arguments, and its environment.

    A line with the number of arguments and of all bytes to follow, then the arguments and the environment's entries, each
    ended by NUL.
    """
    received, head = b"", b""
    wanted = 1
    while len(received) < wanted:
        piece = os.read(control, 65536)
        if not piece:
            sys.exit(1)
        received += piece
        head, line_end, _ = received.partition(b"\n")
        wanted = len(head) + 1 + int(head.split()[1]) if line_end else len(received) + 1
    strings = received[len(head) + 1 :].split(b"\0")[:-1]
    count = int(head.split()[0])
    return strings[:count], dict(entry.split(b"=", 1) for entry in strings[count:])


def start(argv: list[bytes], environment: dict[bytes, bytes], pipes: tuple[int, ...] = ()) -> tuple[int, int]:
    """Forks the agent, in a session of its own; its pid, and the gate that it waits at. `pipes` become its first files."""
    waiting, gate = os.pipe()
    holder = os.getpid()
    pid = os.fork()
    if pid:
        os.close(waiting)
        return pid, gate
    try:
        os.setsid()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        for number in (*IGNORED, *_CHANGED_BY_PYTHON):
            signal.signal(number, signal.SIG_DFL)
        os.close(gate)
        for number, pipe in enumerate(pipes):
            os.dup2(pipe, number)
        if os.getppid() == holder and os.read(waiting, 1):
            os.execve(argv[0], argv, environment)  # noqa: S606 - a shell is what is not wanted here
    except OSError as error:
        os.write(2, argv[0] + f": {error.strerror}\n".encode())
    finally:
        os._exit(127)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - pathlib takes its time, too
            with open(f"/proc/{pid}/task/{thread}/children") as file:  # noqa: PTH123 - likewise
                found += map(int, file.read().split())
    except OSError:
        pass  # it has just ended
    return found


def _descendants() -> list[int]:
    found = _children(os.getpid())
    for pid in found:  # grows while it is walked
        found += _children(pid)
    return found


def kill(pid: int) -> None:
    try:  # noqa: SIM105 - contextlib takes its time
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass  # it has just ended


class Family:
    """The agent `agent` and its descendants, which are ours as soon as their parents have ended.

    `wakeup` can be read when a child has ended. `status` is the agent's wait status, once it has ended.
    """

    def __init__(self, agent: int, wakeup: int) -> None:
        self._agent = agent
        self._wakeup = wakeup
        self.status: int | None = None

    def woken(self) -> None:
        """`wakeup` can be read."""
        os.read(self._wakeup, 4096)
        self._reap()

    def end_all(self) -> None:
        """Kills what is left of it, and waits until nothing is."""
        # The group at once, while its number can't be anyone else's; then one by one until nothing is left.
        kill(-self._agent)
        deadline = time.monotonic() + _PATIENCE
        while self._reap() and time.monotonic() < deadline:
            for pid in _descendants():
                kill(pid)
            if select.select([self._wakeup], [], [], _LOOK)[0]:
                os.read(self._wakeup, 4096)

    def _reap(self) -> bool:
        """Takes the statuses of ended children; False once there is no child at all."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._agent:
                self.status = status


class _Holder:
    def __init__(self, control: int, wakeup: int, agent: int, gate: int) -> None:
        self._control = control
        self._wakeup = wakeup
        self._gate: int | None = gate
        self._family = Family(agent, wakeup)

    def hold(self) -> int:
        """Until the agent ends or the worker wants it to; then nothing of it is left. Returns its wait status."""
        family = self._family
        while family.status is None:
            ready, _, _ = select.select([self._control, self._wakeup], [], [])
            if self._wakeup in ready:
                family.woken()
            if self._control in ready and not self._obey():
                break
        family.end_all()
        return family.status if family.status is not None else signal.SIGKILL

    def _obey(self) -> bool:
        try:
            word = os.read(self._control, 1)
        except OSError:
            word = b""
        if word and self._gate is not None:
            os.write(self._gate, word)
            os.close(self._gate)
            self._gate = None
        return bool(word)


def wake_on_ends() -> int:
    """A pipe that can be read when a child has ended."""
    wakeup, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, _child_ended)
    return wakeup


def _child_ended(_number: int, _frame: object) -> None:
    """The byte in the wake-up socket is all that is needed."""


def detach() -> None:
    """Lets go of the agent's files and directory, which are not ours."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.chdir("/")


def main() -> None:
    """See the module."""
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    control = int(sys.argv[1])
    os.set_inheritable(control, False)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    wakeup = wake_on_ends()

    argv, environment = read_order(control)
    agent, gate = start(argv, environment)
    detach()
    try:  # noqa: SIM105 - as above
        os.write(control, b"%d\n" % agent)
    except OSError:
        pass  # the worker has died: that shows at once
    _leave_as(_Holder(control, wakeup, agent, gate).hold())


def _leave_as(status: int) -> None:
    """Ends as the agent did, for the worker to see."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 1)


if __name__ == "__main__":
    main()

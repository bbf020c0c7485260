"""The detached holder: it keeps an agent's pipes and all that passes through them, so that workers may die and the agent goes on.

Run as a program: `python -I -S keeper.py FD`. Over `FD`, a socket to the worker that starts it, it is told what to run
(`holder.read_order`): in front of the program stand the directory for its files, its secret, the spool's limit in bytes and the
seconds that it waits for a worker. It answers with the agent's pid and a line end. A worker that dies before the gate is open takes
all of it along.

It listens on the socket `socket` in that directory, which only its user can enter. Frames are the same both ways, and in the file
`spool`: a line `KIND NUMBER AFTER SIZE`, then `SIZE` bytes.

- from a worker, first `w` with its epoch as NUMBER and the secret: the newest epoch wins, an older one is refused (`r`). What the
  former worker has sent by then still counts. The answer is `w` with the last number of the spool, and the first as AFTER.
- then, from the keeper: all of the spool, and what comes to it. `a` is a line of the agent, `h` one of ours, `n` a note that the agent
  never gets, `e` error output, `x` the agent's end with its wait status. NUMBER runs through all of them; AFTER of ours is the number of
  the agent's line that the worker had taken in.
- from the worker: `h` and `n` as above, `c` forgets everything up to NUMBER, `g` opens the gate, `s` sends the signal NUMBER to the
  agent's group, `i` ends its input, `k` ends everything.

A line of ours is in the spool before the agent gets it, and the agent gets it whole or not at all. Where the spool is at its limit,
or can't be written, nothing is read from the agent, which then waits: nothing is lost. It ends on `k`, or when no worker has come
for long; the agent's own end it keeps until it is told.
"""

import os
import select
import signal
import socket
import struct
import sys
import time
from hmac import compare_digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trunkline_agentkit.holder import (
        IGNORED,
        PR_SET_CHILD_SUBREAPER,
        Family,
        detach,
        prctl,
        read_order,
        start,
        wake_on_ends,
    )
else:  # beside us: as a program we belong to no package
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100,PTH120 - pathlib takes its time
    from holder import IGNORED, PR_SET_CHILD_SUBREAPER, Family, detach, prctl, read_order, start, wake_on_ends

SOCKET = "socket"
SPOOL = "spool"
_CHUNK = 65536
_GUESTS = 8
_INTRODUCED_S = 5.0
"""Seconds that a connection may take to say who it is."""
_LAST_WORDS_S = 0.5
_TICK_S = 1.0


class Frames:
    """Cuts what a connection brings into frames."""

    def __init__(self) -> None:
        self._received = bytearray()

    def feed(self, data: bytes) -> list[tuple[bytes, int, int, bytes]]:
        """The frames that are whole now. Raises ValueError for what is none."""
        self._received += data
        found: list[tuple[bytes, int, int, bytes]] = []
        while (end := self._received.find(b"\n")) >= 0:
            kind, number, after, size = bytes(self._received[:end]).split(b" ")
            if len(self._received) < end + 1 + int(size):
                break
            found.append((kind, int(number), int(after), bytes(self._received[end + 1 : end + 1 + int(size)])))
            del self._received[: end + 1 + int(size)]
        return found


def framed(kind: bytes, number: int, after: int = 0, payload: bytes = b"") -> bytes:
    return b"%b %d %d %d\n" % (kind, number, after, len(payload)) + payload


class Spool:
    """The file of all that was said since the last cut, numbered."""

    def __init__(self, path: str, limit: int) -> None:
        self._path = path
        self._limit = limit
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self._unwritten: list[bytes] = []
        self.size = 0
        self.first = 1
        self.last = 0

    @property
    def full(self) -> bool:
        return self.size >= self._limit or self.stuck

    @property
    def stuck(self) -> bool:
        """Something could not be written: the disk is full."""
        return bool(self._unwritten)

    def add(self, kind: bytes, payload: bytes, after: int = 0) -> None:
        self.last += 1
        self._unwritten.append(framed(kind, self.last, after, payload))
        self.write()

    def write(self) -> None:
        """Writes what is not written yet, each frame whole."""
        try:
            while self._unwritten:
                done, frame = 0, self._unwritten[0]
                while done < len(frame):
                    done += os.pwrite(self._file, frame[done:], self.size + done)
                self.size += len(frame)
                del self._unwritten[0]
        except OSError:
            pass  # tried again soon

    def read(self, offset: int) -> bytes:
        return os.pread(self._file, min(_CHUNK, self.size - offset), offset)

    def cut(self, number: int) -> int:
        """Forgets what stands up to `number`; how many bytes that were."""
        cut = 0
        while cut < self.size:
            head = os.pread(self._file, 128, cut).partition(b"\n")[0]
            found, size = int(head.split(b" ")[1]), int(head.split(b" ")[3])
            if found > number:
                break
            self.first = found + 1
            cut += len(head) + 1 + size
        beside = os.open(self._path + ".new", os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        at = cut
        while at < self.size:
            at += os.write(beside, os.pread(self._file, min(_CHUNK, self.size - at), at))
        os.replace(self._path + ".new", self._path)  # noqa: PTH105 - as above
        os.close(self._file)
        self._file = beside
        self.size -= cut
        return cut


class Connection:
    """A worker, or somebody who has not said yet who it is."""

    def __init__(self, connected: socket.socket) -> None:
        connected.setblocking(False)
        self.socket = connected
        self.frames = Frames()
        self.since = time.monotonic()
        self.greeting = b""
        self.offset = 0

    def fileno(self) -> int:
        return self.socket.fileno()

    def receive(self) -> list[tuple[bytes, int, int, bytes]] | None:
        """The frames that have come; None at its end."""
        try:
            data = self.socket.recv(_CHUNK)
        except BlockingIOError:
            return []
        except OSError:
            return None
        try:
            return self.frames.feed(data) if data else None
        except ValueError:
            return None

    def close(self) -> None:
        self.socket.close()


class Keeper:
    """`control` is the socket of who has started us, `agent` waits behind `gate`; `pipes` are its input, output and error output."""

    def __init__(
        self,
        control: int,
        wakeup: int,
        agent: int,
        gate: int,
        pipes: tuple[int, int, int],
        listener: socket.socket,
        spool: Spool,
        secret: bytes,
        patience: float,
    ) -> None:
        self._control: int | None = control
        self._wakeup = wakeup
        self._agent = agent
        self._gate: int | None = gate
        self._input: int | None = pipes[0]
        self._outputs: dict[int, bytes] = {pipes[1]: b"a", pipes[2]: b"e"}
        self._listener = listener
        self._spool = spool
        self._secret = secret
        self._patience = patience
        self._family = Family(agent, wakeup)
        self._typed = bytearray()
        self._input_ends = False
        self._line: list[bytes] = []
        self._worker: Connection | None = None
        self._guests: list[Connection] = []
        self._epoch = 0
        self._alone_since = time.monotonic()
        self._ended_at: float | None = None
        self._told = False
        self._over = False
        for pipe in pipes:
            os.set_blocking(pipe, False)

    def keep(self, files: list[str]) -> None:
        """Until it is told to end, or nobody wants it any more; then nothing of the agent is left, and none of `files`."""
        while not self._over:
            self._step()
        self._family.end_all()
        # Before the worker hears of the end: it then ends whatever of the family still runs, and that is us.
        for name in files:
            try:  # noqa: SIM105 - as above
                os.unlink(name)  # noqa: PTH108 - as above
            except OSError:
                pass
        for connection in [*self._guests, *([self._worker] if self._worker is not None else [])]:
            connection.close()

    def _step(self) -> None:
        worker, spool = self._worker, self._spool
        reading: list[int | socket.socket | Connection] = [self._wakeup, self._listener, *self._guests]
        if self._control is not None:
            reading.append(self._control)
        if worker is not None and not spool.stuck:
            reading.append(worker)
        if not spool.full:
            reading += self._outputs
        writing: list[int | Connection] = []
        if self._input is not None and (self._typed or self._input_ends):
            writing.append(self._input)
        if worker is not None and (worker.greeting or worker.offset < spool.size):
            writing.append(worker)
        readable, writable, _ = select.select(reading, writing, [], _TICK_S)
        if self._wakeup in readable:
            self._family.woken()
        for output in [one for one in self._outputs if one in readable]:
            self._hear(output)
        if worker is not None and worker in readable:
            self._obey_all(worker)
        if self._input in writable:
            self._type()
        if worker is not None and worker is self._worker and worker in writable:
            self._tell(worker)
        for guest in [one for one in self._guests if one in readable]:
            self._introduce(guest)
        if self._listener in readable:
            self._guests.append(Connection(self._listener.accept()[0]))
        if self._control in readable:
            self._control_ended()
        self._look_at_clock()

    def _look_at_clock(self) -> None:
        now = time.monotonic()
        if self._spool.stuck:
            self._spool.write()
        for guest in [one for one in self._guests if now - one.since > _INTRODUCED_S] + self._guests[:-_GUESTS]:
            if guest in self._guests:
                self._guests.remove(guest)
                guest.close()
        if self._worker is None and now - self._alone_since > self._patience:
            self._over = True
        if self._family.status is not None and not self._told and not self._spool.stuck:
            if self._ended_at is None:
                self._family.end_all()
                self._ended_at = now
            if not self._outputs or (not self._spool.full and now - self._ended_at > _LAST_WORDS_S):
                self._end_line()
                self._spool.add(b"x", b"%d" % self._family.status)
                self._told = True

    def _control_ended(self) -> None:
        """Who has started us is gone: before the agent's program runs that ends it."""
        if self._control is not None:
            os.close(self._control)
            self._control = None
        if self._gate is not None and self._worker is None:
            self._over = True

    def _hear(self, output: int) -> None:
        try:
            data = os.read(output, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            del self._outputs[output]
            os.close(output)
        elif self._outputs[output] == b"e":
            self._spool.add(b"e", data)
        else:
            *ended, rest = data.split(b"\n")
            for piece in ended:
                self._line.append(piece)
                self._end_line()
            if rest:
                self._line.append(rest)

    def _end_line(self) -> None:
        line = b"".join(self._line).removesuffix(b"\r")
        self._line.clear()
        if line.strip():
            self._spool.add(b"a", line)

    def _type(self) -> None:
        if self._input is None:
            return
        try:
            if self._typed:
                del self._typed[: os.write(self._input, self._typed[:_CHUNK])]
        except BlockingIOError:
            return
        except OSError:
            self._typed.clear()
            self._input_ends = True
        if self._input_ends and not self._typed:
            os.close(self._input)
            self._input = None

    def _tell(self, worker: Connection) -> None:
        try:
            if worker.greeting:
                worker.greeting = worker.greeting[worker.socket.send(worker.greeting) :]
            else:
                worker.offset += worker.socket.send(self._spool.read(worker.offset))
        except BlockingIOError:
            pass
        except OSError:
            self._take_last_of(worker)

    def _introduce(self, guest: Connection) -> None:
        frames = guest.receive()
        if frames == []:
            return
        self._guests.remove(guest)
        if frames is None or frames[0][0] != b"w" or not _is_ours(guest.socket):
            guest.close()
            return
        _, epoch, _, secret = frames[0]
        refusal = b""
        if not compare_digest(secret, self._secret):
            refusal = b"secret"
        elif epoch < self._epoch:
            refusal = b"epoch"
        if refusal:
            try:  # noqa: SIM105 - contextlib takes its time
                guest.socket.send(framed(b"r", self._epoch, 0, refusal))
            except OSError:
                pass
            guest.close()
            return
        if self._worker is not None:
            # What was sent before it was fenced still counts.
            self._take_last_of(self._worker)
        self._epoch = epoch
        guest.greeting = framed(b"w", self._spool.last, self._spool.first, b"%d" % self._agent)
        self._worker = guest
        for frame in frames[1:]:
            self._obey(*frame)

    def _take_last_of(self, worker: Connection) -> None:
        while self._obey_all(worker):
            pass
        if self._worker is worker:
            self._let_go(worker)

    def _obey_all(self, worker: Connection) -> bool:
        """Does what has come from the worker; False where nothing had."""
        frames = worker.receive()
        for frame in frames or ():
            self._obey(*frame)
        if frames is None:
            self._let_go(worker)
        return bool(frames)

    def _obey(self, kind: bytes, number: int, after: int, payload: bytes) -> None:
        match kind:
            case b"h":
                self._spool.add(b"h", payload, after)
                if self._input is not None and not self._input_ends:
                    self._typed += payload + b"\n"
            case b"n":
                self._spool.add(b"n", payload, after)
            case b"c":
                cut = self._spool.cut(number)
                if self._worker is not None:
                    self._worker.offset = max(0, self._worker.offset - cut)
            case b"g" if self._gate is not None:
                os.write(self._gate, b"g")
                os.close(self._gate)
                self._gate = None
            case b"s" if self._family.status is None:
                try:  # noqa: SIM105 - as above
                    os.kill(-self._agent, number)
                except OSError:
                    pass
            case b"i":
                self._input_ends = True
            case b"k":
                self._over = True
            case _:
                pass

    def _let_go(self, worker: Connection) -> None:
        worker.close()
        self._worker = None
        self._alone_since = time.monotonic()
        if self._gate is not None:
            self._over = True


def _is_ours(connected: socket.socket) -> bool:
    """Whether a process of the same user is at the other end, as far as the system says."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return True
    return struct.unpack("3i", connected.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i")))[1] == os.getuid()


def _listen(directory: str) -> socket.socket:
    """A socket by its short name: a whole path may be longer than the system takes."""
    os.chdir(directory)
    try:  # noqa: SIM105 - as above
        os.unlink(SOCKET)  # noqa: PTH108 - as above
    except OSError:
        pass
    before = os.umask(0o077)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(SOCKET)
    os.umask(before)
    listener.listen(_GUESTS)
    listener.setblocking(False)
    return listener


def main() -> None:
    """See the module."""
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    control = int(sys.argv[1])
    os.set_inheritable(control, False)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    wakeup = wake_on_ends()
    (directory, secret, limit, patience, *argv), environment = read_order(control)
    sides = [os.pipe() for _ in range(3)]
    theirs = (sides[0][0], sides[1][1], sides[2][1])
    agent, gate = start(argv, environment, theirs)
    for pipe in theirs:
        os.close(pipe)
    detach()
    listener = _listen(os.fsdecode(directory))
    files = [os.path.join(os.fsdecode(directory), name) for name in (SOCKET, SPOOL)]  # noqa: PTH118 - as above
    spool = Spool(files[-1], int(limit))
    os.chdir("/")
    try:  # noqa: SIM105 - as above
        os.write(control, b"%d\n" % agent)
    except OSError:
        pass  # the worker has died: that shows at once
    ours = (sides[0][1], sides[1][0], sides[2][0])
    Keeper(control, wakeup, agent, gate, ours, listener, spool, secret, float(patience)).keep(files)


if __name__ == "__main__":
    main()

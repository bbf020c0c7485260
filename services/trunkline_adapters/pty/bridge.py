"""The bridge: a program in a pseudo-terminal on one side, lines of JSON on the other.

Run as a program: `python -I bridge.py COLUMNS ROWS PROGRAM [ARGUMENT…]`, by the kit's holder, as the agent. What it says and
hears stands in `native.py`; `at` is seconds since it began. The end of its input hangs up the terminal, as closing a
terminal's window does. It ends as the program did.
"""

import codecs
import json
import os
import resource
import select
import signal
import sys
import time
from typing import Any

from ptyprocess import PtyProcess

_GATHER_S = 0.02
"""Seconds for which output is gathered into one message, so that a screen is not drawn for every byte."""
_ECHO_S = 0.2
"""Seconds behind keys in which what is printed goes out as it comes: somebody waits to see it."""
_LARGEST = 64 * 1024
_UNREAD = 256 * 1024
"""Bytes of messages that may wait to be read, above which the program waits."""
_UNTYPED = 1024 * 1024
"""Bytes that may wait for the program to take them; more keys are refused."""
_LAST_WORDS_S = 0.3
"""Seconds that output may still come once the program has ended: a descendant may hold the terminal for ever."""
_INPUT, _OUTPUT = 0, 1


class Bridge:
    def __init__(self, terminal: PtyProcess, wakeup: int, columns: int, rows: int) -> None:
        self._terminal = terminal
        self._fd: int = terminal.fd
        self._wakeup = wakeup
        self._begin = time.monotonic()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._heard = b""
        self._typed = bytearray()
        """What the program has not taken yet."""
        self._typed_at = -_ECHO_S
        self._said = bytearray()
        """What nobody has read yet."""
        self._hung_up = False
        self._over = False
        os.set_blocking(self._fd, False)
        os.set_blocking(_OUTPUT, False)
        self._say("opened", columns=columns, rows=rows, command=terminal.argv, pid=terminal.pid)

    def run(self) -> None:
        """Until the program has ended and its output is told."""
        while not self._over and self._terminal.isalive():
            self._step()
        deadline = time.monotonic() + _LAST_WORDS_S
        while not self._over and (left := deadline - time.monotonic()) > 0:
            if select.select([self._fd], [], [], left)[0]:
                self._read()
        self._terminal.wait()
        self._say("exit", code=self._terminal.exitstatus, signal=self._terminal.signalstatus)
        while self._said:
            select.select([], [_OUTPUT], [])
            self._tell()

    def _step(self) -> None:
        sources = [self._wakeup] + ([] if self._hung_up else [_INPUT])
        if len(self._said) < _UNREAD:
            sources.append(self._fd)
        sinks = ([self._fd] if self._typed else []) + ([_OUTPUT] if self._said else [])
        readable, writable, _ = select.select(sources, sinks, [])
        if self._wakeup in readable:
            os.read(self._wakeup, 4096)
        if _INPUT in readable:
            self._hear()
        if self._fd in writable:
            self._type()
        if _OUTPUT in writable:
            self._tell()
        if self._fd in readable:
            self._read()

    def _read(self) -> None:
        data = bytearray()
        begun = time.monotonic()
        deadline = begun + (_GATHER_S if begun - self._typed_at > _ECHO_S else 0)
        while len(data) < _LARGEST:
            try:
                data += os.read(self._fd, _LARGEST)
                continue
            except BlockingIOError:
                pass
            except OSError:  # nobody has the terminal open any more
                self._over = True
                break
            left = deadline - time.monotonic()
            if left <= 0 or _INPUT in select.select([self._fd, _INPUT], [], [], left)[0]:
                break
        if text := self._decoder.decode(bytes(data), final=self._over):
            self._say("output", data=text)

    def _hear(self) -> None:
        piece = os.read(_INPUT, _LARGEST)
        if not piece:
            self._hung_up = True
            self._hang_up()
            return
        *lines, self._heard = (self._heard + piece).split(b"\n")
        for line in lines:
            try:
                self._obey(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError):
                self._say("refused", line=line[:200].decode(errors="replace"))

    def _obey(self, message: dict[str, Any]) -> None:
        match message["type"]:
            case "input":
                self._typed_at = time.monotonic()
                data = message["data"].encode(errors="replace")
                if len(self._typed) + len(data) > _UNTYPED:
                    self._say("refused", line="the program takes no keys")
                else:
                    self._typed += data
                    self._type()
            case "resize":
                self._terminal.setwinsize(int(message["rows"]), int(message["columns"]))
            case _:
                raise KeyError(message["type"])

    def _type(self) -> None:
        try:
            del self._typed[: os.write(self._fd, self._typed[:1024])]
        except BlockingIOError:
            pass
        except OSError:
            self._typed.clear()

    def _hang_up(self) -> None:
        try:  # noqa: SIM105 - plain, as in the holder
            os.killpg(os.tcgetpgrp(self._fd), signal.SIGHUP)
        except OSError:
            pass  # it has just ended
        self._terminal.kill(signal.SIGHUP)

    def _say(self, type: str, **fields: Any) -> None:
        message = {"type": type, "at": round(time.monotonic() - self._begin, 4), **fields}
        self._said += json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode(errors="replace") + b"\n"
        self._tell()

    def _tell(self) -> None:
        try:
            while self._said:
                del self._said[: os.write(_OUTPUT, self._said)]
        except BlockingIOError:
            pass


def _child_ended(_number: int, _frame: object) -> None:
    """The byte in the wake-up pipe is all that is needed."""


def main() -> None:
    """See the module."""
    columns, rows, argv = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    wakeup, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, _child_ended)
    terminal = PtyProcess.spawn(argv, dimensions=(rows, columns))
    Bridge(terminal, wakeup, columns, rows).run()
    _leave_as(terminal)


def _leave_as(terminal: PtyProcess) -> None:
    number = terminal.signalstatus
    if number is not None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(terminal.exitstatus or 0)


if __name__ == "__main__":
    main()

"""Lines from the terminal without a thread, and Ctrl-C as something to wait for."""

import asyncio
import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager


class Keyboard:
    """`lines` gets each line that is typed, None at the end of input (Ctrl-D). The terminal keeps its own line editing."""

    def __init__(self) -> None:
        self.lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._rest = b""

    @contextmanager
    def open(self) -> Generator["Keyboard"]:
        """Listen while the block runs. The descriptor stays in blocking mode: it is shared with the shell."""
        loop = asyncio.get_running_loop()
        descriptor = sys.stdin.fileno()
        loop.add_reader(descriptor, self._readable, descriptor)
        try:
            yield self
        finally:
            loop.remove_reader(descriptor)

    def _readable(self, descriptor: int) -> None:
        data = os.read(descriptor, 65536)
        if not data:
            asyncio.get_running_loop().remove_reader(descriptor)
            self.lines.put_nowait(None)
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self.lines.put_nowait(line.decode(errors="replace"))


@contextmanager
def interrupts() -> Generator[asyncio.Queue[None]]:
    """A queue that gets an entry for each Ctrl-C, instead of the exception, while the block runs."""
    pressed: asyncio.Queue[None] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, pressed.put_nowait, None)
    try:
        yield pressed
    finally:
        loop.remove_signal_handler(signal.SIGINT)

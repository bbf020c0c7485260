"""A device's connection once it is sealed: messages in order, out and in, over frames that somebody else carries."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final

from trunkline_seal.channel import CONTROL, Channel
from trunkline_seal.handshake import Accepting
from trunkline_seal.keys import Identity
from trunkline_wire import TrunklineError, encode
from trunkline_wire.secret import Discreet, SecretBytes

MAX_WAITING: Final = 4 * 1024 * 1024
"""Bytes of frames of one device that may wait for the gateway to take those before them."""
OVERHEAD: Final = 64
"""Bytes that a waiting frame counts for besides its own: a flood of empty ones is bounded too."""
MAX_UNPROVEN: Final = 160 * 1024
"""Likewise, before it has proven who it is: no more than its first messages are worth."""
MAX_UNFINISHED: Final = 9 * 1024 * 1024
"""Bytes of one message of a device's: above what the gateway takes."""

Send = Callable[[bytes], Awaitable[None]]


class GoneError(Exception):
    """The device is gone, or nothing can be sent to it."""


class Inbox:
    """A device's frames, as they come. `put` never waits; too much of it, and the device is gone: `most` is more once it is known."""

    def __init__(self) -> None:
        self.most = MAX_UNPROVEN
        self._frames: deque[bytes] = deque()
        self._size = 0
        self._gone = False
        self._news = asyncio.Event()

    def put(self, frame: bytes) -> None:
        if self._gone:
            return
        self._size += len(frame) + OVERHEAD
        if self._size > self.most:
            self._frames.clear()
            self.close()
            return
        self._frames.append(frame)
        self._news.set()

    def close(self) -> None:
        """What came before is still read."""
        self._gone = True
        self._news.set()

    async def get(self) -> bytes:
        """Raises GoneError."""
        while not self._frames:
            if self._gone:
                raise GoneError
            self._news.clear()
            await self._news.wait()
        frame = self._frames.popleft()
        self._size -= len(frame) + OVERHEAD
        return frame


class Sealed:
    """Both directions. Several tasks may send, one receives."""

    def __init__(self, channel: Channel, inbox: Inbox, send: Send) -> None:
        self._channel = channel
        self._inbox = inbox
        self._send = send
        self._sending = asyncio.Lock()
        self._over = False

    def pad(self, block: int) -> None:
        self._channel.pad(block)

    def cost(self, message: bytes) -> int:
        """What a message of either direction counts for."""
        return self._channel.cost(message)

    async def send(self, kind: int, message: bytes, *, last: bool = False) -> None:
        """Nothing follows the last message, nor one that did not go out as a whole: it would not open. Raises GoneError then."""
        async with self._sending:
            if self._over:
                raise GoneError
            self._over = True
            try:
                for frame in self._channel.seal(kind, message, last=last):
                    await self._send(frame)
            except ConnectionError as error:
                raise GoneError from error
            self._over = last

    async def say(self, value: Any, *, last: bool = False) -> None:
        """A control message. Raises GoneError."""
        await self.send(CONTROL, encode(value), last=last)

    async def fail(self, error: TrunklineError) -> None:
        """Why it can't be, and nothing more. Raises GoneError."""
        await self.say({"failed": {"code": error.code, "message": error.message}}, last=True)

    async def receive(self) -> tuple[int, bytes]:
        """The next message and its kind. Raises TrunklineError `bad_seal`, `too_large`, GoneError."""
        if self._channel.ended:
            raise GoneError
        size = 0
        while True:
            frame = await self._inbox.get()
            size += len(frame)
            if size > MAX_UNFINISHED:
                raise TrunklineError("too_large", f"a message has at most {MAX_UNFINISHED} bytes")
            message = self._channel.open(frame)
            if message is not None:
                return message


class Hello(Discreet, frozen=True):
    """A device's first message, read; nothing is proven yet."""

    accepting: Accepting
    about: SecretBytes
    """A new device has the secret of its link in it."""

    @property
    def identity(self) -> bytes:
        """The identity that the device says is its own."""
        return self.accepting.device


async def first_message(identities: list[Identity], sid: bytes, inbox: Inbox) -> Hello:
    """Raises TrunklineError `bad_seal`, GoneError."""
    accepting = Accepting(identities, sid, await inbox.get())
    return Hello(accepting, accepting.about)


async def answered(hello: Hello, about: Any, inbox: Inbox, send: Send) -> tuple[Sealed, bytes]:
    """The sealed connection, and the device's first message in it: from here on it is who it said. Raises as `first_message`."""
    second, waiting = hello.accepting.answer(encode(about))
    try:
        await send(second)
    except ConnectionError as error:
        raise GoneError from error
    channel, said = waiting.proven(await inbox.get())
    inbox.most = MAX_WAITING
    return Sealed(channel, inbox, send), said

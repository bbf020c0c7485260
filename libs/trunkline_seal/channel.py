"""Messages between device and host once both have their keys."""

from collections.abc import Iterator
from typing import Final

from nacl import bindings
from nacl.bindings import crypto_secretstream as stream
from nacl.exceptions import CryptoError

from trunkline_wire import TrunklineError

TEXT: Final = 0
BINARY: Final = 1
CONTROL: Final = 2

PART_BYTES: Final = 64 * 1024
MAX_MESSAGE: Final = 64 * 1024 * 1024
"""Bytes of a message; a sender of more is no client of ours."""
MAX_PAD: Final = 64 * 1024
"""Bytes to a multiple of which messages may be padded."""
FRAME_COST: Final = 128
"""Bytes that a frame counts for besides its part of a message: its seal and envelope, and what a relay adds for each that waits."""
_KINDS: Final = frozenset((TEXT, BINARY, CONTROL))


def cost(size: int, pad: int) -> int:
    """Bytes that a message of `size` bytes counts for in the window of both ends: no less than it has on its way."""
    whole = 1 + size
    if pad:
        whole += pad - whole % pad
    return whole + -(-whole // PART_BYTES) * FRAME_COST


class Sender:
    """One direction, at its beginning. `header` goes before its first frame."""

    def __init__(self, key: bytes, sid: bytes, pad: int = 0) -> None:
        self._state = stream.crypto_secretstream_xchacha20poly1305_state()
        self.header = stream.crypto_secretstream_xchacha20poly1305_init_push(self._state, key)
        self._sid = sid
        self.pad = pad

    def seal(self, kind: int, message: bytes, *, last: bool = False) -> Iterator[bytes]:
        """The frames of a message, each to be sent before the next is made. `last`: nothing follows."""
        whole = bytes((kind,)) + message
        if self.pad:
            whole = bindings.sodium_pad(whole, self.pad)
        ends = (
            stream.crypto_secretstream_xchacha20poly1305_TAG_FINAL
            if last
            else stream.crypto_secretstream_xchacha20poly1305_TAG_PUSH
        )
        for at in range(0, len(whole), PART_BYTES):
            part = whole[at : at + PART_BYTES]
            tag = ends if at + PART_BYTES >= len(whole) else stream.crypto_secretstream_xchacha20poly1305_TAG_MESSAGE
            yield stream.crypto_secretstream_xchacha20poly1305_push(self._state, part, self._sid, tag)


class Receiver:
    """The other direction. `ended` once the other end said that nothing follows."""

    def __init__(self, key: bytes, header: bytes, sid: bytes, pad: int = 0) -> None:
        self._state = stream.crypto_secretstream_xchacha20poly1305_state()
        stream.crypto_secretstream_xchacha20poly1305_init_pull(self._state, header, key)
        self._sid = sid
        self.pad = pad
        self._parts: list[bytes] = []
        self._size = 0
        self._broken = False
        self.ended = False

    def open(self, frame: bytes) -> tuple[int, bytes] | None:
        """The message that this frame completes, with its kind; None while parts are missing.

        Raises TrunklineError `bad_seal`, then and for everything after it: the connection is over.
        """
        if self._broken or self.ended:
            raise bad_seal("nothing comes after a frame that did not open, or after the last one")
        try:
            part, tag = stream.crypto_secretstream_xchacha20poly1305_pull(self._state, frame, self._sid)
            whole = self._joined(part, tag)
        except (CryptoError, ValueError, TypeError) as error:
            self._broken = True
            raise bad_seal("a frame was changed, repeated, left out or is another connection's") from error
        if whole is None:
            return None
        if not whole or whole[0] not in _KINDS:
            self._broken = True
            raise bad_seal("a message is of no known kind")
        return whole[0], whole[1:]

    def _joined(self, part: bytes, tag: int) -> bytes | None:
        if tag == stream.crypto_secretstream_xchacha20poly1305_TAG_MESSAGE and len(part) != PART_BYTES:
            raise ValueError(
                "a part is not full, and not the last"
            )  # many tiny ones cost far more memory than they have bytes
        self._parts.append(part)
        self._size += len(part)
        if self._size > MAX_MESSAGE:
            raise ValueError("a message is too large")
        if tag == stream.crypto_secretstream_xchacha20poly1305_TAG_MESSAGE:
            return None
        self.ended = tag == stream.crypto_secretstream_xchacha20poly1305_TAG_FINAL
        whole = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        return bindings.sodium_unpad(whole, self.pad) if self.pad else whole


class Channel:
    """Both directions of a connection whose handshake is done. Not to be shared by tasks without an order."""

    def __init__(self, sender: Sender, receiver: Receiver) -> None:
        self._sender = sender
        self._receiver = receiver

    def seal(self, kind: int, message: bytes, *, last: bool = False) -> Iterator[bytes]:
        """The frames of a message of TEXT, BINARY or CONTROL."""
        return self._sender.seal(kind, message, last=last)

    def open(self, frame: bytes) -> tuple[int, bytes] | None:
        """The message that a frame completes, with its kind, or None. Raises TrunklineError `bad_seal`."""
        return self._receiver.open(frame)

    @property
    def ended(self) -> bool:
        """Whether the other end has said that nothing follows; a connection that ends before was cut."""
        return self._receiver.ended

    def cost(self, message: bytes) -> int:
        """What a message of either direction counts for."""
        return cost(len(message), self._sender.pad)

    def pad(self, block: int) -> None:
        """From now on messages of both ends are padded to a multiple of so many bytes."""
        self._sender.pad = self._receiver.pad = block


def bad_seal(why: str) -> TrunklineError:
    return TrunklineError("bad_seal", f"the connection ends: {why}; the next one resumes by cursor")

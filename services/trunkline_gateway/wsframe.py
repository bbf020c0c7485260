"""Frames of RFC 6455 as a server writes them: unmasked, whole, many in one buffer."""

import struct
from collections.abc import Iterable
from typing import Final

_TEXT: Final = 0x81
"""FIN and the opcode of text."""
_BINARY: Final = 0x82


def text_frames(payloads: Iterable[bytes]) -> bytes:
    """The frames of several text messages, ready to be written at once."""
    parts: list[bytes] = []
    for payload in payloads:
        parts += (_head(_TEXT, len(payload)), payload)
    return b"".join(parts)


def message_frame(payload: bytes, *, text: bool = False) -> bytes:
    """The frame of one message."""
    return _head(_TEXT if text else _BINARY, len(payload)) + payload


def _head(kind: int, size: int) -> bytes:
    if size < 126:
        return bytes((kind, size))
    if size < 65536:
        return struct.pack("!BBH", kind, 126, size)
    return struct.pack("!BBQ", kind, 127, size)

"""Text frames of RFC 6455 as a server writes them: unmasked, whole, many in one buffer."""

import struct
from collections.abc import Iterable
from typing import Final

_TEXT: Final = 0x81
"""FIN and the opcode of text."""


def text_frames(payloads: Iterable[bytes]) -> bytes:
    """The frames of several text messages, ready to be written at once."""
    parts: list[bytes] = []
    for payload in payloads:
        size = len(payload)
        if size < 126:
            parts.append(bytes((_TEXT, size)))
        elif size < 65536:
            parts.append(struct.pack("!BBH", _TEXT, 126, size))
        else:
            parts.append(struct.pack("!BBQ", _TEXT, 127, size))
        parts.append(payload)
    return b"".join(parts)

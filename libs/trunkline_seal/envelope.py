"""What a relay sees of a frame."""

import struct
from typing import Final

import msgspec

from trunkline_wire import TrunklineError

VERSION: Final = 1
_HEAD: Final = struct.Struct(">B16sI")


class Envelope(msgspec.Struct, frozen=True):
    """`sid` names the connection of a device to a host, and is new for each; `ct` is for its two ends alone."""

    sid: bytes
    ct: bytes


def pack(sid: bytes, ct: bytes) -> bytes:
    return _HEAD.pack(VERSION, sid, len(ct)) + ct


def unpack(data: bytes) -> Envelope:
    """Raises TrunklineError `bad_frame`."""
    if len(data) < _HEAD.size:
        raise TrunklineError("bad_frame", "an envelope is cut short")
    version, sid, size = _HEAD.unpack_from(data)
    if version != VERSION:
        raise TrunklineError("bad_frame", f"an envelope has version {version}; {VERSION} is known")
    ct = data[_HEAD.size :]
    if len(ct) != size:
        raise TrunklineError("bad_frame", f"an envelope says {size} bytes and has {len(ct)}")
    return Envelope(sid, ct)

"""End-to-end encryption between a device and a host."""

from trunkline_seal.channel import BINARY, CONTROL, TEXT, Channel
from trunkline_seal.envelope import Envelope, pack, unpack
from trunkline_seal.handshake import Accepting, Opening
from trunkline_seal.keys import Identity, Route, fingerprint, host_name

__all__ = [
    "BINARY",
    "CONTROL",
    "TEXT",
    "Accepting",
    "Channel",
    "Envelope",
    "Identity",
    "Opening",
    "Route",
    "fingerprint",
    "host_name",
    "pack",
    "unpack",
]

"""What the replicas of a relay say to each other: JSON, beside the envelopes. Who does not know a field passes it over."""

from typing import TypeVar

import msgspec

T = TypeVar("T", bound=msgspec.Struct)


class Open(msgspec.Struct, frozen=True, omit_defaults=True):
    """A device wants to come; its route key is proven where it is."""

    replica: str
    sid: str
    device: str = ""
    pairing: str = ""
    gone: bool = False
    """It does not want to any more: nobody heard the answer."""


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which replica has the host, or why the device may not come."""

    replica: str = ""
    code: str = ""
    message: str = ""


class End(msgspec.Struct, frozen=True, omit_defaults=True):
    """A visit is over; `code` and `message` are for the device."""

    reason: str = ""
    code: str = ""
    message: str = ""


class Alive(msgspec.Struct, frozen=True, omit_defaults=True):
    """A replica lives. `arrived`: this host has just come to it, as its `number`-th."""

    replica: str
    arrived: str = ""
    number: int = 0


def sid_of(text: str) -> bytes:
    """What can be no sid is that of no visit."""
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""


def read(data: bytes, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError:
        return None

"""Identifiers: minted once, checked before they reach a subject, a key or a path.

An id is a prefix and 32 lower-case hex digits (`ses_0190…`). Items and asks are hashes of what the agent
called them, so that a worker that restarts gives the same thing the same id.
"""

import hashlib
import os
import re
import secrets
import time
import zlib
from typing import Final

from trunkline_wire.errors import TrunklineError

PARTITIONS: Final = 64
"""Logical partitions of the event subjects. Never changes: subjects and readers depend on it."""

_ID: Final = re.compile(r"(ses|ask|itm|tur|ws|cmd|hst|wrk)_[0-9a-f]{32}")
_EXTENSION: Final = re.compile(r"[a-z][a-z0-9-]{0,30}")
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


def uuid7_hex() -> str:
    """A UUIDv7 as 32 hex digits: 48 bits of milliseconds, 12 bits of the fraction, 62 random bits (RFC 9562, method 3)."""
    now = time.time_ns()
    millis, rest = divmod(now, 1_000_000)
    fraction = rest * 4096 // 1_000_000
    high = (millis << 16) | 0x7000 | fraction
    low = (int.from_bytes(os.urandom(8)) & 0x3FFF_FFFF_FFFF_FFFF) | 0x8000_0000_0000_0000
    return f"{high:016x}{low:016x}"


def new_event_id() -> str:
    """The id of an event: a UUIDv7 in its usual form."""
    return _dashed(uuid7_hex())


def imported_session_id(adapter: str, native: str, began_ms: int) -> str:
    """The id of the session that an agent's own history becomes. Its time is the history's, so that ids stay in order."""
    return f"ses_{derived_uuid7_hex(began_ms, adapter, native)}"


def imported_event_id(session: str, place: str, millis: int) -> str:
    """The id of an event made from a history: `place` is the line that it stands for, and which of its events it is."""
    return _dashed(derived_uuid7_hex(millis, session, place))


def _dashed(h: str) -> str:
    return f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"


def derived_uuid7_hex(millis: int, *parts: str) -> str:
    """Always the same for the same time and parts: a UUIDv7 whose random bits are a hash of `parts`."""
    digest = int.from_bytes(hashlib.sha256("\x00".join(parts).encode()).digest()[:10])
    high = (min(max(millis, 0), 0xFFFF_FFFF_FFFF) << 16) | 0x7000 | (digest >> 62 & 0xFFF)
    low = (digest & 0x3FFF_FFFF_FFFF_FFFF) | 0x8000_0000_0000_0000
    return f"{high:016x}{low:016x}"


def new_session_id() -> str:
    return f"ses_{uuid7_hex()}"


def new_command_id() -> str:
    return f"cmd_{uuid7_hex()}"


def new_host_id() -> str:
    return f"hst_{uuid7_hex()}"


def new_worker_id() -> str:
    return f"wrk_{uuid7_hex()}"


def new_token() -> str:
    """A secret that lets its bearer in at a gateway."""
    return f"trk_{secrets.token_urlsafe(32)}"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x00".join(parts).encode()).hexdigest()[:32]


def item_id(session: str, incarnation: str, native: str) -> str:
    """The id of a message or tool call that the agent calls `native`."""
    return f"itm_{_digest(session, incarnation, native)}"


def ask_id(session: str, incarnation: str, native: str) -> str:
    """The id of an ask: `native` is the agent's approval, item or tool call id."""
    return f"ask_{_digest(session, incarnation, native)}"


def workspace_id(host: str, real_path: str) -> str:
    return f"ws_{_digest(host, real_path)}"


def partition(session: str) -> int:
    """The logical partition of a session: crc32 of its whole id, modulo 64."""
    return zlib.crc32(session.encode()) % PARTITIONS


def is_id(value: str, prefix: str) -> bool:
    return value.startswith(f"{prefix}_") and _ID.fullmatch(value) is not None


def check_id(value: str, prefix: str) -> str:
    """`value` if it is an id with this prefix; `bad_id` otherwise."""
    if not is_id(value, prefix):
        raise TrunklineError("bad_id", f"{value!r} is not an id of the form {prefix}_ and 32 lower-case hex digits")
    return value


def is_extension(name: str) -> bool:
    return _EXTENSION.fullmatch(name) is not None


def check_extension(name: str) -> str:
    """The name of an extension: a token of subjects and of event types; `bad_id` otherwise."""
    if not is_extension(name):
        raise TrunklineError(
            "bad_id", f"{name[:64]!r} is no extension's name: up to 31 lower-case letters, digits and -, a letter first"
        )
    return name


def check_token(value: str) -> str:
    """A name that may stand as one token of a subject; `bad_id` otherwise."""
    if _TOKEN.fullmatch(value) is None:
        raise TrunklineError("bad_id", f"{value!r} can't be part of a subject: use 1 to 64 letters, digits, - or _")
    return value

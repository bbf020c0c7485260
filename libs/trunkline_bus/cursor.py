"""The cursor: where a reader stands, in a form it can neither read nor alter, checked against the log at every resume.

On the wire it is urlsafe base64 of a version byte, MessagePack, and sixteen bytes of keyed BLAKE2s
(RFC 7693; a third of what HMAC-SHA256 takes, and every event has a cursor). It names the log,
its position in each stream, the id of an event at or below each position, and a hash of what its holder may see.
"""

import base64
import binascii
import functools
import hashlib
import hmac
import re
from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec
from nats.js.errors import NotFoundError

from trunkline_bus import direct, jsapi
from trunkline_bus.connection import Bus
from trunkline_bus.patience import patiently
from trunkline_wire.errors import TrunklineError
from trunkline_wire.ids import uuid7_hex

TOO_FAR: Final = 50_000
"""Events that a resume replays at most; beyond, a snapshot is quicker for everyone."""

_VERSION: Final = b"\x02"
_MAC: Final = 16
_INACTIVE_NS: Final = 5_000_000_000
_UUID: Final = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_URLSAFE: Final = bytes.maketrans(b"+/", b"-_")
_msgpack: Final = msgspec.msgpack.Encoder().encode


class Cursor(msgspec.Struct, frozen=True, kw_only=True):
    """`positions` is {stream: sequence}, everything up to it was delivered; `ids` is {stream: id of an event}.

    The event stands at the position itself unless `anchors` names another sequence, at or below it: so the cursor of an
    idle client can move with the log without an event of its own. `scope` is what `scope_hash` gives.
    """

    log: str
    positions: dict[str, int]
    ids: dict[str, str] = {}
    scope: str = ""
    anchors: dict[str, int] = {}


class Gap(msgspec.Struct, frozen=True, kw_only=True):
    """Why everything after a cursor can't be given: the holder needs a snapshot."""

    reason: Literal["log_diverged", "scope_changed", "erased", "too_far"]
    message: str
    details: dict[str, Any] = {}


def scope_hash(*parts: str) -> str:
    """Sixteen hex digits that change with any of `parts`: filter patterns, rights, session."""
    return hashlib.sha256("\x00".join(parts).encode()).hexdigest()[:16]


class CursorCodec:
    """Makes and reads cursors under one `secret` of 16 bytes or more."""

    def __init__(self, secret: bytes) -> None:
        if len(secret) < 16:
            raise ValueError("the secret of the cursors needs at least 16 bytes")
        self._key = hashlib.sha256(secret).digest()

    def encode(self, cursor: Cursor) -> str:
        streams = [
            [stream, position, _pack(cursor.ids.get(stream, "")), position - cursor.anchors.get(stream, position)]
            for stream, position in sorted(cursor.positions.items())
        ]
        return self._sealed(_VERSION + _msgpack([_pack_again(cursor.log), streams, _pack_again(cursor.scope)]))

    def at(self, log: str, scope: str, stream: str, position: int, id: str | None) -> str:
        """What `encode` gives for a position in one stream with the event `id` at it; much quicker."""
        head, tail = _around(log, scope, stream)
        return self._sealed(b"".join((head, _msgpack(position), _msgpack(_pack(id or "")), tail)))

    def _sealed(self, body: bytes) -> str:
        return binascii.b2a_base64(body + self._mac(body), newline=False).translate(_URLSAFE, b"=").decode()

    def decode(self, text: str) -> Cursor:
        """Raises TrunklineError `bad_cursor` for anything that `encode` under this secret did not make."""
        try:
            whole = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            raise _bad() from None
        body, mac = whole[:-_MAC], whole[-_MAC:]
        # Base64 has spare bits at the end: only the one spelling that was issued counts.
        canonical = base64.urlsafe_b64encode(whole).rstrip(b"=") == text.encode()
        if not hmac.compare_digest(mac, self._mac(body)) or body[:1] != _VERSION or not canonical:
            raise _bad()
        log, streams, scope = msgspec.msgpack.decode(body[1:])
        return Cursor(
            log=_unpack(log),
            positions={stream: position for stream, position, _, _ in streams},
            ids={stream: _unpack(id_) for stream, _, id_, _ in streams if id_},
            scope=_unpack(scope),
            anchors={stream: position - back for stream, position, _, back in streams if back},
        )

    def _mac(self, body: bytes) -> bytes:
        return hashlib.blake2s(body, key=self._key, digest_size=_MAC).digest()


async def verify(
    bus: Bus, cursor: Cursor, *, scope: str | None = None, filters: Sequence[str] | None = None
) -> Gap | None:
    """Whether everything after `cursor` can be given, asked of the leader: None if so, else why not.

    `scope` is the present scope's hash (None: don't compare). With `filters` the distance counts only what matches.
    """
    if scope is not None and scope != cursor.scope:
        return Gap(reason="scope_changed", message="the filter or the rights are not those of the cursor")
    if await bus.read_log_id() != cursor.log:
        return Gap(reason="log_diverged", message="the log is another one: it was restored or made anew")
    for stream, position in cursor.positions.items():
        gap = await _verify_stream(bus, cursor, stream, position, filters)
        if gap is not None:
            return gap
    return None


async def _verify_stream(
    bus: Bus, cursor: Cursor, stream: str, position: int, filters: Sequence[str] | None
) -> Gap | None:
    try:
        facts = await direct.info(bus, stream)
    except NotFoundError:
        return Gap(reason="log_diverged", message=f"there is no stream {stream!r}")
    details = {"stream": stream, "position": position, "end": facts.last}
    if position > facts.last:
        return Gap(
            reason="log_diverged",
            message=f"the log ends at {facts.last}, before the cursor's {position}",
            details=details,
        )
    remembered = cursor.ids.get(stream)
    if remembered is not None:
        anchor = cursor.anchors.get(stream, position)
        there = await direct.at(bus, stream, anchor)
        if there is None:
            return Gap(reason="erased", message=f"the event at {anchor} was erased", details=details)
        if there.id != remembered:
            return Gap(reason="log_diverged", message=f"another event stands at {anchor}", details=details)
    behind = facts.last - position
    if behind > TOO_FAR and filters is not None:
        behind = await count(bus, stream, filters, after=position)
    if behind > TOO_FAR:
        return Gap(
            reason="too_far",
            message=f"{behind} events since then, more than {TOO_FAR}",
            details=details | {"behind": behind},
        )
    return None


async def count(bus: Bus, stream: str, filters: Sequence[str], *, after: int) -> int:
    """How many messages above `after` match, by the server's index: nothing is read."""
    name = f"c{uuid7_hex()}"
    config = {
        "name": name,
        "ack_policy": "none",
        "mem_storage": True,
        "num_replicas": 1,
        "inactive_threshold": _INACTIVE_NS,
        "deliver_policy": "by_start_sequence",
        "opt_start_seq": after + 1,
        "filter_subjects": list(filters),
    }
    body = {"stream_name": stream, "config": config, "action": "create"}
    made = await patiently(bus.reading, lambda: jsapi.request(bus.js_read, f"CONSUMER.CREATE.{stream}.{name}", body))
    return made["num_pending"]


def _bad() -> TrunklineError:
    return TrunklineError("bad_cursor", "this is no cursor of this log; subscribe without one and take the snapshot")


def _pack(value: str) -> bytes | str:
    """UUIDs and plain hex as bytes, which is half; anything else as it is, nothing too."""
    if not value:
        return value
    if _UUID.fullmatch(value):
        return b"u" + bytes.fromhex(value.replace("-", ""))
    try:
        packed = b"h" + bytes.fromhex(value)
    except ValueError:
        return value
    return packed if _unpack(packed) == value else value


_pack_again: Final = functools.lru_cache(maxsize=1024)(_pack)
"""For what is the same in many cursors."""


@functools.lru_cache(maxsize=1024)
def _around(log: str, scope: str, stream: str) -> tuple[bytes, bytes]:
    """What stands before and behind position and id in the body of a cursor of one stream (MessagePack: 0x93 begins an
    array of three, 0x91 of one, 0x94 of four).
    """
    head = _VERSION + b"\x93" + _msgpack(_pack(log)) + b"\x91\x94" + _msgpack(stream)
    return head, _msgpack(0) + _msgpack(_pack(scope))


def _unpack(value: bytes | str) -> str:
    if isinstance(value, str):
        return value
    text = value[1:].hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:])) if value[:1] == b"u" else text

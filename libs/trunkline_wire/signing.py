"""What a device signs when its owner answers an ask: the same bytes in every language.

The bytes are five lines of ASCII joined by a line feed, without one at the end: `trunkline-answer-1`, the ask's id, the
behaviour, the time (RFC 3339), the nonce (16 bytes as 32 lower-case hex digits). Their HMAC-SHA256 under the device's
key, as 64 lower-case hex digits, is the signature.
"""

import hashlib
import hmac
import re
from typing import Final, get_args

from trunkline_wire.asks import Behaviour
from trunkline_wire.errors import TrunklineError
from trunkline_wire.ids import check_id

FORM: Final = "trunkline-answer-1"
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z", re.ASCII)
_NONCE: Final = re.compile(r"[0-9a-f]{32}")


def signed_bytes(ask: str, behaviour: str, time: str, nonce: str) -> bytes:
    """What is signed. Raises `bad_id` and `bad_answer` for parts of another form: no two answers share their bytes."""
    check_id(ask, "ask")
    if behaviour not in get_args(Behaviour):
        raise TrunklineError("bad_answer", f"{behaviour!r} is no behaviour: {', '.join(get_args(Behaviour))}")
    if _TIME.fullmatch(time) is None:
        raise TrunklineError("bad_answer", f"{time!r} is not a time of the form 2026-11-27T21:20:10Z, in UTC")
    if _NONCE.fullmatch(nonce) is None:
        raise TrunklineError("bad_answer", "the nonce must be 16 bytes as 32 lower-case hex digits")
    return f"{FORM}\n{ask}\n{behaviour}\n{time}\n{nonce}".encode("ascii")


def answer_mac(key: bytes, ask: str, behaviour: str, time: str, nonce: str) -> str:
    """The signature under a device's key. Compare it with `hmac.compare_digest`. Raises like `signed_bytes`."""
    return hmac.new(key, signed_bytes(ask, behaviour, time, nonce), hashlib.sha256).hexdigest()

"""What a device signs when its owner answers an ask: the same bytes in every language, and all that the answer says.

The bytes are seven lines of ASCII joined by a line feed, without one at the end: `trunkline-answer-2`, the answer's id, the
ask's id, the behaviour, the time (RFC 3339), the nonce (16 bytes as 32 lower-case hex digits), and the SHA-256 of the choice
as 64 lower-case hex digits. Their HMAC-SHA256 under the device's key, written likewise, is the signature.

The choice is the canonical JSON (RFC 8785) of an object with those of CHOICE that the answer has; `interrupt` only if true.
`trunkline-answer-1`, which left out the answer's id and the choice, is not accepted.
"""

import hashlib
import hmac
import re
from typing import Any, Final, get_args

from trunkline_wire.asks import Behaviour
from trunkline_wire.canonical import canonical
from trunkline_wire.commands import Answer
from trunkline_wire.errors import TrunklineError
from trunkline_wire.ids import check_id

FORM: Final = "trunkline-answer-2"
CHOICE: Final = ("option", "updated_input", "rule_updates", "answers", "message", "interrupt")
"""The fields of an answer that say what was chosen, beside its behaviour."""

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z", re.ASCII)
_NONCE: Final = re.compile(r"[0-9a-f]{32}")


def choice(answer: Answer) -> dict[str, Any]:
    """What was chosen: the fields that the answer has."""
    fields = {name: getattr(answer, name) for name in CHOICE}
    return {name: value for name, value in fields.items() if value is not None and value is not False}


def signed_bytes(answer: Answer, time: str, nonce: str) -> bytes:
    """What is signed. Raises `bad_id` and `bad_answer` for parts of another form: no two answers share their bytes."""
    check_id(answer.id, "cmd")
    check_id(answer.ask, "ask")
    if answer.behaviour not in get_args(Behaviour):
        raise TrunklineError("bad_answer", f"{answer.behaviour!r} is no behaviour: {', '.join(get_args(Behaviour))}")
    if _TIME.fullmatch(time) is None:
        raise TrunklineError("bad_answer", f"{time!r} is not a time of the form 2026-11-27T21:20:10Z, in UTC")
    if _NONCE.fullmatch(nonce) is None:
        raise TrunklineError("bad_answer", "the nonce must be 16 bytes as 32 lower-case hex digits")
    chosen = hashlib.sha256(canonical(choice(answer))).hexdigest()
    return f"{FORM}\n{answer.id}\n{answer.ask}\n{answer.behaviour}\n{time}\n{nonce}\n{chosen}".encode("ascii")


def answer_mac(key: bytes, answer: Answer, time: str, nonce: str) -> str:
    """The signature under a device's key. Compare it with `hmac.compare_digest`. Raises like `signed_bytes`."""
    return hmac.new(key, signed_bytes(answer, time, nonce), hashlib.sha256).hexdigest()

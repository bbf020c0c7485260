"""What the last message at the leader says about an append whose outcome is unknown. Pure."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from trunkline_bus.stored import Stored

Verdict = Literal["stored", "retry", "fenced", "regressed"]


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One message to append: the same bytes and the same id over all retries.

    `filter` is what its expected last sequence is counted over: the subject itself, or a session's fence.
    """

    subject: str
    filter: str
    id: str
    type: str
    payload: bytes
    headers: Mapping[str, str]


def judge(last: Stored | None, *, id: str, expected: int, expected_id: str | None = None) -> Verdict:
    """Whether the append of `id` behind `expected` is stored, may be retried, or can never be.

    `last` is the last message of the append's filter at the leader; `expected_id`, where known, the id of the message
    at `expected`: another one there means that the log went back and was written anew.
    """
    if last is not None and last.id == id:
        return "stored"
    sequence = last.sequence if last is not None else 0
    if sequence > expected:
        return "fenced"
    if sequence < expected:
        return "regressed"
    if last is not None and expected_id is not None and last.id != expected_id:
        return "regressed"
    return "retry"

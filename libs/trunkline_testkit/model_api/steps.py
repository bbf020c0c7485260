"""What every API's stream is made of: bytes to send, and waiting and breaking off as data for the server. Pure."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunkline_testkit.model_api.answer import Text

PARTIAL = 40
"""Characters of a tool's input in one event, where an API streams it."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Hold:
    """Wait for a release."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Break the connection."""


Step = bytes | Pause | Hold | Cut


@dataclass(frozen=True, slots=True)
class Identity:
    """What a message's ids are made of; equal requests get equal ids, as a retry should."""

    model: str
    key: str
    input_tokens: int

    def id(self, prefix: str, index: int | None = None) -> str:
        """`<prefix>_<24 hex digits>`, for the message itself or its block `index`."""
        digest = hashlib.sha256(f"{self.key}/{'' if index is None else index}".encode()).hexdigest()
        return f"{prefix}_{digest[:24]}"


def text_steps(block: Text) -> Iterator[str | Step]:
    """The pieces of a text as they are due, with what happens between them."""
    for count, piece in enumerate(block.pieces):
        if block.hold_after == count:
            yield Hold()
        if block.cut_after == count:
            yield Cut()
        if count and block.delay:
            yield Pause(block.delay)
        yield piece


def partial_json(value: Any) -> Iterator[str]:
    """A tool's input as text, in the portions in which it is streamed."""
    encoded = value if isinstance(value, str) else json.dumps(value)
    for start in range(0, len(encoded), PARTIAL):
        yield encoded[start : start + PARTIAL]


def data(payload: Any, event: str | None = None) -> bytes:
    """One server-sent event."""
    named = f"event: {event}\n" if event else ""
    return f"{named}data: {json.dumps(payload)}\n\n".encode()

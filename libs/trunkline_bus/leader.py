"""Talking to a stream's leader: a publish with its acknowledgement, and reads that see every acknowledged write."""

import asyncio
from typing import Any, Final

import msgspec

from trunkline_bus.client import Received
from trunkline_bus.mux import Lost, Mux, NoAnswer
from trunkline_bus.stored import Stored, from_leader

ACK_WITHIN_S: Final = 5.0

WRONG_LAST: Final = 10071
IN_FLIGHT: Final = 10164
NO_MESSAGE: Final = 10037
FULL: Final = frozenset({10077, 10047, 10023, 10122, 10123})
"""Maximum bytes, insufficient storage or resources, limits of the account."""
UNAVAILABLE: Final = 503
_PAUSES: Final = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0)


class Refusal(msgspec.Struct, frozen=True):
    """The server's error: `err_code` is its number (10071 …), `code` the kind (503 …)."""

    code: int = 0
    err_code: int = 0
    description: str = ""

    def __str__(self) -> str:
        return f"{self.description or 'no stream answers'} ({self.err_code or self.code})"


class _Answer(msgspec.Struct):
    seq: int = 0
    error: Refusal | None = None
    message: dict[str, Any] | None = None


_answers: Final = msgspec.json.Decoder(_Answer)


async def publish(mux: Mux, subject: str, payload: bytes, headers: dict[str, str] | None = None) -> int | Refusal:
    """One attempt: the stream sequence, or why the server refuses. Raises what `Mux.ask` raises."""
    return read_ack(await mux.ask(subject, payload, headers, wait=ACK_WITHIN_S))


def read_ack(message: Received) -> int | Refusal:
    """The answer to a publish."""
    answer = _decode(message)
    return answer.error or answer.seq


async def last_of(mux: Mux, stream: str, filter: str) -> Stored | None:
    """The last message of a subject filter; waits for the leader as long as it takes."""
    return await get(mux, stream, {"last_by_subj": filter})


async def get(mux: Mux, stream: str, request: dict[str, Any]) -> Stored | None:
    """The message that a STREAM.MSG.GET request names, None where there is none; waits as long as it takes."""
    subject, body, tries = f"$JS.API.STREAM.MSG.GET.{stream}", msgspec.json.encode(request), 0
    while True:
        try:
            answer = _decode(await mux.ask(subject, body, wait=ACK_WITHIN_S))
            if answer.message is not None:
                return from_leader(stream, answer.message)
            if answer.error is not None and answer.error.err_code == NO_MESSAGE:
                return None
        except (Lost, NoAnswer):
            pass
        await pause(mux, tries)
        tries += 1


async def pause(mux: Mux, tries: int) -> None:
    """Wait for the connection, then a moment that grows with the tries. Raises TrunklineError `log_unavailable`."""
    await mux.connected()
    await asyncio.sleep(_PAUSES[min(tries, len(_PAUSES) - 1)])


def _decode(message: Received) -> _Answer:
    if not message.data:  # no responders: JetStream, or the stream's leader, is not there
        return _Answer(error=Refusal(code=UNAVAILABLE))
    return _answers.decode(message.data)

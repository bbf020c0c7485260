"""Finite reads: the last message of a filter, messages by sequence, the end of a stream.

`last`, `at`, `end` and `info` ask the stream's leader and so see every acked write. `get` and `row` ask any replica, which
is quicker; `get` turns to the leader for what a replica lacks.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
from nats.errors import NoRespondersError
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError

from trunkline_bus import jsapi
from trunkline_bus.client import Received
from trunkline_bus.connection import Bus
from trunkline_bus.patience import patiently
from trunkline_bus.stored import Stored, from_direct, from_leader, parse_nanoseconds
from trunkline_bus.tasks import together
from trunkline_wire import encode

PARALLEL: Final = 64
"""Direct gets under way at once: more are slower in this client (measured)."""

_NO_MESSAGE: Final = 10037
_NO_RESPONDERS: Final = "503"
_ANSWER_TIMEOUT: Final = 5.0


class StreamFacts(msgspec.Struct, frozen=True):
    """What a leader says of its stream: when it was created (ns since 1970), its first and last sequence, its metadata."""

    stream: str
    created_ns: int
    first: int
    last: int
    messages: int
    metadata: dict[str, str]


async def info(bus: Bus, stream: str) -> StreamFacts:
    """Raises NotFoundError where there is no such stream, `log_unavailable` where nobody answers for 15 s."""
    return await patiently(bus.reading, lambda: ask_info(bus.js_read, stream))


async def ask_info(js: JetStreamContext, stream: str) -> StreamFacts:
    """`info` in one attempt."""
    answer = await jsapi.request(js, f"STREAM.INFO.{stream}")
    state = answer["state"]
    return StreamFacts(
        stream=stream,
        created_ns=parse_nanoseconds(answer["created"]),
        first=state["first_seq"],
        last=state["last_seq"],
        messages=state["messages"],
        metadata=answer["config"].get("metadata") or {},
    )


async def end(bus: Bus, stream: str) -> int:
    """The last sequence the stream gave out, 0 for an empty stream."""
    return (await info(bus, stream)).last


async def last(bus: Bus, stream: str, filter: str) -> Stored | None:
    """The last message whose subject matches `filter`, from the leader."""
    return await patiently(bus.reading, lambda: ask_leader(bus.js_read, stream, {"last_by_subj": filter}))


async def at(bus: Bus, stream: str, sequence: int) -> Stored | None:
    """The message at `sequence`, from the leader; None where it is erased, expired or not yet there."""
    return await patiently(bus.reading, lambda: ask_leader(bus.js_read, stream, {"seq": sequence}))


async def ask_leader(js: JetStreamContext, stream: str, request: dict[str, Any]) -> Stored | None:
    """One STREAM.MSG.GET in one attempt; None for a message that is not there."""
    try:
        answer = await jsapi.request(js, f"STREAM.MSG.GET.{stream}", request)
    except NotFoundError as error:
        if jsapi.error_code(error) == _NO_MESSAGE:
            return None
        raise
    return from_leader(stream, answer["message"])


async def get(bus: Bus, stream: str, sequences: Iterable[int]) -> list[Stored]:
    """The messages at `sequences`, in that order, those that are gone left out."""
    wanted = list(sequences)
    found: list[Stored] = []
    for start in range(0, len(wanted), PARALLEL):
        found += await _get_some(bus, stream, wanted[start : start + PARALLEL])
    return found


async def row(bus: Bus, stream: str, filter: str, first: int, count: int) -> list[Stored]:
    """Up to `count` messages of `filter` in a row from the sequence `first` on, in one request.

    Fewer where there are no more, where a replica lacks them, or where they are too large for one answer. Raises
    `log_unavailable` where nobody answers for 15 s.
    """
    body = encode({"seq": first, "batch": count, "next_by_subj": filter})

    async def ask() -> list[Stored]:
        found: list[Stored] = []
        done: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def take(message: Received) -> None:
            status = (message.headers or {}).get("Status")
            if status is None and (stored := from_direct(message)) is not None:
                found.append(stored)
            elif not done.done():
                done.set_result(status or "")

        inbox = bus.reading.new_inbox()
        answers = await bus.reading.subscribe_direct(inbox, take)
        try:
            await bus.reading.publish(f"$JS.API.DIRECT.GET.{stream}", body, reply=inbox)
            async with asyncio.timeout(_ANSWER_TIMEOUT):
                if await done == _NO_RESPONDERS:
                    raise NoRespondersError
        finally:
            if not bus.reading.is_closed:
                await answers.unsubscribe()
        return found

    return await patiently(bus.reading, ask)


async def _get_some(bus: Bus, stream: str, sequences: Sequence[int]) -> list[Stored]:
    found = await together(_get_one(bus, stream, sequence) for sequence in sequences)
    return [stored for stored in found if stored is not None]


async def _get_one(bus: Bus, stream: str, sequence: int) -> Stored | None:
    body = b'{"seq":%d}' % sequence

    async def ask() -> Stored | None:
        found = from_direct(await bus.reading.request(f"$JS.API.DIRECT.GET.{stream}", body, timeout=_ANSWER_TIMEOUT))
        # A replica may lag behind what the caller has seen elsewhere: only the leader's no is a no.
        return found or await ask_leader(bus.js_read, stream, {"seq": sequence})

    return await patiently(bus.reading, ask)

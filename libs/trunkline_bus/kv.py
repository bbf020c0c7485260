"""Keys and values on plain JetStream: read from the leader, written with compare-and-set, watched with the Reader.

A bucket is the stream `KV_<bucket>` with the subjects `$KV.<bucket>.<key>`; a value's revision is its sequence there.
"""

import itertools
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
import nats.errors

from trunkline_bus import direct, jsapi, leader
from trunkline_bus.connection import Bus
from trunkline_bus.mux import Lost, NoAnswer
from trunkline_bus.patience import patiently
from trunkline_bus.reader import Reader, read
from trunkline_bus.stored import Headers, Stored
from trunkline_bus.tasks import together
from trunkline_wire.errors import TrunklineError
from trunkline_wire.subjects import HEADER_EXPECTED

PARALLEL: Final = 64
"""Requests under way at once (measured: more are slower)."""


class Entry(msgspec.Struct, frozen=True):
    """A key as stored; `value` is None where it was deleted or has expired."""

    key: str
    value: bytes | None
    revision: int
    time_ns: int


def stream(bucket: str) -> str:
    return f"KV_{bucket}"


def subject(bucket: str, key: str) -> str:
    return f"$KV.{bucket}.{key}"


def entry(stored: Stored) -> Entry:
    """The entry in a message of a bucket's stream."""
    headers = stored.headers or {}
    gone = "KV-Operation" in headers or "Nats-Marker-Reason" in headers
    key = stored.subject.split(".", 2)[2]
    return Entry(key, None if gone else stored.raw, stored.sequence, stored.time_ns)


async def get(bus: Bus, bucket: str, key: str) -> Entry | None:
    """The entry of `key` from the leader, a deleted one too (its revision is what a write has to expect)."""
    stored = await direct.last(bus, stream(bucket), subject(bucket, key))
    return None if stored is None else entry(stored)


async def get_many(bus: Bus, bucket: str, keys: Iterable[str]) -> dict[str, Entry]:
    """The entries of those `keys` that were ever written, in parallel."""
    wanted = list(keys)
    found: dict[str, Entry] = {}
    for start in range(0, len(wanted), PARALLEL):
        some = await together(get(bus, bucket, key) for key in wanted[start : start + PARALLEL])
        found |= {one.key: one for one in some if one is not None}
    return found


async def entries(bus: Bus, bucket: str, keys: str = ">") -> list[Entry]:
    """All present entries whose keys match the wildcard `keys`, in the order they were written.

    A key that is written meanwhile is there too, in one of its versions.
    """
    found = {
        one.key: one for stored in await read(bus, stream(bucket), [subject(bucket, keys)]) if (one := entry(stored))
    }
    # A write moves its key to the end of the stream: from before the reader's eyes to behind what it was to read.
    missed = [name for name in await names(bus, bucket, keys) if name not in found]
    found |= await get_many(bus, bucket, missed)
    return sorted((one for one in found.values() if one.value is not None), key=lambda one: one.revision)


async def names(bus: Bus, bucket: str, keys: str = ">") -> list[str]:
    """The keys that match the wildcard `keys`, deleted ones too."""
    start, wanted = subject(bucket, ""), subject(bucket, keys)
    found: list[str] = []
    while True:
        body = {"subjects_filter": wanted, "offset": len(found)}
        answer = await patiently(
            bus.reading, lambda body=body: jsapi.request(bus.js_read, f"STREAM.INFO.{stream(bucket)}", body)
        )
        page: dict[str, int] = answer["state"].get("subjects") or {}
        found += [name.removeprefix(start) for name in page]
        if not page or len(found) >= answer.get("total", 0):
            return found


def watch(bus: Bus, bucket: str, keys: Sequence[str] = (">",), *, after: int = 0) -> Reader:
    """A Reader of what is there and of every change; make entries of its messages with `entry`.

    `caught_up` is set when all that was there has been handed over. When `restarts` grows, the bucket was made anew
    or went back: forget what you know, everything comes again.
    """
    return Reader(bus, stream(bucket), [subject(bucket, key) for key in keys], after=after)


async def put(bus: Bus, bucket: str, key: str, value: bytes, *, ttl: int | None = None) -> int:
    """Write whatever is there, as long as it takes; return the revision. With `ttl` it is gone after so many seconds.

    Raises `too_large`, `log_unwritable`.
    """
    return await _insist(bus, bucket, key, value, {"Nats-TTL": f"{ttl}s"} if ttl is not None else None)


async def update(bus: Bus, bucket: str, key: str, value: bytes, *, revision: int) -> int | None:
    """Write if the key is still at `revision` (0: was never written); return the new revision, None if it is not.

    One attempt. Raises `log_unavailable` where nobody answered and the outcome is unknown: read the key again.
    """
    return await _expecting(bus, bucket, key, value, revision)


async def delete(bus: Bus, bucket: str, key: str) -> int:
    """Leave a marker in place of the value, as long as it takes; return the revision."""
    return await _insist(bus, bucket, key, b"", {"KV-Operation": "DEL"})


async def clear(bus: Bus, bucket: str, prefix: str) -> None:
    """Delete all keys of which `prefix` are the first tokens."""
    start = subject(bucket, "")
    asked = {"subjects_filter": f"{start}{prefix}.>"}
    answer = await jsapi.request(bus.js_read, f"STREAM.INFO.{stream(bucket)}", asked)
    for key in answer["state"].get("subjects") or {}:
        await delete(bus, bucket, key.removeprefix(start))


async def remove(bus: Bus, bucket: str, key: str, *, revision: int) -> bool:
    """Delete if the key is still at `revision`: of several who try, one gets True. Raises like `update`."""
    return await _expecting(bus, bucket, key, b"", revision, {"KV-Operation": "DEL"}) is not None


async def _expecting(
    bus: Bus, bucket: str, key: str, value: bytes, revision: int, headers: Headers | None = None
) -> int | None:
    try:
        answer = await _publish(bus, bucket, key, value, {**(headers or {}), HEADER_EXPECTED: str(revision)})
    except (Lost, NoAnswer) as error:
        raise TrunklineError("log_unavailable", f"no acknowledgement for {key!r}: its outcome is unknown") from error
    if isinstance(answer, int):
        return answer
    if answer.err_code in {leader.WRONG_LAST, leader.IN_FLIGHT}:
        return None
    if answer.code == leader.UNAVAILABLE:
        raise TrunklineError("log_unavailable", f"the bucket {bucket!r} has no leader: try again")
    raise _refused(key, answer)


async def _insist(bus: Bus, bucket: str, key: str, value: bytes, headers: Headers | None = None) -> int:
    for tries in itertools.count():
        try:
            answer = await _publish(bus, bucket, key, value, headers)
        except (Lost, NoAnswer):
            answer = leader.Refusal(code=leader.UNAVAILABLE)
        if isinstance(answer, int):
            return answer
        if answer.code != leader.UNAVAILABLE:
            raise _refused(key, answer)
        await leader.pause(bus.mux, tries)
    raise AssertionError


async def _publish(bus: Bus, bucket: str, key: str, value: bytes, headers: Headers | None) -> int | leader.Refusal:
    try:
        return await leader.publish(bus.mux, subject(bucket, key), value, headers)
    except nats.errors.MaxPayloadError as error:
        raise TrunklineError("too_large", f"the value of {key!r} has {len(value)} bytes", key=key) from error


def _refused(key: str, answer: leader.Refusal) -> TrunklineError:
    return TrunklineError("log_unwritable", f"the server refuses to write {key!r}: {answer}", key=key)

"""Erasing a session: a tombstone, and nothing of what came before it, in any stream, bucket or blob.

The order makes it safe to die at every line and to be run again: first the tombstone, which fences every writer and which
all projections fold to an empty state; then everything below it.
"""

import asyncio
import re
from collections.abc import Callable
from typing import Any, Final

import msgspec
import nats.errors
from nats.js.errors import NotFoundError

from trunkline_bus import jsapi, kv, leader
from trunkline_bus.append import Conflict, store
from trunkline_bus.blobs import STREAM as BLOBS
from trunkline_bus.blobs import subjects_of
from trunkline_bus.connection import Bus
from trunkline_bus.lease import read_lease
from trunkline_bus.outcome import Message
from trunkline_bus.reader import read, read_session
from trunkline_bus.stored import Stored
from trunkline_bus.views import decode_document
from trunkline_wire import TrunklineError, encode, make_event, subjects, timestamp
from trunkline_wire.ids import check_id
from trunkline_wire.session import SessionErased

BUCKETS: Final = (subjects.KV_SESSIONS, subjects.KV_PAGES, subjects.KV_ASKS, subjects.KV_TEAMS)
"""Whose keys are sessions."""
MENTIONS: Final = (subjects.DEADLETTER, subjects.OBSERVED)
"""Streams whose subjects name no session: what holds its id is deleted message by message. (Spawns live for a minute.)"""

PROJECTED_S: Final = 10.0
"""Seconds that projections have to show the tombstone. What they have not replaced until then is deleted all the same."""

_SHA: Final = re.compile(rb'"sha256":"([0-9a-f]{64})"')

Say = Callable[[str], None]


class Erased(msgspec.Struct, frozen=True, kw_only=True):
    """What is gone: messages by stream, blobs by number. `sequence` is where the tombstone stands in the log."""

    session: str
    sequence: int
    purged: dict[str, int]
    blobs: int
    blobs_kept: int
    """Those that other sessions refer to."""


async def erase(
    bus: Bus,
    session: str,
    *,
    by: str,
    reason: str | None = None,
    say: Say = lambda _: None,
    patience: float = 15.0,
) -> Erased:
    """Erase `session`; again is harmless. `bus` is the administrator's: no service may purge, which shows by the server's
    silence, for `patience` seconds.

    Raises `unknown_session`, `busy` while a worker owns it, `forbidden` for a NATS user that may not purge,
    `log_unavailable`.
    """
    check_id(session, "ses")
    purged: dict[str, int] = {}
    # Harmless, and shows at once whether this user may do the rest.
    purged[subjects.DELTAS] = await _purge(bus, subjects.DELTAS, subjects.session_deltas(session), wait=patience)
    say("looking for what it refers to")
    refs = await _references(bus, session)
    tombstone = await _bury(bus, session, by, reason)
    say(f"the tombstone stands at {tombstone}")
    events = subjects.session_events(session)
    purged[subjects.EVENTS] = await _purge(bus, bus.layout.of(session), events, below=tombstone)
    purged[subjects.DELTAS] += await _purge(bus, subjects.DELTAS, subjects.session_deltas(session))
    purged[subjects.COMMANDS] = await _purge(bus, subjects.COMMANDS, subjects.session_commands(session))
    purged[subjects.COMMANDS] += await _purge(bus, subjects.COMMANDS, subjects.session_answers(session))
    for stream in MENTIONS:
        purged[stream] = await _delete_mentions(bus, stream, session)
    say("waiting for the projections")
    for bucket in BUCKETS:
        purged[kv.stream(bucket)] = await _forget(bus, bucket, session, tombstone)
    say(f"{len(refs)} blobs to look at")
    shared = await _used_elsewhere(bus, session, refs)
    for sha256 in refs - shared:
        for subject in await subjects_of(bus, sha256):
            purged[BLOBS] = purged.get(BLOBS, 0) + await _purge(bus, BLOBS, subject)
    return Erased(
        session=session,
        sequence=tombstone,
        purged={stream: count for stream, count in purged.items() if count},
        blobs=len(refs - shared),
        blobs_kept=len(shared),
    )


async def _bury(bus: Bus, session: str, by: str, reason: str | None) -> int:
    """The tombstone's sequence: of the one that is there, or of a new one behind the session's last event."""
    fence = subjects.agent_fence(session)
    while True:
        last = await leader.last_of(bus.mux, bus.layout.of(session), fence)
        if last is None:
            raise TrunklineError("unknown_session", f"the log holds nothing of {session}", session=session)
        if last.type == SessionErased.TYPE:
            return last.sequence
        held = await read_lease(bus, session)
        if held is not None:
            raise TrunklineError(
                "busy", f"a worker owns {session}: close it first (trunkline close {session})", holder=held.holder
            )
        before = last.event()
        event = make_event(
            SessionErased(by=by, reason=reason),
            session=session,
            time=timestamp(),
            seq=(before.seq or 0) + 1,
            epoch=(before.epoch or 0) + 1,
        )
        message = Message(
            subject=subjects.event(session, "agent.fact"),
            filter=fence,
            id=event.id,
            type=event.type,
            payload=encode(event),
            headers={},
        )
        try:
            return await store(bus.mux, bus.layout.of(session), message, expected=last.sequence, expected_id=last.id)
        except Conflict:
            continue


async def _references(bus: Bus, session: str) -> set[str]:
    """The blobs that the session's events and documents refer to."""
    found: set[str] = set()
    for stored in await read_session(bus, session):
        found |= _hashes(stored.raw)
    for bucket in BUCKETS:
        for entry in await _entries(bus, bucket, session):
            found |= _hashes(entry.value or b"")
    return found


async def _used_elsewhere(bus: Bus, session: str, refs: set[str]) -> set[str]:
    """Those of `refs` that something else in the log or in a bucket refers to."""
    shared: set[str] = set()
    if not refs:
        return shared
    for stream in bus.layout.names:
        for stored in await read(bus, stream, [subjects.ALL_EVENTS]):
            if stored.session != session:
                shared |= refs & _hashes(stored.raw)
    for bucket in BUCKETS:
        for entry in await kv.entries(bus, bucket):
            if session not in entry.key.split("."):
                shared |= refs & _hashes(entry.value or b"")
    return shared


async def _forget(bus: Bus, bucket: str, session: str, tombstone: int) -> int:
    """Delete the session's documents but those that hold the tombstone and so nothing else, and their attachments."""
    deadline = asyncio.get_running_loop().time() + PROJECTED_S
    while True:
        stale = [entry.key for entry in await _entries(bus, bucket, session) if not _shows(entry, tombstone)]
        used = await kv.get(bus, bucket, "current")
        prefix = msgspec.json.decode(used.value)["edition"] if used is not None and used.value else None
        current = f"v{prefix['version']}-{prefix['generation']}.{session}" if prefix else None
        if current not in stale or asyncio.get_running_loop().time() > deadline:
            break
        await asyncio.sleep(0.2)
    count = 0
    for key in stale:
        count += await _purge(bus, kv.stream(bucket), kv.subject(bucket, key))
    return count


async def _entries(bus: Bus, bucket: str, session: str) -> list[kv.Entry]:
    return [*await kv.entries(bus, bucket, f"*.{session}"), *await kv.entries(bus, bucket, f"*.{session}.>")]


def _shows(entry: kv.Entry, tombstone: int) -> bool:
    if entry.value is None or len(entry.key.split(".")) > 2:
        return False
    return decode_document(entry.value).progress >= tombstone


async def _delete_mentions(bus: Bus, stream: str, session: str) -> int:
    needle = session.encode()

    def mentions(stored: Stored) -> bool:
        return needle in stored.raw or session in stored.subject

    count = 0
    for stored in await read(bus, stream, [">"]):
        if mentions(stored):
            await _ask(bus, f"STREAM.MSG.DELETE.{stream}", {"seq": stored.sequence})
            count += 1
    return count


async def _purge(bus: Bus, stream: str, subject: str, *, below: int | None = None, wait: float = 15.0) -> int:
    body: dict[str, Any] = {"filter": subject} if below is None else {"filter": subject, "seq": below}
    return int((await _ask(bus, f"STREAM.PURGE.{stream}", body, wait)).get("purged", 0))


async def _ask(bus: Bus, method: str, body: dict[str, Any], wait: float = 15.0) -> dict[str, Any]:
    try:
        return await jsapi.request(bus.js, method, body, wait=wait)
    except NotFoundError:
        return {}
    except nats.errors.TimeoutError as error:
        raise TrunklineError(
            "forbidden", f"the server does not do {method}: erasing needs the administrator's key (nats/keys/admin.nk)"
        ) from error


def _hashes(raw: bytes) -> set[str]:
    return {found.decode() for found in _SHA.findall(raw)}

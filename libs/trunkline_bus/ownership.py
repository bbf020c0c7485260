"""How a session gets its owner: by its first event, or by a claim that fences the owner before.

**Flapping.** Workers that take a session from each other again and again would make it useless. A claim counts if it
moved the session to another host than its owner's before; a fourth within five minutes is refused with
`ownership_flapping`. A worker that restarts on its own host does not count: there the session's lock file keeps two
agents apart, and an agent that never gets ready is a `crash_loop`.
"""

import asyncio
import datetime as dt
from collections.abc import Sequence
from typing import Final

import msgspec

from trunkline_bus import leader, metrics, trace
from trunkline_bus.append import Conflict, store
from trunkline_bus.blobs import Blobs
from trunkline_bus.connection import Bus
from trunkline_bus.outcome import Message
from trunkline_bus.reader import read_session
from trunkline_wire import AgentRef, Event, Source, TrunklineError, encode, make_event, subjects, timestamp
from trunkline_wire.session import SessionClaimed, SessionCreated, SessionErased

FLAPPING_CLAIMS: Final = 3
FLAPPING_WITHIN_S: Final = 300.0
CLAIM_WITHIN_S: Final = 30.0
"""How long a claim runs after a former owner that keeps appending in between."""


class Ownership(msgspec.Struct, frozen=True, kw_only=True):
    """An owner's beginning: the event that made it (its stream sequence, id and seq) and its epoch."""

    session: str
    epoch: int
    seq: int
    sequence: int
    event_id: str


async def last_epoch(bus: Bus, session: str) -> int:
    """The epoch of the session's last event at the leader, 0 where it has none: higher than an owner's own, it is fenced."""
    last = await leader.last_of(bus.mux, bus.layout.of(session), subjects.agent_fence(session))
    return (last.event().epoch or 0) if last is not None else 0


async def create(
    bus: Bus,
    created: SessionCreated,
    *,
    session: str,
    worker: str,
    agent: AgentRef,
    time: str | None = None,
    source: Source | None = None,
) -> Ownership:
    """Append `session.created` as the session's first event; claim it where this spawn request made it before.

    `time` (RFC 3339) is that of a session which began before it came to the log.

    Raises TrunklineError `session_exists` where another request made it, `fenced` where this very event made it and
    somebody else claimed the session before that was known.
    """
    event = make_event(created, session=session, time=time or timestamp(), seq=1, epoch=1, agent=agent, source=source)
    try:
        return await _begin(bus, event, expected=0)
    except Conflict:
        first = await leader.get(
            bus.mux, bus.layout.of(session), {"seq": 1, "next_by_subj": subjects.event(session, "agent.fact")}
        )
        if first is not None and first.id == event.id:
            raise TrunklineError(
                "fenced", f"another worker claimed {session} as soon as it was made", session=session
            ) from None
        made = first.event().data if first is not None else None
        if not isinstance(made, SessionCreated) or created.spawn is None or made.spawn != created.spawn:
            raise TrunklineError(
                "session_exists", f"there is a session {session} already: mint a new id", session=session
            ) from None
    return await claim(bus, session, worker=worker, host=created.host, agent=agent)


async def claim(
    bus: Bus,
    session: str,
    *,
    worker: str,
    host: str,
    agent: AgentRef,
    incarnation: str | None = None,
    despite_flapping: bool = False,
) -> Ownership:
    """Append `session.claimed` with the next epoch behind the session's last event.

    A former owner that still appends only makes us read again; a newer epoch than the one read makes us the loser.
    Raises TrunklineError `unknown_session`, `fenced`, `ownership_flapping`, `timeout` after CLAIM_WITHIN_S.
    """
    loop = asyncio.get_running_loop()
    begin, read = loop.time(), 0
    fence = subjects.agent_fence(session)
    while True:
        last = await leader.last_of(bus.mux, bus.layout.of(session), fence)
        if last is None:
            raise TrunklineError("unknown_session", f"there is no session {session}", session=session)
        event = last.event()
        if event.epoch is None or event.seq is None:
            raise TrunklineError("bad_event", f"the event at {last.sequence} has no epoch or seq", session=session)
        if isinstance(event.data, SessionErased):
            raise TrunklineError("unknown_session", f"the session {session} was erased", session=session)
        if read and event.epoch != read:
            raise TrunklineError(
                "fenced", f"another worker claimed {session} first", session=session, epoch=event.epoch
            )
        if not read and not despite_flapping and event.epoch > FLAPPING_CLAIMS:
            await _refuse_flapping(bus, session, host, last.sequence)
        read = event.epoch
        data = SessionClaimed(worker=worker, host=host, incarnation=incarnation)
        claimed = make_event(
            data, session=session, time=timestamp(), seq=event.seq + 1, epoch=event.epoch + 1, agent=agent
        )
        try:
            return await _begin(bus, claimed, expected=last.sequence, expected_id=last.id)
        except Conflict:
            if loop.time() - begin > CLAIM_WITHIN_S:
                raise TrunklineError(
                    "timeout", f"the owner of {session} appends faster than it can be fenced", session=session
                ) from None


def flaps(owners: Sequence[tuple[dt.datetime, str]], host: str, now: dt.datetime) -> bool:
    """Whether a claim by `host` would be one too many. `owners` are (time, host) of the session's owners in order."""
    hosts = [*(owner for _, owner in owners), host]
    times = [*(time for time, _ in owners), now]
    moved = [time for before, here, time in zip(hosts, hosts[1:], times[1:], strict=False) if before != here]
    since = now - dt.timedelta(seconds=FLAPPING_WITHIN_S)
    return sum(time > since for time in moved) > FLAPPING_CLAIMS


async def _refuse_flapping(bus: Bus, session: str, host: str, until: int) -> None:
    stored = await read_session(bus, session, until=until)
    beginnings = [one for one in stored if one.type in (SessionCreated.TYPE, SessionClaimed.TYPE)]
    owners: list[tuple[dt.datetime, str]] = []
    for one in beginnings:
        data = one.event().data
        assert isinstance(data, SessionCreated | SessionClaimed)
        owners.append((one.time, data.host))
    if flaps(owners, host, dt.datetime.now(dt.UTC)):
        raise TrunklineError(
            "ownership_flapping",
            f"{session} moved between hosts {FLAPPING_CLAIMS} times in five minutes: find out which workers disagree",
            session=session,
            hosts=[owner for _, owner in owners[-FLAPPING_CLAIMS:]],
        )


async def _begin(bus: Bus, event: Event, *, expected: int, expected_id: str | None = None) -> Ownership:
    payload = await Blobs(bus).shrink_encoded(event, encode(event))
    message = Message(
        subject=subjects.event(event.session, "agent.fact"),
        filter=subjects.agent_fence(event.session),
        id=event.id,
        type=event.type,
        payload=payload,
        headers=trace.inject({}),
    )
    sequence = await store(bus.mux, bus.layout.of(event.session), message, expected=expected, expected_id=expected_id)
    metrics.APPENDS.labels(event.type).inc()
    assert event.epoch is not None
    assert event.seq is not None
    return Ownership(session=event.session, epoch=event.epoch, seq=event.seq, sequence=sequence, event_id=event.id)

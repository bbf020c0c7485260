"""Replay of one session out of a log of many, and the first page of a history by the length of the session."""

import random
from collections.abc import Iterable

import msgspec
from nats.aio.client import Client
from tests.bench.projecting import build
from tests.bench.reading import raw_pull
from tests.bench.report import Figure, best, turns

from trunkline_bus import pages
from trunkline_bus.connection import Bus
from trunkline_bus.reader import read_session
from trunkline_projector.histories import PagesView
from trunkline_wire import encode, make_event, subjects, timestamp
from trunkline_wire.blocks import TextBlock
from trunkline_wire.ids import new_session_id
from trunkline_wire.turn import MessageAssistant

SHORT, REPLAYED, LONG = 100, 10_000, 16_000
PAGE = 50
UNACKED = 1000
"""Events sent before one is acked: the server drops what it has no room to queue."""


class Size(msgspec.Struct, frozen=True):
    """Events of the log and the sessions that they belong to."""

    events: int
    sessions: int


SMALL = Size(events=100_000, sessions=100)
FULL = Size(events=1_000_000, sessions=1000)


def owners(size: Size) -> tuple[list[str], dict[int, str]]:
    """Whose each event of the log is, in order, and the sessions of known length."""
    named = {length: new_session_id() for length in (SHORT, REPLAYED, LONG)}
    others = [new_session_id() for _ in range(size.sessions - len(named))]
    order = [session for length, session in named.items() for _ in range(length)]
    order += [others[number % len(others)] for number in range(size.events - len(order))]
    random.Random(1).shuffle(order)
    return order, named


async def fill(bus: Bus, order: list[str]) -> None:
    body = MessageAssistant(content=[TextBlock(text="x" * 300)])
    seqs = dict.fromkeys(order, 0)
    for number, session in enumerate(order, 1):
        seqs[session] += 1
        event = make_event(body, session=session, time=timestamp(), seq=seqs[session], epoch=1)
        headers = {subjects.HEADER_ID: event.id, subjects.HEADER_TYPE: event.type}
        subject, raw = subjects.event(session, "agent.fact"), encode(event)
        if number % UNACKED == 0 or number == len(order):
            ack = await bus.js.publish(subject, raw, headers=headers, timeout=60)
            if ack.seq != number:
                raise RuntimeError(f"the server dropped {number - ack.seq} of {number} events")
        else:
            await bus.writing.publish(subject, raw, headers=headers)


def index_of(sessions: Iterable[str]) -> PagesView:
    """The index of pages of these sessions alone: that of a whole large log takes minutes."""
    filters = [subjects.session_events(session) for session in sessions]
    return type("PagesOfSome", (PagesView,), {"filters": filters})()


class Log(msgspec.Struct, frozen=True):
    """What was stored: how much, and the sessions by their length."""

    size: Size
    sessions: dict[int, str]


async def prepare(bus: Bus, size: Size) -> Log:
    """Store the log and let its index of pages be made."""
    order, named = owners(size)
    await fill(bus, order)
    await build(bus, index_of(named.values()))
    return Log(size, named)


async def measure(bus: Bus, plain: Client, log: Log, setting: str) -> list[Figure]:
    session = log.sessions[REPLAYED]
    limit, ours = await turns(
        lambda: raw_pull(plain, subjects.EVENTS, subjects.session_events(session), REPLAYED),
        lambda: read_session(bus, session),
    )
    first = {
        length: await best(lambda s=s: pages.history_page(bus, s, limit=PAGE), 9) for length, s in log.sessions.items()
    }
    figures = [
        Figure(
            name=f"replay of {REPLAYED:,} out of {log.size.events:,} ({setting})",
            unit="ms",
            value=ours.wall * 1e3,
            limit=limit.wall * 1e3,
            limit_name="raw callback pull",
            goal=1.5,
            note=f"CPU {ours.cpu / REPLAYED * 1e6:.1f} against {limit.cpu / REPLAYED * 1e6:.1f} us an event",
        )
    ]
    figures += [
        Figure(
            name=f"first page, {length:,} events ({setting})",
            unit="ms",
            value=first[length].wall * 1e3,
            limit=first[SHORT].wall * 1e3,
            limit_name=f"that of {SHORT} events",
            goal=2.0,
            note=f"CPU {first[length].cpu * 1e3:.1f} ms",
        )
        for length in (REPLAYED, LONG)
    ]
    return figures

"""The projector: a backlog folded and stored, against decoding the same events and putting the same documents."""

import asyncio
import itertools
from collections.abc import Callable, Iterator
from typing import Any, Final

from nats.aio.client import Client
from nats.js.kv import KeyValue
from prometheus_client import REGISTRY
from tests.bench.reading import raw_pull
from tests.bench.report import Figure, Measured, median, timed

from trunkline_bus import direct, kv
from trunkline_bus.connection import Bus
from trunkline_bus.projection import Projection
from trunkline_bus.views import View
from trunkline_projector.histories import PagesView
from trunkline_projector.sessions import SessionsView
from trunkline_wire import decode_event, encode, make_event, subjects, timestamp
from trunkline_wire._base import Data
from trunkline_wire.blocks import TextBlock, Usage
from trunkline_wire.ids import new_host_id, new_session_id, new_worker_id
from trunkline_wire.session import SessionClaimed, SessionCreated
from trunkline_wire.turn import (
    MessageAssistant,
    MessageUser,
    ToolCompleted,
    ToolStarted,
    TurnCompleted,
    TurnStarted,
)

SESSIONS = 200
TURNS = 14
TOOLS = 2
ROUNDS = 5
IN_FLIGHT = 64
UNACKED = 1000
"""Events sent before one is acked: the server drops what it has no room to queue."""


def session_events(turns: int = TURNS) -> Iterator[tuple[Data, str | None]]:
    """The life of one session, with the item each event belongs to: turns with a prompt, tools, messages and usage."""
    yield SessionCreated(adapter="bench", cwd="/", host=new_host_id(), workspace="ws_" + "0" * 32), None
    yield SessionClaimed(worker=new_worker_id(), host=new_host_id()), None
    usage = Usage(input=1000, output=90, cache_write=0, cache_read=60_000)
    for number in range(1, turns + 1):
        yield TurnStarted(number=number), None
        yield MessageUser(content=[TextBlock(text="a prompt " * 10)]), f"itm_{number:016x}{0:016x}"
        for tool in range(1, TOOLS + 1):
            item = f"itm_{number:016x}{tool:016x}"
            yield ToolStarted(name="Bash", kind="execute", title="ls", input={"command": "ls -l"}), item
            yield ToolCompleted(status="completed", content=[TextBlock(text="x" * 400)]), item
        yield MessageAssistant(content=[TextBlock(text="x" * 400)], usage=usage), f"itm_{number:016x}{99:016x}"
        yield TurnCompleted(outcome="success", usage=usage, cost_usd=0.01), None


async def prepare(bus: Bus) -> int:
    """Store the log; returns its number of events."""
    return await store(bus, SESSIONS, session_events)


async def store(bus: Bus, sessions: int, life_of: Callable[[], Iterator[tuple[Data, str | None]]]) -> int:
    """Store the events of new sessions, all at the same pace; returns how many there are."""
    lives = {new_session_id(): life_of() for _ in range(sessions)}
    begin, number = await direct.end(bus, subjects.EVENTS), 0
    for seq in itertools.count(1):
        for session, life in list(lives.items()):
            if (following := next(life, None)) is None:
                del lives[session]
                continue
            number += 1
            data, item = following
            event = make_event(data, session=session, time=timestamp(), seq=seq, epoch=1, item=item)
            headers = {subjects.HEADER_ID: event.id, subjects.HEADER_TYPE: event.type}
            subject, raw = subjects.event(session, "agent.fact"), encode(event)
            if number % UNACKED:
                await bus.writing.publish(subject, raw, headers=headers)
            elif (ack := await bus.js.publish(subject, raw, headers=headers, timeout=60)).seq != begin + number:
                raise RuntimeError(f"the server dropped {begin + number - ack.seq} of {number} events")
        if not lives:
            await bus.writing.flush()
            return number
    raise AssertionError


_versions: Final = itertools.count(1000)


def another(view: type[View[Any]]) -> View[Any]:
    """The same view as a version that nobody has built yet."""
    return type(view.__name__, (view,), {"version": next(_versions)})()


async def build(bus: Bus, view: View[Any]) -> None:
    """Project from zero until everything is stored."""
    projection = Projection(bus, view, "bench")
    running = asyncio.create_task(projection.run())
    ready = asyncio.create_task(projection.ready.wait())
    try:
        await asyncio.wait({running, ready}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
    finally:
        for task in (running, ready):
            task.cancel()
        await asyncio.gather(running, ready, return_exceptions=True)


def writes(view: View[Any]) -> int:
    return int(REGISTRY.get_sample_value("trunkline_projection_writes_total", {"projection": view.name}) or 0)


async def put(bucket: KeyValue, puts: list[tuple[str, bytes]]) -> None:
    """Put documents as a plain program does, several at a time."""
    what = iter(puts)

    async def some() -> None:
        for key, value in what:
            await bucket.put(key, value)

    await asyncio.gather(*(some() for _ in range(IN_FLIGHT)))


async def measure_view(bus: Bus, plain: Client, view: type[View[Any]], count: int, setting: str) -> Figure:
    bucket = await plain.jetstream().key_value(view.bucket)
    pairs: list[tuple[Measured, Measured]] = []
    written = 0
    for _ in range(ROUNDS):
        one = another(view)
        before = writes(one)
        mine = await timed(lambda one=one: build(bus, one))
        written = writes(one) - before
        entries = await kv.entries(bus, view.bucket, f"v{one.version}-0.>")
        documents = [(entry.key.replace("v", "raw", 1), entry.value) for entry in entries if entry.value is not None]
        puts = list(itertools.islice(itertools.cycle(documents), written))

        async def limit(puts: list[tuple[str, bytes]] = puts) -> None:
            pulled = raw_pull(plain, subjects.EVENTS, subjects.ALL_EVENTS, count, lambda msg: decode_event(msg.data))
            await asyncio.gather(pulled, put(bucket, puts))

        pairs.append((await timed(limit), mine))
    bare, mine = median([pair[0] for pair in pairs]), median([pair[1] for pair in pairs])
    return Figure(
        name=f"projector, {view.name}, {count:,} events ({setting})",
        unit="/s",
        value=count / mine.wall,
        limit=count / bare.wall,
        limit_name="decoding + KV puts",
        goal=0.5,
        at_least=True,
        note=f"CPU {mine.cpu / count * 1e6:.1f} against {bare.cpu / count * 1e6:.1f} us an event; {written} writes",
    )


async def measure(bus: Bus, plain: Client, count: int, setting: str) -> list[Figure]:
    return [await measure_view(bus, plain, view, count, setting) for view in (SessionsView, PagesView)]

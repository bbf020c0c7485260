"""Sessions that live, projections that are killed, and what they leave in their buckets."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from typing import Any, ClassVar

from trunkline_bus import direct, kv, leader, mirror
from trunkline_bus.connection import Bus
from trunkline_bus.projection import Projection
from trunkline_bus.views import View
from trunkline_projector.histories import PagesView
from trunkline_projector.sessions import SessionsView
from trunkline_testkit import eventually
from trunkline_wire import Data, Event, encode, make_event, subjects
from trunkline_wire.blocks import TextBlock
from trunkline_wire.events import is_ask
from trunkline_wire.ids import item_id
from trunkline_wire.session import Capabilities, SessionCreated, SessionInitialized, SessionUpdated
from trunkline_wire.turn import MessageAssistant, MessageUser, ToolCompleted, ToolStarted, TurnCompleted, TurnStarted

TIME = "2026-11-27T21:20:10.000000Z"
WORKSPACE = "ws_" + "a" * 32


async def store(bus: Bus, session: str, data: Data, **fields: Any) -> Event:
    """Store one event of a session."""
    event = make_event(data, session=session, time=TIME, **fields)
    await store_event(bus, event)
    return event


async def store_event(bus: Bus, event: Event, raw: bytes | None = None) -> int:
    subject = subjects.event(event.session, "agent.ask" if is_ask(event.data) else "agent.fact")
    headers = {subjects.HEADER_ID: event.id, subjects.HEADER_TYPE: event.type}
    answer = await leader.publish(bus.mux, subject, encode(event) if raw is None else raw, headers)
    assert isinstance(answer, int), answer
    return answer


def created(workspace: str = WORKSPACE) -> SessionCreated:
    return SessionCreated(adapter="demo", cwd="/src", host="hst_" + "0" * 32, workspace=workspace, title="A test")


async def live(bus: Bus, session: str, turns: int, *, first: int = 1) -> None:
    """A session with some turns: six events each, seven before the first."""
    seq = (first - 1) * 6
    if first == 1:
        await store(bus, session, created(), seq=1, epoch=1)
        await store(
            bus, session, SessionInitialized(capabilities=Capabilities(streaming=True), model="m"), seq=2, epoch=1
        )
    for turn in range(first, first + turns):
        item, about = item_id(session, "", f"{turn}"), {"epoch": 1, "turn": f"tur_{turn:032x}"}
        tool = item_id(session, "tool", f"{turn}")
        facts: list[tuple[Data, dict[str, Any]]] = [
            (MessageUser(content=[TextBlock(text=f"prompt {turn}")]), {"item": item_id(session, "user", f"{turn}")}),
            (TurnStarted(number=turn), {}),
            (MessageAssistant(content=[TextBlock(text=f"answer {turn}")]), {"item": item}),
            (ToolStarted(name="Bash"), {"item": tool}),
            (ToolCompleted(status="completed"), {"item": tool}),
            (TurnCompleted(outcome="success"), {}),
        ]
        for n, (data, fields) in enumerate(facts):
            await store(bus, session, data, seq=seq + n + 3, **about, **fields)
        seq += len(facts)
    await store(bus, session, SessionUpdated(title=f"after {first + turns - 1}"), seq=seq + 3, epoch=1)


class ZeroSessions(SessionsView):
    """The same fold beside the original: what a replay from zero gives."""

    name: ClassVar[str] = "zero-sessions"
    bucket: ClassVar[str] = subjects.KV_TEAMS


class ZeroPages(PagesView):
    name: ClassVar[str] = "zero-pages"
    bucket: ClassVar[str] = subjects.KV_ASKS


@contextlib.asynccontextmanager
async def running(*projections: Projection[Any]) -> AsyncGenerator[list[asyncio.Task[None]]]:
    """Projections at work until the block ends, however they end."""
    tasks = [asyncio.create_task(projection.run()) for projection in projections]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def caught_up(bus: Bus, *projections: Projection[Any]) -> None:
    """Wait until everything that the log holds now is stored."""
    end = await direct.end(bus, subjects.EVENTS)
    for projection in projections:
        await asyncio.wait_for(projection.ready.wait(), 60)
        await eventually(lambda projection=projection: projection.stored >= end, 30)


async def documents(bus: Bus, view: type[View[Any]]) -> dict[str, bytes]:
    """Everything of a view's edition in use, by key without the edition."""
    used = await mirror.edition(bus, view.bucket)
    assert used is not None
    prefix = f"{used.prefix}."
    entries = await kv.entries(bus, view.bucket, f"{prefix}>")
    return {entry.key.removeprefix(prefix): entry.value for entry in entries if entry.value is not None}


async def replayed(bus: Bus, views: Sequence[View[Any]]) -> list[dict[str, bytes]]:
    """What projections that begin now give."""
    projections = [Projection(bus, view, "test") for view in views]
    async with running(*projections):
        await caught_up(bus, *projections)
    return [await documents(bus, type(view)) for view in views]


async def assert_replay_equals_live(bus: Bus) -> None:
    live_sessions, live_pages = await documents(bus, SessionsView), await documents(bus, PagesView)
    sessions, pages = await replayed(bus, [ZeroSessions(), ZeroPages()])
    assert live_sessions == sessions
    assert live_pages == pages

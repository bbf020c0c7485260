"""Pages of a history on a real server, with and without an index, over several chunks."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator

import pytest

from trunkline_bus import direct, kv, pages
from trunkline_bus.connection import Bus
from trunkline_bus.pages import CHUNK, history_page
from trunkline_bus.projection import Projection
from trunkline_projector.histories import PagesView
from trunkline_testkit import eventually
from trunkline_wire import TrunklineError, encode, make_event, subjects
from trunkline_wire.ids import new_session_id
from trunkline_wire.turn import MessageAssistant, MessageUser

from .writing import put

TIME = "2026-11-27T21:20:10.000000Z"


async def history(bus: Bus, session: str, count: int, *, first: int = 0) -> list[int]:
    """`count` events of a session, every tenth a prompt, the others parts of one answer; their sequences."""
    bodies: list[tuple[str, bytes]] = []
    for n in range(first, first + count):
        if n % 10 == 0:
            event = make_event(MessageUser(content=[]), session=session, time=TIME, item=f"itm_{n:032x}")
        else:
            event = make_event(MessageAssistant(content=[]), session=session, time=TIME, item=f"itm_{n // 10:031x}a")
        bodies.append((event.type, encode(event)))
    sequences: list[int] = []
    for start in range(0, count, 200):
        some = bodies[start : start + 200]
        subject = subjects.event(session, "agent.fact")
        sequences += await asyncio.gather(*(put(bus, subject, body, type=type_) for type_, body in some))
    return sequences


@contextlib.asynccontextmanager
async def indexed(bus: Bus) -> AsyncGenerator[None]:
    projection = Projection(bus, PagesView(), "projector")
    task = asyncio.create_task(projection.run())
    try:
        end = await direct.end(bus, subjects.EVENTS)
        await eventually(lambda: projection.ready.is_set() and projection.stored >= end, 30)
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def numbers(page: pages.Page) -> list[int]:
    return [stored.sequence for stored in page.stored]


@pytest.mark.parametrize("with_index", [False, True])
async def test_the_last_page_and_then_back_to_the_first(bus: Bus, with_index: bool) -> None:
    session, other = new_session_id(), new_session_id()
    await history(bus, other, 7)
    sequences = await history(bus, session, 45)
    await history(bus, other, 7, first=7)
    async with indexed(bus) if with_index else contextlib.nullcontext():
        page = await history_page(bus, session, limit=20)
        # Twenty would begin within an answer (at 25); it begins at 21, after the prompt at 20.
        assert numbers(page) == sequences[21:]
        assert (page.before, page.after, page.total) == (21, 0, 45)
        page = await history_page(bus, session, before=page.stored[0].sequence, limit=20)
        assert numbers(page) == sequences[1:21]
        assert (page.before, page.after, page.total) == (1, 24, 45)
        page = await history_page(bus, session, before=page.stored[0].sequence, limit=20)
        assert numbers(page) == sequences[:1]
        page = await history_page(bus, session, before=page.stored[0].sequence, limit=20)
        assert (numbers(page), page.before, page.after) == ([], 0, 45)


@pytest.mark.parametrize("with_index", [False, True])
async def test_forward_from_a_position(bus: Bus, with_index: bool) -> None:
    session = new_session_id()
    sequences = await history(bus, session, 45)
    async with indexed(bus) if with_index else contextlib.nullcontext():
        page = await history_page(bus, session, after=0, limit=20)
        assert numbers(page) == sequences[:20]
        page = await history_page(bus, session, after=sequences[39], limit=20)
        assert (numbers(page), page.before, page.after) == (sequences[40:], 40, 0)
        page = await history_page(bus, session, after=sequences[-1], limit=20)
        assert (numbers(page), page.before, page.after) == ([], 45, 0)


async def test_any_page_of_a_long_history_reads_only_its_own_chunk(bus: Bus) -> None:
    session = new_session_id()
    sequences = await history(bus, session, 2 * CHUNK + 500)
    async with indexed(bus):
        for place in (CHUNK - 5, CHUNK, CHUNK + 5, 2 * CHUNK, 2 * CHUNK + 499, 30):
            page = await history_page(bus, session, before=sequences[place], limit=20)
            assert numbers(page)[-1] == sequences[place - 1]
            assert numbers(page) == sequences[page.before : place]
            assert 20 <= len(page.stored) <= 30
            forward = await history_page(bus, session, after=sequences[place - 1], limit=20)
            assert numbers(forward) == sequences[place : place + 20]
        entries = await kv.entries(bus, subjects.KV_PAGES, f"v1-0.{session}.*")
        assert sorted(entry.key.rpartition(".")[2] for entry in entries) == ["0", "1"]


async def test_what_the_index_does_not_know_yet_comes_from_the_log(bus: Bus) -> None:
    session = new_session_id()
    sequences = await history(bus, session, CHUNK - 3)
    async with indexed(bus):
        pass
    sequences += await history(bus, session, CHUNK + 7, first=CHUNK - 3)
    page = await history_page(bus, session, limit=10)
    assert (page.total, numbers(page)) == (2 * CHUNK + 4, sequences[page.before :])
    page = await history_page(bus, session, before=sequences[CHUNK + 2], limit=10)
    assert numbers(page) == sequences[page.before : CHUNK + 2]


async def test_erased_events_are_missing_and_nothing_else(bus: Bus) -> None:
    session = new_session_id()
    sequences = await history(bus, session, 30)
    async with indexed(bus):
        await bus.js.purge_stream(subjects.EVENTS, subject=subjects.session_events(session), seq=sequences[25])
        page = await history_page(bus, session, limit=10)
        assert numbers(page) == sequences[25:]


@pytest.mark.parametrize("arguments", [{"limit": 0}, {"limit": 1001}, {"before": 5, "after": 5}])
async def test_what_can_t_be_asked(bus: Bus, arguments: dict[str, int]) -> None:
    with pytest.raises(TrunklineError) as caught:
        await history_page(bus, new_session_id(), **arguments)
    assert caught.value.code == "bad_params"


async def test_a_session_without_events_has_an_empty_page(bus: Bus) -> None:
    page = await history_page(bus, new_session_id())
    assert (page.stored, page.before, page.after, page.total) == ([], 0, 0, 0)

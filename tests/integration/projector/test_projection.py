"""Projections on a real server: killed at any write, run twice, poisoned, erased, on logs and buckets that went back."""

import asyncio
import shutil
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest

from trunkline_bus import direct, kv, mirror, pages, topology
from trunkline_bus.connection import Bus
from trunkline_bus.pages import Index, decode_index
from trunkline_bus.places import Place
from trunkline_bus.projection import Projection
from trunkline_bus.reader import read
from trunkline_bus.stored import Stored
from trunkline_bus.views import decode_current, decode_document
from trunkline_fold.session import SessionState, decode_state
from trunkline_fold.state import VERSION
from trunkline_projector.histories import PagesView
from trunkline_projector.sessions import SessionsView
from trunkline_testkit import eventually
from trunkline_testkit.nats import NatsServer
from trunkline_wire import DeadLetter, make_event, subjects
from trunkline_wire.asks import AskWithdrawn, PermissionRequested
from trunkline_wire.ids import ask_id, new_session_id
from trunkline_wire.session import SessionErased
from trunkline_wire.turn import TurnStarted

from .stage import (
    TIME,
    ZeroSessions,
    assert_replay_equals_live,
    caught_up,
    created,
    documents,
    live,
    replayed,
    running,
    store,
    store_event,
)


def both(bus: Bus) -> tuple[Projection[SessionState], Projection[Index]]:
    return Projection(bus, SessionsView(), "projector"), Projection(bus, PagesView(), "projector")


async def state(bus: Bus, session: str) -> SessionState:
    shown = await mirror.fetch(bus, subjects.KV_SESSIONS, session, decode_state)
    assert shown is not None
    return shown.state


async def test_a_session_is_shown_as_the_log_tells_it(bus: Bus) -> None:
    session = new_session_id()
    projections = both(bus)
    async with running(*projections):
        await live(bus, session, 3)
        await caught_up(bus, *projections)
        shown = await state(bus, session)
        assert (shown.title, shown.status, shown.turns, shown.last_text) == ("after 3", "idle", 3, "answer 3")
        assert (shown.seq, shown.sequence, shown.counts.prompts, shown.counts.tools) == (21, 21, 3, 3)
        assert await mirror.fetch(bus, subjects.KV_SESSIONS, new_session_id(), decode_state) is None
    await assert_replay_equals_live(bus)


async def test_status_and_asks_are_stored_at_once(bus: Bus) -> None:
    """Far below the second that other changes may take: an ask must reach people while the agent waits."""
    session = new_session_id()
    await store(bus, session, created(), seq=1, epoch=1)
    projection = Projection(bus, SessionsView(), "projector")
    clock = asyncio.get_running_loop()
    async with running(projection):
        await caught_up(bus, projection)
        times: list[float] = []
        async with kv.watch(bus, subjects.KV_SESSIONS, ("*.*",)) as reader:
            batches = aiter(reader.batches())
            while await anext(batches):
                pass
            for n in range(10):
                ask = ask_id(session, "inc", f"{n}")
                begin = clock.time()
                await store(bus, session, PermissionRequested(ask=ask, name="Bash", incarnation="inc"))
                [asked] = await anext(batches)
                assert msgspec.json.decode(asked.raw)["state"]["open_asks"] == [ask]
                await store(bus, session, AskWithdrawn(ask=ask, why="cancelled"))
                await anext(batches)
                times.append((clock.time() - begin) / 2)
    assert sorted(times)[len(times) // 2] < 0.1, times


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_killed_at_every_write(bus: Bus, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    """Each run dies at its n-th write, before or after the server has it; the next goes on. No byte differs."""
    update, budget, writes = kv.update, 0, 0

    async def deadly(*args: object, **options: object) -> int | None:
        nonlocal writes
        writes += 1
        if moment == "before" and writes > budget:
            raise SystemError("killed before the write")
        made = await update(*args, **options)  # pyright: ignore[reportArgumentType] - passed on as they came
        if moment == "after" and writes > budget:
            raise SystemError("killed after the write")
        return made

    monkeypatch.setattr(kv, "update", deadly)
    sessions = [new_session_id() for _ in range(3)]
    for budget in range(8):
        writes = 0
        for session in sessions:
            await live(bus, session, 1, first=budget + 1)
        projections = both(bus)
        async with running(*projections) as tasks:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED, timeout=20)
        assert writes > budget
    monkeypatch.setattr(kv, "update", update)
    projections = both(bus)
    async with running(*projections):
        await caught_up(bus, *projections)
    await assert_replay_equals_live(bus)


async def test_a_document_names_no_part_that_is_not_stored(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events are folded while a chunk is on its way: the document beside it holds none of them."""
    put, update = kv.put, kv.update
    session, projection = new_session_id(), Projection(bus, PagesView(), "projector")
    documents: list[Index] = []

    async def slow(bus: Bus, bucket: str, key: str, value: bytes) -> object:
        if key.endswith(f"{session}.0"):
            await live(bus, session, 1, first=2)
            end = await direct.end(bus, subjects.EVENTS)
            await eventually(lambda: projection.position >= end)
        return await put(bus, bucket, key, value)

    async def watched(bus: Bus, bucket: str, key: str, raw: bytes, *, revision: int) -> int | None:
        made = await update(bus, bucket, key, raw, revision=revision)
        if key.endswith(session):
            index = decode_index(bytes(decode_document(raw).state))
            documents.append(index)
            for number in range(len(index.firsts)):
                assert await kv.get(bus, bucket, f"{key}.{number}") is not None, f"chunk {number} is not stored"
        return made

    monkeypatch.setattr(pages, "CHUNK", 8)
    monkeypatch.setattr(kv, "put", slow)
    monkeypatch.setattr(kv, "update", watched)
    await store(bus, new_session_id(), created(), seq=1, epoch=1)
    async with running(projection) as tasks:
        await caught_up(bus, projection)
        await live(bus, session, 1)
        await eventually(lambda: bool(documents and documents[-1].total == 16) or tasks[0].done())
        assert not tasks[0].done(), tasks[0].exception()
    assert [len(index.firsts) for index in documents][-1] == 2


async def test_two_replicas_at_once_change_nothing(bus: Bus) -> None:
    sessions = [new_session_id() for _ in range(8)]
    ours, theirs = both(bus), both(bus)
    async with running(*ours, *theirs):
        for turn in range(1, 13):
            await asyncio.gather(*(live(bus, session, 1, first=turn) for session in sessions))
        await caught_up(bus, *ours, *theirs)
    await assert_replay_equals_live(bus)


async def test_a_replica_that_stood_still_overwrites_nothing_newer(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    """It had folded less when it was stopped before its write; the other went on; then it wakes."""
    session = new_session_id()
    slow, quick = Projection(bus, SessionsView(), "slow"), Projection(bus, SessionsView(), "quick")
    update, held, release = kv.update, asyncio.Event(), asyncio.Event()

    async def stopped_once(bus_: Bus, bucket: str, key: str, value: bytes, *, revision: int) -> int | None:
        if not held.is_set() and key.endswith(session):
            held.set()
            await release.wait()
        return await update(bus_, bucket, key, value, revision=revision)

    monkeypatch.setattr(kv, "update", stopped_once)
    await live(bus, session, 1)
    async with running(slow):
        await asyncio.wait_for(held.wait(), 10)
        await live(bus, session, 3, first=2)
        async with running(quick):
            await caught_up(bus, quick)
            newest = await documents(bus, SessionsView)
            release.set()
            await caught_up(bus, slow)
            assert await documents(bus, SessionsView) == newest
    assert decode_document(newest[session]).cursor == await direct.end(bus, subjects.EVENTS)


async def test_poison_freezes_its_session_in_live_and_replay_alike(bus: Bus) -> None:
    sick, well = new_session_id(), new_session_id()
    projections = both(bus)
    async with running(*projections):
        await live(bus, sick, 1)
        await caught_up(bus, *projections)
        poison = make_event(TurnStarted(number=9), session=sick, time=TIME, seq=10)
        sequence = await store_event(bus, poison, b'{"id":"x","v":1,"data":{"number":"nine"}')
        await live(bus, sick, 1, first=2)
        await live(bus, well, 2)
        await caught_up(bus, *projections)
        degraded, healthy = await state(bus, sick), await state(bus, well)
        assert (degraded.status, degraded.turns, degraded.sequence) == ("degraded", 1, sequence - 1)
        assert (healthy.status, healthy.turns) == ("idle", 2)
        document = decode_document((await documents(bus, SessionsView))[sick])
        assert document.frozen is not None
        assert (document.frozen.sequence, document.frozen.id) == (sequence, poison.id)
    letters = await read(bus, subjects.DEADLETTER, [subjects.dead_letter("projector")])
    assert [_letter(one) for one in letters] == [("EVENTS", sequence, sick, "bad_event")]
    await assert_replay_equals_live(bus)


def _letter(stored: Stored) -> tuple[str, int, str | None, str]:
    letter = msgspec.json.decode(stored.raw, type=DeadLetter)
    return letter.stream, letter.sequence, letter.session, letter.code


class Picky(SessionsView):
    """A fold with a bug, until it is mended."""

    mended: ClassVar[bool] = False

    def fold(self, state: SessionState, stored: Stored) -> SessionState:
        if stored.type == "tool.started" and not self.mended:
            raise KeyError("a bug")
        return super().fold(state, stored)


async def test_mended_code_takes_a_frozen_session_up_again(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    session = new_session_id()
    await live(bus, session, 2)
    projection = Projection(bus, Picky(), "projector")
    async with running(projection):
        await caught_up(bus, projection)
        assert (await state(bus, session)).status == "degraded"
    projection = Projection(bus, Picky(), "projector")
    async with running(projection):
        await caught_up(bus, projection)
        assert (await state(bus, session)).status == "degraded", "the same code freezes it again"
    monkeypatch.setattr(Picky, "mended", True)
    projection = Projection(bus, Picky(), "projector")
    async with running(projection):
        await caught_up(bus, projection)
        await eventually(lambda: _is_idle(bus, session))
    [sessions] = await replayed(bus, [ZeroSessions()])
    assert await documents(bus, SessionsView) == sessions


async def _is_idle(bus: Bus, session: str) -> bool:
    return (await state(bus, session)).status == "idle"


async def test_an_erased_session_leaves_no_trace(bus: Bus) -> None:
    erased, kept = new_session_id(), new_session_id()
    projections = both(bus)
    async with running(*projections):
        await live(bus, erased, 2)
        await live(bus, kept, 1)
        await caught_up(bus, *projections)
        event = make_event(SessionErased(by="operator"), session=erased, time=TIME, seq=99, epoch=2)
        sequence = await store_event(bus, event)
        await bus.js.purge_stream(subjects.EVENTS, subject=subjects.session_events(erased), seq=sequence)
        await caught_up(bus, *projections)
        found = await documents(bus, SessionsView)
        assert b"prompt 1" not in found[erased]
        assert b"answer 1" in found[kept]
    await assert_replay_equals_live(bus)


class NewerSessions(SessionsView):
    """The next version: titles are loud."""

    version: ClassVar[int] = SessionsView.version + 1

    def fold(self, state: SessionState, stored: Stored) -> SessionState:
        after = super().fold(state, stored)
        return msgspec.structs.replace(after, title=after.title.upper() if after.title else None)


async def test_a_new_version_is_built_beside_the_old_one_and_then_used(bus: Bus) -> None:
    session = new_session_id()
    await live(bus, session, 2)
    old = Projection(bus, SessionsView(), "projector")
    async with running(old):
        await caught_up(bus, old)
        seen: list[str | None] = []
        watching = mirror.Mirror(
            bus, subjects.KV_SESSIONS, decode_state, lambda _, shown: seen.append(shown.state.title if shown else None)
        )
        task = asyncio.create_task(watching.run())
        try:
            await asyncio.wait_for(watching.ready.wait(), 10)
            new = Projection(bus, NewerSessions(), "projector")
            async with running(new):
                await caught_up(bus, new)
                await eventually(lambda: watching.documents[session].state.title == "AFTER 2")
                assert await _former_is_gone(bus)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
    assert seen == ["after 2", "AFTER 2"]
    assert (await state(bus, session)).title == "AFTER 2"


async def _former_is_gone(bus: Bus) -> bool:
    async def gone() -> bool:
        entry = await kv.get(bus, subjects.KV_SESSIONS, "current")
        assert entry is not None
        assert entry.value is not None
        return not decode_current(entry.value).former and not await kv.entries(bus, subjects.KV_SESSIONS, "v1-0.>")

    return await eventually(gone)


async def test_a_bucket_that_was_dropped_is_filled_again(bus: Bus) -> None:
    session = new_session_id()
    await live(bus, session, 2)
    projections = both(bus)
    async with running(*projections):
        await caught_up(bus, *projections)
    await bus.js.delete_stream(kv.stream(subjects.KV_SESSIONS))
    await topology.apply(bus.js)
    projections = both(bus)
    async with running(*projections):
        await caught_up(bus, *projections)
        assert (await state(bus, session)).turns == 2
    await assert_replay_equals_live(bus)


async def test_writes_that_a_killed_server_forgot_are_written_again(bus: Bus, fresh_nats: NatsServer) -> None:
    """Buckets are written without waiting for the disk. Here the last writes of one are taken back by hand."""
    session, quiet = new_session_id(), new_session_id()
    await live(bus, quiet, 1)
    projection = Projection(bus, SessionsView(), "projector")
    async with running(projection):
        await caught_up(bus, projection)
        await asyncio.to_thread(fresh_nats.terminate)
        bucket = Path(fresh_nats.store) / "jetstream" / "$G" / "streams" / kv.stream(subjects.KV_SESSIONS)
        copy = Path(fresh_nats.home) / "copy"
        await asyncio.to_thread(shutil.copytree, bucket, copy)
        await asyncio.to_thread(fresh_nats.start)
        await bus.mux.connected()
        await live(bus, session, 1)
        await live(bus, quiet, 1, first=2)
        await caught_up(bus, projection)
        await asyncio.to_thread(fresh_nats.kill)
        shutil.rmtree(bucket)
        shutil.move(copy, bucket)
        await asyncio.to_thread(fresh_nats.start)
        await eventually(lambda: _turns(bus, quiet, 2), 20)
        await eventually(lambda: _turns(bus, session, 1), 20)
    [sessions] = await replayed(bus, [ZeroSessions()])
    assert await documents(bus, SessionsView) == sessions


async def test_an_edition_in_use_that_a_killed_server_forgot_is_named_again(bus: Bus) -> None:
    """The key `current` is a write like others: after an outage it is looked at again."""
    session = new_session_id()
    await live(bus, session, 1)
    projection = Projection(bus, SessionsView(), "projector")
    async with running(projection):
        await caught_up(bus, projection)
        await kv.delete(bus, subjects.KV_SESSIONS, "current")
        await bus.writing.force_reconnect()
        await eventually(lambda: _turns(bus, session, 1))


async def _turns(bus: Bus, session: str, turns: int) -> bool:
    shown = await mirror.fetch(bus, subjects.KV_SESSIONS, session, decode_state)
    return shown is not None and shown.state.turns == turns


async def test_a_log_that_lost_its_tail_is_projected_anew(bus: Bus, fresh_nats: NatsServer) -> None:
    """The buckets know events that the log no longer has: another edition is built from zero."""
    session, lost = new_session_id(), new_session_id()
    await live(bus, session, 1)
    await asyncio.to_thread(fresh_nats.terminate)
    events = Path(fresh_nats.store) / "jetstream" / "$G" / "streams" / subjects.EVENTS
    copy = Path(fresh_nats.home) / "copy"
    await asyncio.to_thread(shutil.copytree, events, copy)
    await asyncio.to_thread(fresh_nats.start)
    await bus.mux.connected()
    projections = both(bus)
    async with running(*projections):
        await live(bus, lost, 2)
        await caught_up(bus, *projections)
        await asyncio.to_thread(fresh_nats.terminate)
        shutil.rmtree(events)
        shutil.move(copy, events)
        await asyncio.to_thread(fresh_nats.start)
        await eventually(lambda: _generation(bus, 1), 20)
        await live(bus, session, 1, first=2)
        await caught_up(bus, *projections)
    assert set(await documents(bus, SessionsView)) == {session}
    await assert_replay_equals_live(bus)


async def _generation(bus: Bus, number: int) -> bool:
    editions = [await mirror.edition(bus, bucket) for bucket in (subjects.KV_SESSIONS, subjects.KV_PAGES)]
    return all(one is not None and one.generation == number for one in editions)


async def test_a_restart_begins_at_its_place_and_not_at_zero(bus: Bus) -> None:
    sessions = [new_session_id() for _ in range(5)]
    for session in sessions:
        await live(bus, session, 2)
    projection = Projection(bus, SessionsView(), "projector")
    async with running(projection):
        await caught_up(bus, projection)
    entry = await kv.get(bus, subjects.KV_POSITIONS, f"sessions.v{VERSION}")
    assert entry is not None
    assert entry.value is not None
    place = msgspec.json.decode(entry.value, type=Place)
    last = await direct.last(bus, subjects.EVENTS, subjects.ALL_EVENTS)
    assert last is not None
    assert (place.position, place.id, place.frozen) == (last.sequence, last.id, [])
    written = await direct.end(bus, kv.stream(subjects.KV_SESSIONS))
    projection = Projection(bus, SessionsView(), "projector")
    async with running(projection):
        await caught_up(bus, projection)
    assert await direct.end(bus, kv.stream(subjects.KV_SESSIONS)) == written, "nothing was written again"


async def test_it_waits_out_an_outage(bus: Bus, fresh_nats: NatsServer) -> None:
    session = new_session_id()
    projections = both(bus)
    async with running(*projections) as tasks:
        await live(bus, session, 1)
        await caught_up(bus, *projections)
        await asyncio.to_thread(fresh_nats.kill)
        await asyncio.to_thread(fresh_nats.start)
        await bus.mux.connected()
        await live(bus, session, 1, first=2)
        await eventually(lambda: _turns(bus, session, 2), 20)
        await caught_up(bus, *projections)
        assert not any(task.done() for task in tasks)
    await assert_replay_equals_live(bus)

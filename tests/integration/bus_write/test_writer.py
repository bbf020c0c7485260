"""One writer a session: in order, once, and nothing of a fenced one."""

import asyncio

import msgspec
import pytest
from opentelemetry.trace import NonRecordingSpan, SpanContext, use_span
from tests.integration.bus_write.sessions import AGENT, claim, created, events, new_writer, note, texts, unbroken

from trunkline_bus import leader
from trunkline_bus.append import store
from trunkline_bus.client import Received
from trunkline_bus.connection import Bus
from trunkline_bus.outcome import Message
from trunkline_bus.ownership import claim as claim_raw
from trunkline_bus.reader import read_session
from trunkline_bus.writer import QUEUE_LIMIT, SessionWriter
from trunkline_testkit import eventually
from trunkline_wire import TrunklineError, decode_event, encode, make_event, subjects, timestamp
from trunkline_wire.asks import PermissionRequested
from trunkline_wire.ids import new_session_id
from trunkline_wire.session import SessionClaimed, SessionCreated, SessionErased


async def test_events_stand_in_the_log_in_the_order_of_append(bus: Bus) -> None:
    writer = await new_writer(bus)
    for number in range(50):
        writer.append(note(str(number)), turn="tur_x", native=b'{"line": 1}')
    last = await writer.flush()
    stored = await read_session(bus, writer.session)
    assert [one.event().seq for one in stored] == list(range(1, 52))
    assert await texts(bus, writer.session) == [str(number) for number in range(50)]
    assert stored[-1].sequence == last == writer.stored_sequence
    assert stored[0].type == "session.created"
    assert stored[1].id == stored[1].event().id
    assert stored[1].event().agent == AGENT
    assert bytes(stored[1].event().native) == b'{"line": 1}'
    assert writer.claim_sequence == stored[0].sequence
    await writer.close()


async def test_asks_have_a_subject_of_their_own_in_the_same_chain(bus: Bus) -> None:
    async with await new_writer(bus) as writer:
        writer.append(note("before"))
        writer.append(PermissionRequested(ask="ask_1", name="Bash", incarnation="inc"))
        writer.append(note("after"))
        await writer.flush()
    stored = await read_session(bus, writer.session)
    assert [one.subject.split(".", 4)[4] for one in stored] == ["agent.fact", "agent.fact", "agent.ask", "agent.fact"]
    assert unbroken([one.event() for one in stored])


async def test_no_event_of_an_agent_has_a_message_id(bus: Bus) -> None:
    async with await new_writer(bus) as writer:
        writer.append(note("x"))
        await writer.flush()
    for one in await read_session(bus, writer.session):
        assert one.headers is not None
        assert "Nats-Msg-Id" not in one.headers
        assert one.headers["Nats-Expected-Last-Subject-Sequence-Subject"] == subjects.agent_fence(writer.session)


async def test_a_claim_fences_the_owner_even_in_mid_append(bus: Bus) -> None:
    async with Bus.open(bus.settings) as other:
        old = await new_writer(bus)
        old.append(note("mine"))
        await old.flush()
        for number in range(2000):
            old.append(note(f"flood {number}"))
        await eventually(lambda: old.queued < 1950)
        new = await claim(other, old.session)
        new.append(note("yours"))
        await new.flush()
        await old.wait_stopped()
        assert old.error is not None
        assert old.error.code == "fenced"
        with pytest.raises(TrunklineError, match="fenced"):
            old.append(note("too late"))
        with pytest.raises(TrunklineError, match="fenced"):
            await old.flush()
        found = await events(bus, old.session)
        assert unbroken(found)
        border = next(index for index, event in enumerate(found) if event.epoch == 2)
        assert isinstance(found[border].data, SessionClaimed)
        assert [event.data for event in found[border + 1 :]] == [note("yours")]
        assert new.epoch == 2
        assert new.claim_sequence > old.claim_sequence
        await old.close()
        await new.close()


async def test_a_zombie_that_wakes_up_stores_nothing(bus: Bus) -> None:
    """Its bytes, sent again as they were before the claim, are refused by the server itself."""
    old = await new_writer(bus)
    before = old.stored_sequence
    new = await claim(bus, old.session)
    event = make_event(note("zombie"), session=old.session, time=timestamp(), seq=2, epoch=1)
    message = Message(
        subject=subjects.event(old.session, "agent.fact"),
        filter=subjects.agent_fence(old.session),
        id=event.id,
        type=event.type,
        payload=encode(event),
        headers={},
    )
    with pytest.raises(Exception, match="the last of the filter"):
        await store(bus.mux, subjects.EVENTS, message, expected=before)
    old.append(note("zombie"))
    await old.wait_stopped()
    assert await texts(bus, old.session) == []
    assert [event.type for event in await events(bus, old.session)] == ["session.created", "session.claimed"]
    await old.close()
    await new.close()


async def test_of_many_who_claim_at_once_one_wins(bus: Bus) -> None:
    first = await new_writer(bus)
    tries = await asyncio.gather(*(claim(bus, first.session, worker=f"w{n}") for n in range(8)), return_exceptions=True)
    winners = [one for one in tries if isinstance(one, SessionWriter)]
    losers = [one for one in tries if isinstance(one, TrunklineError)]
    assert len(winners) + len(losers) == 8
    assert {error.code for error in losers} <= {"fenced"}
    live = [one for one in winners if one.epoch == max(winner.epoch for winner in winners)]
    assert len(live) == 1
    live[0].append(note("alive"))
    await live[0].flush()
    assert unbroken(await events(bus, first.session))
    for writer in (first, *winners):
        await writer.close()


async def test_a_repeated_spawn_request_gets_its_session(bus: Bus) -> None:
    session = new_session_id()
    first = await SessionWriter.create(bus, created("spawn-1"), session=session, worker="one", agent=AGENT)
    again = await SessionWriter.create(bus, created("spawn-1"), session=session, worker="two", agent=AGENT)
    assert (first.epoch, again.epoch) == (1, 2)
    for other in (created("spawn-2"), created(None)):
        with pytest.raises(TrunklineError, match="session_exists"):
            await SessionWriter.create(bus, other, session=session, worker="three", agent=AGENT)
    found = await events(bus, session)
    assert [type(event.data) for event in found] == [SessionCreated, SessionClaimed]
    assert unbroken(found)
    await first.close()
    await again.close()


async def test_a_claim_needs_a_session(bus: Bus) -> None:
    with pytest.raises(TrunklineError, match="unknown_session"):
        await claim(bus, new_session_id())


async def test_an_erased_session_is_not_claimed(bus: Bus) -> None:
    async with await new_writer(bus) as writer:
        writer.append(SessionErased(by="operator"))
        await writer.flush()
    with pytest.raises(TrunklineError, match="unknown_session"):
        await claim(bus, writer.session)


async def test_a_session_that_moves_from_host_to_host_is_refused(bus: Bus) -> None:
    writers = [await new_writer(bus)]
    session = writers[0].session
    writers += [await claim(bus, session, host=host) for host in ("host-b", "host-a", "host-b")]
    with pytest.raises(TrunklineError) as caught:
        await claim(bus, session, host="host-a")
    assert caught.value.code == "ownership_flapping"
    forced = await claim_raw(bus, session, worker="w", host="host-a", agent=AGENT, despite_flapping=True)
    assert forced.epoch == 5
    for writer in writers:
        await writer.close()


async def test_a_worker_that_restarts_on_its_host_is_not_flapping(bus: Bus) -> None:
    writers = [await new_writer(bus)]
    for number in range(6):
        writers.append(await claim(bus, writers[0].session, worker=f"w{number}", host="host-a"))
    assert writers[-1].epoch == 7
    for writer in writers:
        await writer.close()


async def test_sixty_four_sessions_write_in_parallel(bus: Bus) -> None:
    writers = await asyncio.gather(*(new_writer(bus) for _ in range(64)))
    for number in range(20):
        for writer in writers:
            writer.append(note(str(number)))
    await asyncio.gather(*(writer.flush() for writer in writers))
    for writer in writers[::16]:
        found = await events(bus, writer.session)
        assert unbroken(found)
        assert len(found) == 21
    for writer in writers:
        await writer.close()


async def test_room_waits_while_eight_megabytes_are_queued(bus: Bus) -> None:
    async with await new_writer(bus) as writer:
        await asyncio.wait_for(writer.room(), 1)
        for _ in range(QUEUE_LIMIT // 400_000 + 1):
            writer.append(note("x" * 400_000))
        waiting = asyncio.ensure_future(writer.room())
        assert not (await asyncio.wait([waiting], timeout=0))[0]
        await waiting
        assert writer.queued <= QUEUE_LIMIT // 400_000
        await writer.flush()


async def test_close_stores_what_is_queued_and_refuses_more(bus: Bus) -> None:
    writer = await new_writer(bus)
    writer.append(note("last"))
    await writer.close()
    assert writer.error is None
    assert await texts(bus, writer.session) == ["last"]
    with pytest.raises(TrunklineError, match="not_running"):
        writer.append(note("later"))


async def test_a_closed_connection_stops_the_writer(bus: Bus) -> None:
    other = await Bus.open(bus.settings)
    writer = await new_writer(other)
    await other.close()
    writer.append(note("nowhere"))
    await asyncio.wait_for(writer.wait_stopped(), 5)
    assert writer.error is not None
    assert writer.error.code == "log_unavailable"
    await writer.close()


async def test_an_unsendable_header_is_no_part_of_the_identity(bus: Bus) -> None:
    """The same event under the same id is stored once however often it is sent."""
    session = new_session_id()
    event = make_event(created(), session=session, time=timestamp(), seq=1, epoch=1)
    message = Message(
        subject=subjects.event(session, "agent.fact"),
        filter=subjects.agent_fence(session),
        id=event.id,
        type=event.type,
        payload=encode(event),
        headers={},
    )
    first = await store(bus.mux, subjects.EVENTS, message, expected=0)
    again = await store(bus.mux, subjects.EVENTS, msgspec.structs.replace(message, headers={"X": "y"}), expected=0)
    assert again == first
    assert len(await read_session(bus, session)) == 1


async def test_an_event_carries_the_trace_it_was_appended_in(bus: Bus) -> None:
    context = SpanContext(0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331, is_remote=False)
    async with await new_writer(bus) as writer:
        with use_span(NonRecordingSpan(context)):
            writer.append(note("traced"))
        writer.append(note("not traced"))
        await writer.flush()
    _, traced, plain = await read_session(bus, writer.session)
    assert (traced.headers or {})["traceparent"] == "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
    assert "traceparent" not in (plain.headers or {})


async def test_what_the_server_would_not_take_is_refused_here(bus: Bus) -> None:
    """Just under the limit without its headers: the server would close the connection for good."""
    limit = bus.writing.max_payload
    with pytest.raises(TrunklineError, match="too_large"):
        bus.mux.send("trunk.obs.x", b"x" * (limit - 10), {"Trunk-Id": "id"})
    with pytest.raises(TrunklineError, match="bad_id"):
        bus.mux.send("trunk.obs.x y", b"")
    with pytest.raises(TrunklineError, match="line break"):
        bus.mux.send("trunk.obs.x", b"", {"Trunk-Id": "a\r\nNats-Rollup: all"})
    bus.mux.send("trunk.obs.x", b"x" * (limit - 200), {"Trunk-Id": "id"})

    async def stored() -> bool:
        return await leader.get(bus.mux, "OBSERVED", {"seq": 1}) is not None

    await eventually(stored)


async def test_an_event_goes_out_in_the_step_that_made_it_and_one_at_a_time(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = await new_writer(bus)
    writer.append(note("first"))
    await writer.flush()
    ask, sent = bus.mux.ask, list[str]()

    def noted(
        subject: str, payload: bytes, headers: dict[str, str] | None = None, *, wait: float
    ) -> asyncio.Future[Received]:
        sent.append(getattr(decode_event(payload).data, "text", ""))
        return ask(subject, payload, headers, wait=wait)

    monkeypatch.setattr(bus.mux, "ask", noted)
    for text in ("at once", "then", "last"):
        writer.append(note(text))
    assert sent == ["at once"]
    await writer.flush()
    assert sent == ["at once", "then", "last"]
    await writer.close()


async def test_frames_keep_their_order_whichever_way_they_are_sent(bus: Bus) -> None:
    heard: list[int] = []
    await bus.reading.subscribe_direct("trunk.obs.order", lambda message: heard.append(int(message.data)))
    await bus.reading.flush()
    numbers = iter(range(600))
    for turn in range(100):
        bus.mux.send("trunk.obs.order", str(next(numbers)).encode())
        for _ in range(2):
            await bus.writing.publish("trunk.obs.order", str(next(numbers)).encode())
        for _ in range(3):
            bus.mux.send("trunk.obs.order", str(next(numbers)).encode())
        if turn % 10 == 0:
            await bus.writing.flush()
    await eventually(lambda: len(heard) == 600)
    assert heard == list(range(600))


async def test_a_cancellation_that_comes_with_the_answer_is_not_lost(bus: Bus) -> None:
    async def keep_on() -> None:
        while True:
            await bus.js_cmd.publish("trunk.sys.test", b"{}")

    for _ in range(30):
        task = asyncio.create_task(keep_on())
        answers = bus.commands.stats["in_msgs"]
        # The answer is there once it is counted; who waits for it has not run yet.
        while bus.commands.stats["in_msgs"] == answers:  # noqa: ASYNC110 - single steps of the loop are what is waited for
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait_for(asyncio.wait([task]), 2)
        assert task.cancelled()

"""Streaming text on its way: between facts, never before one, whole again after a break."""

import asyncio
import os
import signal
from typing import Any

import pytest
from nats.aio.msg import Msg
from tests.integration.bus_write.sessions import new_writer, note

from trunkline_bus.client import Client
from trunkline_bus.connection import Bus
from trunkline_bus.reader import Reader
from trunkline_testkit import eventually
from trunkline_testkit.nats import NatsServer
from trunkline_wire import Event, decode_event, subjects
from trunkline_wire.turn import MessageDelta, ToolProgress


async def deltas(bus: Bus, session: str) -> list[MessageDelta]:
    async with Reader(bus, "DELTAS", [subjects.session_deltas(session)]) as reader:
        found: list[MessageDelta] = []
        async for batch in reader.batches():
            found += [data for one in batch if isinstance(data := one.event().data, MessageDelta)]
            if reader.caught_up.is_set():
                return found
    raise AssertionError("the reader ended")


async def test_pieces_reach_the_stream_and_join_to_the_text(bus: Bus) -> None:
    writer = await new_writer(bus)
    words = [f"word{number} 👋 " for number in range(40)]
    for word in words:
        writer.piece("itm_1", 0, "text", word, turn="tur_1")
        await asyncio.sleep(0)
    whole = "".join(words)

    async def complete() -> bool:
        text = ""
        for piece in await deltas(bus, writer.session):
            assert piece.at <= len(text)
            text = text[: piece.at] + piece.text
        return text == whole

    await eventually(complete)
    assert len(await deltas(bus, writer.session)) < 5
    await writer.close()


async def test_a_delta_names_its_turn_item_and_the_last_fact(bus: Bus) -> None:
    writer = await new_writer(bus)
    heard: list[Event] = []

    async def hear(message: Msg) -> None:
        heard.append(decode_event(message.data))

    await bus.reading.subscribe(subjects.session_deltas(writer.session), cb=hear)
    await bus.reading.flush()
    writer.append(note("fact"))
    await writer.flush()
    writer.piece("itm_1", 3, "thinking", "hm", turn="tur_1", lane="itm_0")
    writer.progress(ToolProgress(elapsed_s=2.5), item="itm_2", turn="tur_1")
    await eventually(lambda: len(heard) == 2)
    one, two = heard
    assert one.data == MessageDelta(block=3, kind="thinking", at=0, text="hm", after=2)
    assert (one.turn, one.item, one.lane, one.epoch, one.seq) == ("tur_1", "itm_1", "itm_0", 1, None)
    assert two.data == ToolProgress(elapsed_s=2.5, after=2)
    await writer.close()


async def test_no_delta_goes_out_while_a_fact_is_outstanding(bus: Bus) -> None:
    writer = await new_writer(bus)
    order: list[str] = []

    async def hear(message: Msg) -> None:
        order.append((message.headers or {})["Trunk-Type"])

    for subject in (subjects.session_events(writer.session), subjects.session_deltas(writer.session)):
        await bus.reading.subscribe(subject, cb=hear)
    await bus.reading.flush()
    writer.append(note("0"))
    writer.piece("itm_1", 0, "text", "x")
    for number in range(1, 200):
        writer.append(note(str(number)))
    await writer.flush()
    await eventually(lambda: len(order) == 201)
    assert order == ["message.system"] * 200 + ["message.delta"]
    await writer.close()


async def test_after_a_break_the_piece_is_the_whole_block(bus: Bus, fresh_nats: NatsServer) -> None:
    writer = await new_writer(bus)
    writer.piece("itm_1", 0, "text", "before ")

    async def one() -> bool:
        return len(await deltas(bus, writer.session)) == 1

    await eventually(one)
    fresh_nats.kill()
    await eventually(lambda: not bus.writing.is_connected)
    writer.piece("itm_1", 0, "text", "meanwhile ")
    await asyncio.to_thread(fresh_nats.restart)
    await eventually(lambda: bus.writing.is_connected and bus.reading.is_connected)

    async def whole() -> bool:
        return any(piece.text == "before meanwhile " and piece.at == 0 for piece in await deltas(bus, writer.session))

    await eventually(whole)
    await writer.close()


async def test_a_piece_that_is_due_goes_out_in_the_step_that_has_it(bus: Bus) -> None:
    writer = await new_writer(bus)
    sent: list[str] = []
    send = bus.mux.send

    def note_and_send(subject: str, *rest: Any, **more: Any) -> None:
        sent.append(subject)
        send(subject, *rest, **more)

    bus.mux.send = note_and_send  # pyright: ignore[reportAttributeAccessIssue]
    for _ in range(10):
        await asyncio.sleep(0)  # until the writer's task waits for work
    writer.piece("itm_1", 0, "text", "now")
    assert sent == [subjects.delta(writer.session)]
    await writer.close()


async def test_pieces_merge_while_the_server_takes_nothing(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = await new_writer(bus)
    await writer.flush()
    stuck = True
    monkeypatch.setattr(Client, "congested", property(lambda _: stuck))
    for number in range(40):
        writer.piece("itm_1", 0, "text", f"word{number} ", turn="tur_1")
        await asyncio.sleep(0)  # the first would go out at once
    assert await deltas(bus, writer.session) == []
    stuck = False

    async def complete() -> bool:
        return bool(await deltas(bus, writer.session))

    await eventually(complete)
    [piece] = await deltas(bus, writer.session)
    assert (piece.at, piece.text) == (0, "".join(f"word{number} " for number in range(40)))
    await writer.close()


async def test_a_server_that_takes_nothing_is_noticed(bus: Bus, fresh_nats: NatsServer) -> None:
    assert not bus.writing.congested
    os.kill(fresh_nats.pid, signal.SIGSTOP)
    try:
        for _ in range(64):
            bus.mux.send("trunk.obs.flood", b"x" * 500_000)
        assert bus.writing.congested
    finally:
        os.kill(fresh_nats.pid, signal.SIGCONT)
    await eventually(lambda: not bus.writing.congested)

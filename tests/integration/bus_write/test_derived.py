"""Derived events: of several that decide, one is recorded, and each of the others is told to read on."""

import asyncio

import pytest

from trunkline_bus.connection import Bus
from trunkline_bus.derived import DerivedWriter
from trunkline_bus.reader import read_session
from trunkline_testkit.nats import NatsServer
from trunkline_wire import TrunklineError
from trunkline_wire.asks import AskDecided, AskExpired
from trunkline_wire.ids import new_session_id
from trunkline_wire.turn import MessageSystem


def decided(by: str) -> AskDecided:
    return AskDecided(ask="ask_1", behaviour="allow", by=by)


async def test_one_of_many_deciders_wins_each_round(bus: Bus) -> None:
    session, writers = new_session_id(), [DerivedWriter(bus, f"p{n}") for n in range(5)]
    expected = 0
    for round_ in range(10):
        found = await asyncio.gather(
            *(
                writer.append(session, "permission", decided(f"{n}"), expected=expected, src=("EVENTS", 7, round_))
                for n, writer in enumerate(writers)
            )
        )
        won = [sequence for sequence in found if sequence is not None]
        assert len(won) == 1
        expected = won[0]
    stored = await read_session(bus, session)
    assert len(stored) == 10
    assert [one.event().src for one in stored] == [("EVENTS", 7, round_) for round_ in range(10)]
    assert {one.event().seq for one in stored} == {None}


async def test_the_subject_is_the_channels_own(bus: Bus) -> None:
    session, writer = new_session_id(), DerivedWriter(bus, "permissions")
    await writer.append(session, "permission", AskExpired(ask="ask_1"), expected=0, src=("EVENTS", 1, 0), cause="c")
    (stored,) = await read_session(bus, session)
    assert stored.subject.endswith(f"{session}.permission")
    assert stored.event().cause == "c"


async def test_a_payload_of_another_channel_is_refused(bus: Bus) -> None:
    writer = DerivedWriter(bus, "permissions")
    for channel, data in (("team", decided("x")), ("permission", MessageSystem(text="x"))):
        with pytest.raises(TrunklineError, match="bad_event"):
            await writer.append(new_session_id(), channel, data, expected=0, src=("EVENTS", 1, 0))  # type: ignore[arg-type]  # two channels


async def test_a_killed_server_neither_loses_nor_doubles_a_decision(bus: Bus, fresh_nats: NatsServer) -> None:
    session, writer = new_session_id(), DerivedWriter(bus, "permissions")
    expected = await writer.append(session, "permission", decided("a"), expected=0, src=("EVENTS", 1, 0))
    assert expected is not None
    fresh_nats.kill()
    deciding = asyncio.ensure_future(
        writer.append(session, "permission", decided("b"), expected=expected, src=("EVENTS", 2, 0))
    )
    await asyncio.to_thread(fresh_nats.restart)
    assert await asyncio.wait_for(deciding, 20) is not None
    assert [one.event().data for one in await read_session(bus, session)] == [decided("a"), decided("b")]

"""A gateway that begins with the stored projections knows what one that folds the whole log knows."""

import asyncio
import contextlib

import msgspec
import pytest
from msgspec.structs import replace
from tests.integration.gateway.rig import Rig, ask, begin_turn, end_turn, say

from trunkline_bus import kv
from trunkline_bus.places import Place
from trunkline_bus.projection import Projection
from trunkline_fold.state import VERSION
from trunkline_gateway.base import Base, load_base
from trunkline_permissions.view import AsksView
from trunkline_projector.sessions import SessionsView
from trunkline_testkit import eventually
from trunkline_wire import encode, subjects


async def project(rig: Rig) -> None:
    """What the projector and the permission service store of the log as it is."""
    parts = [Projection(rig.bus, SessionsView(), "test"), Projection(rig.bus, AsksView(), "test")]
    running = [asyncio.create_task(part.run()) for part in parts]
    end = rig.running.gateway.directory.position
    for part in parts:
        await part.ready.wait()
        await eventually(lambda p=part: p.stored >= end)
    for task in running:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_from_projections_and_from_the_start_is_the_same(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline_gateway.base.OVERLAP", 3)
    async with await rig.session() as one, await rig.session() as two:
        for number in range(1, 6):
            for writer in (one, two):
                turn = begin_turn(writer, number)
                say(writer, f"itm_{number:032x}", f"answer {number}", turn=turn)
                if number < 5:
                    end_turn(writer, turn)
        open_ask = ask(one, "t")
        await rig.settled(one, two)
        await project(rig)
        end_turn(two, f"tur_{5:032x}")
        later = ask(two, "u")
        await rig.settled(two)
        whole = rig.running.gateway.directory

        base = await load_base(rig.bus)
        assert base.position > 0
        assert set(base.states) == {one.session, two.session}
        await rig.restart_gateway()
        short = rig.running.gateway.directory
        assert short.position == whole.position
        assert short.states == whole.states
        assert list(short.asks()) == list(whole.asks())
        assert {short.ask(a).status for a in (open_ask, later)} == {"open"}  # type: ignore[union-attr]  # they exist


async def test_a_base_of_another_log_is_left_aside(rig: Rig) -> None:
    async with await rig.session() as writer:
        begin_turn(writer)
        await rig.settled(writer)
        await project(rig)
        place = await kv.get(rig.bus, subjects.KV_POSITIONS, f"sessions.v{VERSION}")
        assert place is not None
        assert place.value is not None
        assert (await load_base(rig.bus)).states
        # the event at the position is another one: the log went back and was written anew
        changed = replace(msgspec.json.decode(place.value, type=Place), id="another")
        await kv.put(rig.bus, subjects.KV_POSITIONS, f"sessions.v{VERSION}", encode(changed))
        assert await load_base(rig.bus) == Base()

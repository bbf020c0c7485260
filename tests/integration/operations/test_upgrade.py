"""Rolling upgrades: older and newer versions read and write one log side by side."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from msgspec.structs import replace
from tests.integration.operations.conftest import trunkline
from tests.integration.operations.sessions import session

from trunkline_bus import kv, leader, mirror
from trunkline_bus.connection import Bus
from trunkline_bus.projection import Projection
from trunkline_bus.reader import read_session
from trunkline_bus.stored import Stored
from trunkline_fold.session import SessionState, decode_state
from trunkline_fold.state import VERSION
from trunkline_projector.sessions import SessionsView
from trunkline_testkit import eventually
from trunkline_wire import subjects
from trunkline_wire.codec import UPCASTERS
from trunkline_wire.ids import new_event_id
from trunkline_wire.turn import MessageSystem

TIME = "2026-11-27T21:20:10.000000Z"


async def newer(bus: Bus, made: str, seq: int, kind: str, data: dict[str, Any], **fields: Any) -> None:
    """An event as a later version of Trunkline may write it."""
    id_ = new_event_id()
    event = {"id": id_, "type": kind, "v": 1, "session": made, "seq": seq, "epoch": 1, "time": TIME, "data": data}
    event |= fields
    headers = {subjects.HEADER_ID: id_, subjects.HEADER_TYPE: kind}
    answer = await leader.publish(bus.mux, subjects.event(made, "agent.fact"), json.dumps(event).encode(), headers)
    assert isinstance(answer, int), answer


@contextlib.asynccontextmanager
async def projected(bus: Bus, *views: SessionsView) -> AsyncGenerator[None]:
    """Projectors of these versions at work, once each has caught up."""
    projections = [Projection(bus, view, "test") for view in views]
    tasks = [asyncio.create_task(one.run()) for one in projections]
    try:
        for one in projections:
            await asyncio.wait_for(one.ready.wait(), 60)
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def state(bus: Bus, made: str) -> SessionState | None:
    shown = await mirror.fetch(bus, subjects.KV_SESSIONS, made, decode_state)
    return shown.state if shown is not None else None


async def is_at(bus: Bus, made: str, seq: int) -> bool:
    found = await state(bus, made)
    return found is not None and found.seq == seq


async def test_an_old_reader_goes_on_through_types_and_fields_that_it_does_not_know(bus: Bus, tmp_path: Path) -> None:
    made = await session(bus, "before", closed=False)
    await newer(bus, made, 3, "session.sparkled", {"colour": "blue"})
    await newer(bus, made, 4, "message.system", {"text": "hello", "volume": 11}, mood={"of": "the writer"})
    await newer(bus, made, 5, "session.updated", {"title": "after", "aura": ["x"]})
    async with projected(bus, SessionsView()):
        await eventually(lambda: is_at(bus, made, 5), 30)
        found = await state(bus, made)
        assert found is not None
        assert (found.title, found.status) == ("after", "idle"), "it stands still nowhere"
    code, said = await trunkline(bus.settings.url, tmp_path, "verify")
    assert (code, said) == (0, "1 session, 5 events: all is well\n")
    # Whoever knows more gets all of it: nothing is taken away on the way.
    raws = [json.loads(one.raw) for one in await read_session(bus, made)]
    assert raws[3]["mood"] == {"of": "the writer"}
    assert raws[2]["data"] == {"colour": "blue"}


def louder(event: dict[str, Any]) -> dict[str, Any]:
    return {**event, "data": {**event["data"], "text": event["data"]["text"].upper()}}


async def test_a_newer_version_of_a_type_waits_for_the_reader_that_knows_it(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only its session stands still meanwhile; the upgraded reader takes it up by itself, and reads the old events too."""
    ahead, other = await session(bus, "one", closed=False), await session(bus, "two", closed=False)
    await newer(bus, ahead, 3, MessageSystem.TYPE, {"text": "THREE"}, v=2)
    await newer(bus, ahead, 4, "session.updated", {"title": "four"})
    async with projected(bus, SessionsView()):
        await newer(bus, other, 3, "session.updated", {"title": "goes on"})
        await eventually(lambda: is_at(bus, other, 3), 30)
        waiting = await state(bus, ahead)
        assert waiting is not None
        assert (waiting.status, waiting.seq) == ("degraded", 2)
    monkeypatch.setattr(MessageSystem, "VERSION", 2)
    monkeypatch.setitem(UPCASTERS, (MessageSystem.TYPE, 1), louder)
    texts = [one.event().data for one in await read_session(bus, ahead)]
    assert [data.text for data in texts if isinstance(data, MessageSystem)] == ["ONE", "THREE"]
    async with projected(bus, SessionsView()):
        await eventually(lambda: is_at(bus, ahead, 4), 30)
        found = await state(bus, ahead)
        assert found is not None
        assert (found.status, found.title) == ("idle", "four")


class NextView(SessionsView):
    """The next version of the fold: it writes titles in capitals."""

    version: ClassVar[int] = VERSION + 1

    def fold(self, state: SessionState, stored: Stored) -> SessionState:
        folded = super().fold(state, stored)
        return replace(folded, title=folded.title.upper()) if folded.title else folded


async def test_projectors_of_two_versions_work_side_by_side(bus: Bus) -> None:
    """Each keeps its own edition, from live events too; readers see the newer one once it has caught up, whole."""
    made = [await session(bus, "hello", closed=False) for _ in range(3)]
    for one in made:
        await newer(bus, one, 3, "session.updated", {"title": "old"})
    async with projected(bus, SessionsView()):
        await eventually(lambda: is_at(bus, made[-1], 3), 30)
        assert {(await state(bus, one)).title for one in made} == {"old"}  # pyright: ignore[reportOptionalMemberAccess]
        async with projected(bus, NextView()):
            used = await mirror.edition(bus, subjects.KV_SESSIONS)
            assert used is not None
            assert used.version == VERSION + 1
            assert {(await state(bus, one)).title for one in made} == {"OLD"}  # pyright: ignore[reportOptionalMemberAccess]
            for one in made:
                await newer(bus, one, 4, "session.updated", {"title": "new"})

            async def both() -> bool:
                keys = [f"v{version}-0.{made[0]}" for version in (VERSION, VERSION + 1)]
                found = await kv.get_many(bus, subjects.KV_SESSIONS, keys)
                values = [entry.value or b"" for _, entry in sorted(found.items())]
                return len(values) == 2 and b'"title":"new"' in values[0] and b'"title":"NEW"' in values[1]

            await eventually(both, 30)
        # Rolled back: the older one has gone on, and readers that know only it read the log instead.
        await newer(bus, made[0], 5, "session.updated", {"title": "back"})

        async def gone_on() -> bool:
            entry = await kv.get(bus, subjects.KV_SESSIONS, f"v{VERSION}-0.{made[0]}")
            return entry is not None and b'"title":"back"' in (entry.value or b"")

        await eventually(gone_on, 30)

"""The service: ready when it has caught up, one of two at work, workspaces from sessions, with its own rights."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import msgspec

from trunkline_bus import kv, mirror
from trunkline_bus.connection import Bus
from trunkline_bus.lease import Lease, read_lease
from trunkline_fold.session import decode_state
from trunkline_projector.app import NAME, run_app
from trunkline_projector.settings import ProjectorSettings
from trunkline_service import Health, Service
from trunkline_testkit import eventually
from trunkline_wire import make_event, subjects
from trunkline_wire.ids import new_session_id
from trunkline_wire.session import SessionErased

from .stage import TIME, WORKSPACE, assert_replay_equals_live, created, live, store, store_event

LEASES = (f"{NAME}.0-63", f"{NAME}.workspaces")


@contextlib.asynccontextmanager
async def service(bus: Bus, home: Path) -> AsyncGenerator[Service[ProjectorSettings]]:
    made = Service("projector", ProjectorSettings(home=home), bus, Health("projector", "0"), asyncio.Event())
    task = asyncio.create_task(run_app(made))
    try:
        yield made
    finally:
        made.stopping.set()
        await asyncio.wait_for(task, 10)


async def report(made: Service[ProjectorSettings]) -> tuple[bool, Any]:
    ready, body = await made.health.report()
    return ready, body.get("role")


async def test_ready_means_that_the_backlog_is_stored(bus: Bus, home: Path) -> None:
    session = new_session_id()
    await live(bus, session, 2)
    async with service(bus, home) as made:

        async def ready() -> bool:
            return await report(made) == (True, "at work")

        await eventually(ready)
        shown = await mirror.fetch(bus, subjects.KV_SESSIONS, session, decode_state)
        assert shown is not None
        assert shown.state.turns == 2
    await assert_replay_equals_live(bus)
    for lease in LEASES:
        assert await read_lease(bus, lease) is None, "given back at the end"


async def test_another_one_stands_by_and_takes_over(bus: Bus, home: Path) -> None:
    rivals = [Lease(bus, lease, {"node": "another machine", "pid": 1}, 10.0) for lease in LEASES]
    for rival in rivals:
        assert await rival.acquire()
    session = new_session_id()
    async with service(bus, home) as made:

        async def stands_by() -> bool:
            return await report(made) == (True, "standing by")

        await eventually(stands_by)
        await live(bus, session, 1)
        assert await mirror.edition(bus, subjects.KV_SESSIONS) is None
        for rival in rivals:
            await rival.release()

        async def shown() -> bool:
            return await mirror.fetch(bus, subjects.KV_SESSIONS, session, decode_state) is not None

        await eventually(shown)
        assert await report(made) == (True, "at work")


async def test_the_lease_of_a_process_that_is_gone_is_not_waited_for(bus: Bus, home: Path) -> None:
    import platform

    gone = await asyncio.create_subprocess_exec("true")
    await gone.wait()
    dead = Lease(bus, LEASES[0], {"node": platform.node(), "pid": gone.pid}, 10.0)
    assert await dead.acquire()
    async with asyncio.timeout(5), service(bus, home) as made:

        async def at_work() -> bool:
            _ready, body = await made.health.report()
            return body.get("parts") == ["0-63", "workspaces"]

        await eventually(at_work, 4)
    await dead.release()


async def test_workspaces_follow_their_sessions(bus: Bus, home: Path) -> None:
    first, second, elsewhere = new_session_id(), new_session_id(), new_session_id()
    await live(bus, first, 1)
    await store(bus, elsewhere, created("ws_" + "b" * 32), seq=1, epoch=1)
    async with service(bus, home):
        await eventually(lambda: _sessions(bus, {first}))
        await store(bus, second, created(), seq=1, epoch=1)
        await eventually(lambda: _sessions(bus, {first, second}))
        for session in (first, second):
            await store_event(bus, make_event(SessionErased(by="operator"), session=session, time=TIME))
        await eventually(lambda: _sessions(bus, set()))
        assert {entry.key for entry in await kv.entries(bus, subjects.KV_WORKSPACES)} == {"ws_" + "b" * 32}


async def _sessions(bus: Bus, expected: set[str]) -> bool:
    entry = await kv.get(bus, subjects.KV_WORKSPACES, WORKSPACE)
    value = entry.value if entry is not None else None
    listed = msgspec.json.decode(value)["sessions"] if value is not None else []
    return {one["session"] for one in listed} == expected

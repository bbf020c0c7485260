"""A host is lost for good: its sessions for `any` place go on elsewhere, those bound to it do not."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.integration.agentkit.conftest import Host, Start
from tests.integration.agentkit.hand import Hand, those

from trunkline_adapters.app import host_id
from trunkline_agentkit import homeless
from trunkline_bus import kv
from trunkline_bus.connection import Bus
from trunkline_bus.projection import Projection
from trunkline_projector.sessions import SessionsView
from trunkline_testkit.processes import assert_no_orphans
from trunkline_wire import subjects


async def forget_workers(hand: Hand, host: str) -> None:
    """What the server does by itself within 30 s: who no longer says that it is there is forgotten."""
    for entry in await kv.entries(hand.bus, subjects.KV_WORKERS):
        if entry.value is not None and host.encode() in entry.value:
            await kv.delete(hand.bus, subjects.KV_WORKERS, entry.key)


@pytest_asyncio.fixture(params=["projected", "from the log"])
async def projection(request: pytest.FixtureRequest, bus: Bus) -> AsyncIterator[None]:
    """What other hosts look at first, where there is a projector."""
    projecting = asyncio.create_task(Projection(bus, SessionsView(), "test").run())
    if request.param == "from the log":
        projecting.cancel()
    yield
    projecting.cancel()
    await asyncio.wait({projecting})


@pytest.mark.usefixtures("projection")
async def test_what_it_left_in_mid_turn_and_what_it_was_told_later_is_done_by_another(
    hand: Hand, start_worker: Start, run_host: Host, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(homeless, "GRACE", 0.1)
    monkeypatch.setattr(homeless, "EVERY", 0.2)
    lost, other = tmp_path / "lost", host_id(home)
    worker = await start_worker(TRUNKLINE_HOME=str(lost), TRUNKLINE_ADAPTERS_LEASE_TTL="3")
    running, idle = await hand.create(), await hand.create()
    bound = await hand.create(host=host_id(lost))
    await hand.prompt(idle, "say before")
    await hand.has(idle, "turn.completed")
    for session in (running, bound):
        await hand.prompt(session, "say before; slow")
        await hand.has(session, "message.assistant")

    await run_host()
    worker.kill()
    await worker.wait()
    await forget_workers(hand, host_id(lost))
    told = await hand.prompt(idle, "say after")

    events = await hand.has(running, "turn.completed", outcome="aborted")
    assert [(claim.epoch, claim.data.host) for claim in those(events, "session.claimed")] == [(2, other)]
    events = await hand.has(idle, "command.finished", command=told)
    assert those(events, "session.claimed")[-1].data.host == other
    assert those(await hand.events(bound), "session.claimed") == []
    for session in (running, idle, bound):
        await hand.verify(session)
    await assert_no_orphans("TRUNKLINE_SESSION", bound)

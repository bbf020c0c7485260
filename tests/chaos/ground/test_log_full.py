"""The log at its limit: no new turn from 85 % on, running turns end from 95 % on, and with more room all goes on."""

from pathlib import Path

import pytest
from tests.chaos.ground.conftest import as_administrator, demo_session, verified

from trunkline_bus import capacity, jsapi, topology
from trunkline_bus.connection import Bus
from trunkline_testkit import eventually
from trunkline_testkit.product import Client, Product
from trunkline_wire import TrunklineError, subjects

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(240)]

LOOK_S = capacity.EVERY_S + 20
"""Seconds in which every process has looked at the log again, on a busy machine."""


async def limit_to(bus: Bus, share: float) -> None:
    """Sets the log's limit so that `share` of it is in use."""
    info = await jsapi.stream_info(bus.js, subjects.EVENTS)
    assert info is not None
    await topology.apply(bus.js, max_bytes=int(info["state"]["bytes"] / share))


async def is_refused(client: Client, session: str) -> bool:
    """Whether the gateway takes no prompt."""
    try:
        await client.call("session.prompt", session=session, text="say no")
    except TrunklineError as error:
        return error.code == "log_full"
    return False


async def begins(client: Client, session: str, text: str) -> None:
    """Prompts until neither the gateway nor the worker thinks that the log is full; returns once the turn has begun."""

    async def begun() -> bool:
        turns = len(client.events("turn.started", session))
        try:
            command = (await client.call("session.prompt", session=session, text=text))["command"]
        except TrunklineError as error:
            if error.code != "log_full":
                raise
            return False
        await eventually(lambda: [e for e in client.events(session=session) if e["data"].get("command") == command], 30)
        if any(e["data"]["command"] == command for e in client.events("command.rejected", session)):
            return False
        await client.wait("turn.started", session=session, count=turns + 1, within=30)
        return True

    await eventually(begun, LOOK_S, interval=0.5)


async def test_decisions_and_endings_have_the_rest_of_the_room(product: Product, tmp_path: Path) -> None:
    await product.start()
    async with await product.client() as client, as_administrator(product) as admin:
        session = await demo_session(client, tmp_path)
        await client.call("session.prompt", session=session, text="big 200000; big 200000; big 200000; ask ls; say one")
        ask = await client.wait("permission.requested", within=60)

        # 85 %: an ask is decided and its turn ends; no other turn begins.
        idle = await demo_session(client, tmp_path)
        await limit_to(admin, 0.88)
        await eventually(lambda: is_refused(client, idle), LOOK_S, interval=0.5)
        await client.call("ask.answer", session=session, ask=ask["data"]["ask"], behaviour="allow")
        await client.wait("ask.decided", within=30)
        ended = await client.wait("turn.completed", session=session, within=30)
        assert ended["data"]["outcome"] == "success"
        assert await is_refused(client, session)
        with pytest.raises(TrunklineError, match="log_full"):
            await client.call("session.create", adapter="demo", cwd=str(tmp_path))

        # 95 %: what runs is interrupted, and says why.
        await topology.apply(admin.js, max_bytes=1024**3)
        await begins(client, session, "slow 2000")
        await limit_to(admin, 0.955)
        refusal = await client.wait("error", lambda e: e["data"]["code"] == "log_full", within=LOOK_S)
        assert refusal["data"]["message"]
        ended = await client.wait("turn.completed", session=session, count=2, within=30)
        assert ended["data"]["outcome"] == "interrupted"

        # 100 %: even an ending waits, and is there once there is room.
        await limit_to(admin, 0.9999)
        closing = await client.call("session.close", session=session, within=30)
        assert closing
        await topology.apply(admin.js, max_bytes=1024**3)
        await client.wait("session.closed", session=session, within=LOOK_S)
        done = len(client.events("turn.completed", idle))
        await begins(client, idle, "say two")
        await client.wait("turn.completed", session=idle, count=done + 1, within=60)
    await verified(product, session)
    await verified(product, idle)

"""A client that sends a command again, over whichever gateway still lives, gets the first outcome."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from trunkline_testkit.chaos.stage import Part, Stage
from trunkline_testkit.nats import NatsServer
from trunkline_testkit.product import Client
from trunkline_wire import TrunklineError
from trunkline_wire.ids import new_command_id, new_session_id

pytestmark = pytest.mark.chaos


class Two:
    """A client of each of two gateways; `second` is asked from when on the first has been killed."""

    def __init__(self, gateway: Part, first: Client, second: Client, home: Path) -> None:
        self.gateway, self.first, self.second, self.home = gateway, first, second, home

    async def create(self, prompt: str) -> str:
        session = new_session_id()
        await self.second.call(
            "session.create", session=session, adapter="demo", cwd=str(self.home), options={"prompt": prompt}
        )
        await self.second.subscribe(session, start="start")
        await self.second.wait("turn.started", session=session)
        return session

    def outcomes(self, session: str, command: str) -> list[str]:
        ends = {"command.finished", "command.failed", "command.rejected"}
        seen = self.second.events(session=session)
        return [e["type"] for e in seen if e["type"] in ends and e["data"]["command"] == command]


@pytest_asyncio.fixture
async def two(chaos_home: Path) -> AsyncIterator[Two]:
    async with Stage(NatsServer(sync_interval="always"), chaos_home) as stage, AsyncExitStack() as stack:
        await stage.start("adapters", wait=False, only="demo")
        gateways = [await stage.start("gateway", wait=False) for _ in range(2)]
        for part in stage.parts.values():
            await part.ready()
        clients = [await stack.enter_async_context(await gateway.client()) for gateway in gateways]
        yield Two(gateways[0], clients[0], clients[1], chaos_home)


async def test_a_repeated_id_gets_the_first_outcome_over_any_gateway(two: Two) -> None:
    session = await two.create("silent")
    commands: dict[str, tuple[str, dict[str, Any]]] = {
        "set_model": ("session.command", {"verb": "set_model", "args": {"model": "demo-large"}}),
        "unknown model": ("session.command", {"verb": "set_thinking", "args": {"level": "high"}}),
        "interrupt": ("session.interrupt", {}),
        "close": ("session.close", {}),
    }
    ids = {name: new_command_id() for name in commands}
    outcomes: dict[str, str] = {}
    for name, (method, params) in commands.items():
        answers = await asyncio.gather(
            *(
                client.call(method, session=session, id=ids[name], wait=True, **params)
                for client in (two.first, two.second)
            )
        )
        assert len({answer["outcome"] for answer in answers}) == 1
        outcomes[name] = answers[0]["outcome"]
    assert outcomes == {
        "set_model": "finished",
        "unknown model": "rejected",
        "interrupt": "finished",
        "close": "finished",
    }
    await two.second.wait("session.closed", session=session)

    two.gateway.kill()
    for name, (method, params) in commands.items():
        again = await two.second.call(method, session=session, id=ids[name], wait=True, **params)
        assert again["outcome"] == outcomes[name], name
        assert len(two.outcomes(session, ids[name])) == 1

    with pytest.raises(TrunklineError, match="session_closed"):
        await two.second.call("session.prompt", session=session, text="too late")

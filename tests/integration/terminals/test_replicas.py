"""One terminal, looked at and typed into through two gateways."""

import shutil
import tempfile
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest
from tests.integration.terminals.looking import Looking

from trunkline_testkit import eventually
from trunkline_testkit.chaos.stage import Part, Stage
from trunkline_testkit.nats import NatsServer
from trunkline_testkit.product import Client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


@pytest.fixture
def home() -> Iterator[Path]:
    """A short path, for unix sockets."""
    made = Path(tempfile.mkdtemp(prefix="tl-"))
    yield made
    shutil.rmtree(made)


@pytest.fixture
async def gateways(home: Path) -> AsyncGenerator[list[Part]]:
    async with Stage(NatsServer(), home) as stage:
        for service in ("adapters", "projector", "permissions"):
            await stage.start(service)
        yield [await stage.start("gateway", name=f"gateway{n}") for n in (1, 2)]


async def look(gateway: Part, session: str) -> Looking:
    viewer = await Looking.connect("http://localhost", session, socket=gateway.socket)
    await viewer.until(lambda: viewer.paintings > 0)
    return viewer


async def test_who_types_through_one_gateway_is_seen_and_relieved_through_the_other(
    gateways: list[Part], tmp_path: Path
) -> None:
    first, second = gateways
    async with await Client.connect("http://localhost", socket=first.socket) as client:
        session = (await client.call("session.create", adapter="pty", agent="shell", cwd=str(tmp_path)))["session"]
        await client.call("terminal.open", session=session)
    async with await look(second, session) as other:
        async with await look(first, session) as one:
            await one.take()
            await one.type("echo fir's't\r")
            await one.shows("first")
            await other.shows("first")
            await one.say("resize", columns=100, rows=30)
            await other.until(lambda: other.state.get("columns") == 100)
            await other.say("take")
            await other.until(lambda: "terminal_taken" in other.errors)
            await other.take(force=True)
            await one.until(lambda: not one.writes)
            await one.type("echo no\r")
            await other.type("echo seco'n'd\r")
            await one.shows("second")
            await eventually(lambda: one.screen.text == other.screen.text)
            # The first gateway dies: its viewers are gone, the second one's go on.
            first.kill()
            await one.until(lambda: one.said[-1]["type"] == "closed")
        await other.type("echo thi'r'd\r")
        await other.shows("third")
        assert "echo no" not in other.screen.text
        await first.restart()
        async with await look(first, session) as again:
            await again.shows("third")
            await again.take(force=True)
            await again.type("echo four't'h\r")
            await other.shows("fourth")

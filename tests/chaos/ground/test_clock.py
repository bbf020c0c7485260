"""The wall clock of all services is wrong, and jumps: what counts is the server's clock, or a steady one."""

import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.chaos.ground.conftest import demo_session, verified

from trunkline_testkit.product import Client, Product
from trunkline_wire.ids import new_command_id

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(240)]

HOUR = 3600
POLICY = '[[rule]]\nname = "soon"\naction = "ask"\nexpires_after = 900\non_expiry = "deny"\n'


@pytest.fixture
def shift(product: Product, tmp_path: Path) -> Callable[[int], None]:
    """Puts the wall clock of the product's services ahead of the real one by some seconds; nats-server's stays right."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler: a wrong wall clock is a small library, compiled here and preloaded")
    library, offset = tmp_path / "wall_clock.so", tmp_path / "offset"
    source = Path(__file__).with_name("wall_clock.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source)], check=True)
    product.environment |= {"LD_PRELOAD": str(library), "WALL_CLOCK_OFFSET": str(offset)}

    def set_to(seconds: int) -> None:
        fresh = offset.with_suffix(".new")
        fresh.write_text(str(seconds))
        fresh.replace(offset)

    set_to(0)
    return set_to


def early_id(seconds: int) -> str:
    """A command id as a client with a clock that is `seconds` late mints it."""
    milliseconds = int((time.time() - seconds) * 1000)
    return f"cmd_{milliseconds:012x}{new_command_id()[16:]}"


async def a_life(client: Client, session: str, name: str) -> None:
    """A prompt, an interruption, and their outcomes."""
    turns = len(client.events("turn.completed", session))
    await client.call("session.prompt", session=session, text=f"say {name}")
    await client.wait("turn.completed", session=session, count=turns + 1, within=60)
    await client.call("session.prompt", session=session, text="slow 2000")
    await client.wait("turn.started", session=session, count=turns + 2, within=60)
    await client.call("session.interrupt", session=session)
    ended = await client.wait("turn.completed", session=session, count=turns + 2, within=60)
    assert ended["data"]["outcome"] == "interrupted"


async def test_nothing_expires_by_a_wall_clock_that_is_wrong(
    product: Product, shift: Callable[[int], None], tmp_path: Path
) -> None:
    product.trunkline_home.mkdir(parents=True)
    (product.trunkline_home / "policy.toml").write_text(POLICY)
    shift(HOUR)
    await product.start()
    async with await product.client() as client:
        session = await demo_session(client, tmp_path)
        await a_life(client, session, "ahead")
        claimed = (await client.wait("session.created", session=session))["time"]
        assert claimed > time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() + HOUR / 2))

        await client.call("session.prompt", session=session, text="ask ls")
        ask = await client.wait("permission.requested", session=session, within=60)
        routed = await client.wait("ask.routed", session=session, within=30)
        left = routed["data"]["expires_at"]
        assert left < time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() + HOUR / 2))

        # An hour forth and two back, while the ask is open and its 15 minutes run.
        for wrong in (2 * HOUR, -HOUR):
            shift(wrong)
            other = await demo_session(client, tmp_path)
            await a_life(client, other, "jumped")
            assert client.events("ask.expired", session) == []
        await client.call("ask.answer", session=session, ask=ask["data"]["ask"], behaviour="allow")
        decided = await client.wait("ask.decided", session=session, within=30)
        assert decided["data"]["behaviour"] == "allow"
        await client.wait("turn.completed", session=session, count=3, within=60)

        # A client's clock counts only for its own ids: late by an hour they are taken, by more than a day they are not.
        await client.call("session.prompt", session=session, text="say late", id=early_id(HOUR))
        await client.wait("turn.completed", session=session, count=4, within=60)
        await client.call("session.prompt", session=session, text="say later", id=early_id(25 * HOUR))
        rejected = await client.wait("command.rejected", session=session, within=30)
        assert rejected["data"]["error"]["code"] == "expired"
        await client.call("session.prompt", session=session, text="say early", id=early_id(-HOUR))
        await client.wait("turn.completed", session=session, count=5, within=60)
    await verified(product, session)
    assert "ended with status" not in product.output()

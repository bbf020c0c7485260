"""The disk under the log is full: noticed, named, waited out, and nothing that was acknowledged is lost."""

from pathlib import Path

import pytest
from tests.chaos.ground.conftest import Disk, demo_session, verified

from trunkline_testkit import eventually
from trunkline_testkit.product import Product

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(240)]


async def test_the_disk_of_the_whole_home_is_full_in_mid_turn(
    product: Product, small_disk: Disk, tmp_path: Path
) -> None:
    product.trunkline_home = small_disk.path / ".trunkline"
    product.environment["TRUNKLINE_HOME"] = str(product.trunkline_home)
    await product.start()
    async with await product.client() as client:
        session = await demo_session(client, tmp_path)
        await client.call("session.prompt", session=session, text="say one; slow 200; say two")
        await client.wait("message.delta", lambda e: "10" in e["data"]["text"], within=30)
        small_disk.fill()
        await eventually(lambda: "the log takes no writes" in product.output(), 30)
        small_disk.make_room()
        await eventually(lambda: "there is room for the log again" in product.output(), 30)
    async with await product.client_when_up(within=60) as client:
        await client.subscribe(session, start="start")
        await client.wait("turn.completed", within=90)
        await client.call("session.prompt", session=session, text="say three")
        await client.wait("turn.completed", lambda e: e["data"]["outcome"] == "success", count=1, within=60)
        await client.wait("message.assistant", lambda e: "three" in str(e["data"]["content"]), within=60)
    await verified(product, session)

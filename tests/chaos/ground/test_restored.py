"""An older copy of the store is put back: whoever had seen more is told so, and the log goes on from where the copy ends."""

import shutil
from pathlib import Path

import pytest
from tests.chaos.ground.conftest import demo_session, verified

from trunkline_testkit.product import Client, Product

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(240)]


async def say(client: Client, session: str, word: str) -> None:
    """A turn of the demo agent that says `word`, seen to its end."""
    done = len(client.events("turn.completed", session))
    await client.call("session.prompt", session=session, text=f"say {word}", within=60)
    await client.wait("turn.completed", session=session, count=done + 1, within=60)


async def test_a_cursor_from_beyond_the_copy_is_a_gap_and_the_session_goes_on(product: Product, tmp_path: Path) -> None:
    store, copy = product.trunkline_home / "nats" / "store", tmp_path / "copy"
    await product.start()
    async with await product.client() as client:
        session = await demo_session(client, tmp_path)
        await say(client, session, "kept")
        early = client.cursor
    await product.stop()
    shutil.copytree(store, copy)

    await product.start()
    async with await product.client() as client:
        await client.subscribe(session, start="start")
        await client.wait("turn.completed", within=30)
        await say(client, session, "lost")
        late = client.cursor
    await product.stop()
    shutil.rmtree(store)
    shutil.copytree(copy, store)

    await product.start()
    async with await product.client() as client:
        opened = await client.subscribe(session, cursor=late)
        assert opened["gap"]["reason"] == "log_diverged"
        assert opened["snapshot"]["state"]["seq"] > 0
    async with await product.client() as client:
        assert "gap" not in await client.subscribe(session, cursor=early)
        await say(client, session, "afterwards")
    # Who tells Trunkline of it has every cursor end, also one from before the copy: its holder may have seen what is lost.
    assert (await product.cli("topology", "apply", "--restored"))[0] == 0
    async with await product.client() as client:
        opened = await client.subscribe(session, cursor=early)
        assert opened["gap"]["reason"] == "log_diverged"
    async with await product.client() as client:
        await client.subscribe(session, start="start")
        await client.wait("turn.completed", count=2, within=30)
        said = [str(event["data"]["content"]) for event in client.events("message.assistant", session)]
        assert any("kept" in text for text in said)
        assert any("afterwards" in text for text in said)
        assert not any("lost" in text for text in said)
    await verified(product, session)

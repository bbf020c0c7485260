"""The stream of streaming text is lost: it is made anew, no finished text is missing, and every cursor stays good."""

import asyncio
import shutil
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.chaos.ground.conftest import as_administrator, demo_session, verified

from trunkline_bus import jsapi
from trunkline_testkit import eventually
from trunkline_testkit.product import Client, Product
from trunkline_wire import subjects

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(240)]

MADE_ANEW = "the stream of streaming text was lost; it is there again"


async def streamed(client: Client, session: str, word: str) -> None:
    """A turn whose text is seen while it is streamed, and complete at its end."""
    turns = len(client.events("turn.completed", session))
    deltas = len(client.events("message.delta", session))
    await client.call("session.prompt", session=session, text=f"slow 40; say {word}")
    await client.wait("message.delta", session=session, count=deltas + 2, within=60)
    await client.wait("turn.completed", session=session, count=turns + 1, within=60)
    assert any(word in str(e["data"]["content"]) for e in client.events("message.assistant", session))


async def deleted(product: Product) -> None:
    """By an operator's mistake."""
    async with as_administrator(product) as admin:
        await jsapi.request(admin.js, f"STREAM.DELETE.{subjects.DELTAS}")


async def removed(product: Product) -> None:
    """Its directory is gone when the server starts again."""
    assert product.process is not None
    product.process.send_signal(signal.SIGSTOP)
    try:
        old = product.kill("nats-server")
        (directory,) = (product.trunkline_home / "nats" / "store").rglob(f"streams/{subjects.DELTAS}")
        await asyncio.to_thread(shutil.rmtree, directory)
    finally:
        product.process.send_signal(signal.SIGCONT)
    await product.restarted("nats-server", old)


@pytest.mark.parametrize("lose", [deleted, pytest.param(removed, marks=pytest.mark.long)])
async def test_it_is_made_anew_in_mid_turn(
    product: Product, tmp_path: Path, lose: Callable[[Product], Awaitable[None]]
) -> None:
    await product.start()
    async with await product.client() as client:
        session = await demo_session(client, tmp_path)
        await streamed(client, session, "before")
        cursor = client.cursor
        assert cursor is not None
        await client.call("session.prompt", session=session, text="slow 60; say meanwhile")
        await client.wait("turn.started", count=2, within=30)
        await lose(product)
        await eventually(lambda: MADE_ANEW in product.output(), 30)
        # The turn that ran meanwhile is complete: its facts never were in that stream.
        async with await product.client_when_up() as again:
            opened = await again.subscribe(session, cursor=cursor)
            assert "gap" not in opened
            await again.wait("turn.completed", within=60)
            texts = [e["data"]["content"][0]["text"] for e in again.events("message.assistant")]
            assert texts == [" ".join(f"word{n}" for n in range(60)), "meanwhile"]
            await streamed(again, session, "after")
    await verified(product, session)

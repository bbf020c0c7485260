"""The store of nats-server is an older copy of itself: a restored volume, a power cut. Sequences are given out anew."""

import asyncio
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.chaos.ground.conftest import demo_session, verified

from trunkline_testkit.product import Client, Product

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(240)]


async def put_back(product: Product, copy: Path, *, streams: tuple[str, ...] = ()) -> None:
    """Replaces the store (or only some streams of it) by the copy, under the feet of all services."""
    store = product.trunkline_home / "nats" / "store"
    assert product.process is not None
    product.process.send_signal(signal.SIGSTOP)
    old = product.kill("nats-server")
    await asyncio.to_thread(_replace, store, copy, streams)
    product.process.send_signal(signal.SIGCONT)
    await product.restarted("nats-server", old)


def _replace(store: Path, copy: Path, streams: tuple[str, ...]) -> None:
    if not streams:
        shutil.rmtree(store)
        shutil.copytree(copy, store)
        return
    for name in streams:
        (there,) = store.rglob(f"streams/{name}")
        (here,) = copy.rglob(f"streams/{name}")
        shutil.rmtree(there)
        shutil.copytree(here, there)


async def copy_of_the_store(product: Product, to: Path) -> None:
    """As a snapshot of the volume would be: all at one moment."""
    server = product.find("nats-server")
    assert server is not None
    server.suspend()
    try:
        await asyncio.to_thread(shutil.copytree, product.trunkline_home / "nats" / "store", to)
    finally:
        server.resume()


async def turn(client: Client, session: str, text: str) -> None:
    await client.call("session.prompt", session=session, text=f"say {text}")
    await client.wait("message.assistant", lambda e: text in str(e["data"]["content"]), session=session, within=60)
    done = len(client.events("turn.started", session))
    await client.wait("turn.completed", session=session, count=done, within=60)


def said(events: list[dict[str, Any]]) -> list[str]:
    return [
        e["data"]["content"][0]["text"] for e in events if e["type"] == "message.assistant" and e["data"]["content"]
    ]


@pytest.mark.parametrize(
    ("streams", "texts"),
    [
        pytest.param((), ["one", "three"], id="the whole store"),
        # The prompt is still in the stream of commands, and no log says that it was taken.
        pytest.param(("EVENTS",), ["one", "two", "three"], id="the log alone", marks=pytest.mark.long),
    ],
)
async def test_clients_are_told_and_sessions_go_on(
    product: Product, tmp_path: Path, streams: tuple[str, ...], texts: list[str]
) -> None:
    await product.start()
    async with await product.client() as client:
        kept = await demo_session(client, tmp_path)
        await turn(client, kept, "one")
        await copy_of_the_store(product, tmp_path / "copy")
        await turn(client, kept, "two")
        cursor = client.cursor
        assert cursor is not None
        async with await product.client() as other:
            lost = await demo_session(other, tmp_path)
            await turn(other, lost, "lost")

        await put_back(product, tmp_path / "copy", streams=streams)

    async with await product.client_when_up() as client:
        await client.subscribe(kept, cursor=cursor)
        gap = await client.wait("gap", within=30)
        assert gap["reason"] == "log_diverged"
        await turn(client, kept, "three")
        shown = await client.call("session.get", session=kept)
        listed = await client.call("session.list")
        async with await product.client() as anew:
            await anew.subscribe(kept, start="start")
            await anew.wait("message.assistant", lambda e: "three" in str(e["data"]["content"]))
            await anew.wait("turn.completed", count=len(anew.events("turn.started")))
            assert said(anew.events()) == texts
            assert shown["state"]["turns"] == len(anew.events("turn.started"))
        assert [s["session"] for s in listed["sessions"]] == [kept]
    await verified(product, kept)

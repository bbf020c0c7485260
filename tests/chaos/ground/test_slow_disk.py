"""A server that stands still, as one on a slow disk does: the worker's queue is bounded, and nothing is lost or out of order."""

import re
from pathlib import Path

import aiohttp
import psutil
import pytest
from tests.chaos.ground.conftest import demo_session, verified

from trunkline_bus.writer import QUEUE_LIMIT
from trunkline_testkit import eventually
from trunkline_testkit.product import Product

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(240)]

SIZE = 200_000
COUNT = 60
"""Messages that are, with the agent's own lines beside them, three times what the queue may hold."""


async def queued(worker: psutil.Process) -> float:
    """Bytes that the worker holds for the log, by its own metrics."""
    port = worker.environ()["TRUNKLINE_HTTP_PORT"]
    async with aiohttp.ClientSession() as http, http.get(f"http://127.0.0.1:{port}/metrics") as answer:
        found = re.search(r"^trunkline_append_queue_bytes (\S+)$", await answer.text(), re.MULTILINE)
    assert found
    return float(found[1])


async def test_what_the_log_does_not_take_is_not_read_from_the_agent(product: Product, tmp_path: Path) -> None:
    await product.start()
    server, worker = product.find("nats-server"), product.find("adapters")
    assert server is not None
    assert worker is not None
    async with await product.client() as client:
        session = await demo_session(client, tmp_path)
        await client.call("session.prompt", session=session, text="; ".join(["slow 20", *[f"big {SIZE}"] * COUNT]))
        await client.wait("message.delta", session=session, within=60)
        server.suspend()
        try:

            async def full() -> bool:
                return await queued(worker) >= QUEUE_LIMIT

            await eventually(full, 30)
            # The agent goes on writing, and what it says stays in its pipe: however often one looks.
            assert QUEUE_LIMIT <= max([await queued(worker) for _ in range(100)]) < QUEUE_LIMIT + 4 * SIZE
        finally:
            server.resume()
        ended = await client.wait("turn.completed", session=session, within=90)
        assert ended["data"]["outcome"] == "success"
        said = [e for e in client.events("message.assistant", session) if len(str(e["data"]["content"])) > SIZE]
        assert len(said) == COUNT
        numbers = [e["seq"] for e in client.events(session=session) if e.get("seq") is not None]
        assert numbers == list(range(1, len(numbers) + 1))
    await verified(product, session)

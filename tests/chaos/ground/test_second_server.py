"""Nobody shares a store: a second instance, a bare server, and one that starts while a killed one's server still lives."""

from pathlib import Path

import psutil
import pytest
from tests.chaos.ground.conftest import demo_session, verified

from trunkline_bus.server import EmbeddedServer, ServerSettings
from trunkline_testkit.product import Product
from trunkline_wire import TrunklineError

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.mark.long
async def test_a_store_has_one_server(product: Product, tmp_path: Path) -> None:
    await product.start()
    server = product.find("nats-server")
    assert server is not None
    async with await product.client() as client:
        session = await demo_session(client, tmp_path)
        await client.call("session.prompt", session=session, text="say one")
        await client.wait("turn.completed", within=60)

        code, _, err = await product.cli("up", "--port", "0")
        assert code == 1
        assert err.startswith("error: already_running:")
        with pytest.raises(TrunklineError) as refused:
            await EmbeddedServer(ServerSettings(directory=product.trunkline_home / "nats")).start()
        assert refused.value.code == "already_running"
        assert refused.value.details["pid"] == server.pid
        await client.call("session.prompt", session=session, text="say two")
        await client.wait("turn.completed", count=2, within=60)

    # The supervisor is killed, and its server hangs: the next start ends it before it takes the store.
    server.suspend()
    assert product.process is not None
    product.process.kill()
    await product.process.wait()
    await product.start()
    assert not server.is_running() or server.status() == psutil.STATUS_ZOMBIE
    async with await product.client() as client:
        await client.subscribe(session, start="start")
        await client.wait("turn.completed", count=2, within=30)
        await client.call("session.prompt", session=session, text="say three")
        await client.wait("turn.completed", count=3, within=60)
    await verified(product, session)


async def test_a_server_that_outlives_its_supervisor_keeps_its_store(product: Product) -> None:
    """Where the kernel does not tell it of its parent's death, the lock that it holds itself keeps others out."""
    product.home.mkdir(parents=True)
    survivor = EmbeddedServer(ServerSettings(directory=product.trunkline_home / "nats"))
    await survivor.start()
    try:
        code, _, err = await product.cli("up", "--port", "0")
        assert code == 1
        assert "error: already_running: another nats-server holds the store" in err
        assert survivor.running
    finally:
        await survivor.stop()

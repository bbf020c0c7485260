"""Encryption at rest: what is stored can be read through the server with its key, and found in no file."""

from pathlib import Path

import pytest
from tests.integration.operations.sessions import session

from trunkline_bus import jsapi, kv, topology
from trunkline_bus.blobs import Blobs
from trunkline_bus.connection import Bus, BusSettings
from trunkline_bus.reader import read_session
from trunkline_bus.server import EmbeddedServer, ServerSettings
from trunkline_testkit.nats import NatsServer
from trunkline_wire import TrunklineError, subjects

CONFIG = Path(__file__).parents[3] / "deploy" / "nats" / "encryption.conf"
KEY = "correct horse battery staple, and thirty-two more"
SECRET = "hunter2-correct-horse"
LARGE = f"{SECRET} {'x' * 600_000}"


def found_in(store: Path) -> list[str]:
    return [str(path) for path in store.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]


async def fill(bus: Bus) -> str:
    """A session whose secret is in an event, a blob, a value of a bucket."""
    await topology.apply(bus.js, max_bytes=64 * 1024 * 1024)
    await bus.read_log_id()
    made = await session(bus, SECRET, LARGE)
    await Blobs(bus).put(SECRET.encode())
    await kv.put(bus, subjects.KV_TOKENS, "token", SECRET.encode())
    return made


async def test_no_file_holds_what_the_server_stores() -> None:
    with NatsServer(
        jetstream=CONFIG.read_text().splitlines(), environment={"TRUNKLINE_STORE_KEY": f'"{KEY}"'}
    ) as server:
        async with Bus.open(BusSettings(url=server.url)) as bus:
            made = await fill(bus)
        server.terminate()
        assert found_in(server.store) == []
        server.start()
        async with Bus.open(BusSettings(url=server.url)) as bus:
            assert SECRET.encode() in (await read_session(bus, made))[1].raw
        server.terminate()
        # With another key no stream is there; with the right one all are.
        server.environment["TRUNKLINE_STORE_KEY"] = f'"{KEY[::-1]}"'
        server.start()
        async with Bus.open(BusSettings(url=server.url)) as bus:
            assert (await jsapi.request(bus.js, "STREAM.NAMES"))["total"] == 0
        server.terminate()
        server.environment["TRUNKLINE_STORE_KEY"] = f'"{KEY}"'
        server.start()
        async with Bus.open(BusSettings(url=server.url)) as bus:
            assert SECRET.encode() in (await read_session(bus, made))[1].raw


async def test_without_a_key_it_stands_there_in_the_clear() -> None:
    """So that the test above can fail."""
    with NatsServer() as server:
        async with Bus.open(BusSettings(url=server.url)) as bus:
            await fill(bus)
        server.terminate()
        assert len(found_in(server.store)) >= 3


async def test_the_embedded_server_takes_a_key(tmp_path: Path) -> None:
    key = tmp_path / "store.key"
    key.write_text(f"{KEY}\n")
    key.chmod(0o600)
    settings = ServerSettings(directory=tmp_path / "nats", store_key=key)
    async with EmbeddedServer(settings) as server, Bus.open(BusSettings(url=server.url)) as bus:
        made = await fill(bus)
        assert SECRET.encode() in (await read_session(bus, made))[1].raw
    assert found_in(tmp_path / "nats") == []
    assert KEY not in (tmp_path / "nats" / "server.conf").read_text()
    # With another key, or none, streams made anew would stand in the place of those that can't be read: it does not start.
    key.write_text(KEY[::-1])
    for other in (key, None):
        with pytest.raises(TrunklineError, match="another key") as caught:
            await EmbeddedServer(ServerSettings(directory=tmp_path / "nats", store_key=other)).start()
        assert caught.value.code == "bad_settings"


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [("short", 0o600, "or more"), (KEY, 0o644, "chmod 600"), (f'{KEY}"', 0o600, "quotation")],
)
async def test_a_key_that_is_none_is_refused(tmp_path: Path, content: str, mode: int, words: str) -> None:
    key = tmp_path / "store.key"
    key.write_text(content)
    key.chmod(mode)
    with pytest.raises(TrunklineError, match=words) as caught:
        await EmbeddedServer(ServerSettings(directory=tmp_path / "nats", store_key=key)).start()
    assert caught.value.code == "bad_settings"

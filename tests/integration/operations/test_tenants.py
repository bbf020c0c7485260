"""Two tenants on one server: each has a log with the same names, and sees nothing of the other's."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.operations.conftest import trunkline
from tests.integration.operations.sessions import session

from trunkline_bus import jsapi, topology
from trunkline_bus.client import Received
from trunkline_bus.connection import Bus, BusSettings
from trunkline_bus.reader import read, read_session
from trunkline_cli.commands.auth import init
from trunkline_testkit.nats import NatsServer
from trunkline_wire import TrunklineError, subjects

TENANTS = ("acme", "globex")
MB = 1024 * 1024


def server(directory: Path) -> NatsServer:
    """With what `trunkline auth init` makes for both."""
    options = [option for name in TENANTS for option in ("--tenant", name)]
    init.main([str(directory), *options, "--max-store", str(400 * MB)], standalone_mode=False)
    return NatsServer(config=(directory / "accounts.conf").read_text())


async def test_one_tenant_sees_nothing_of_another(tmp_path: Path) -> None:
    with server(tmp_path) as shared:

        def connect(tenant: str, user: str) -> BusSettings:
            return BusSettings(url=shared.url, seed_file=tmp_path / tenant / "keys" / f"{user}.nk")

        ids: dict[str, str] = {}
        for tenant in TENANTS:
            async with Bus.open(connect(tenant, "admin")) as admin:
                await topology.apply(admin.js, max_bytes=64 * MB)
                ids[tenant] = await admin.read_log_id()
        assert ids["acme"] != ids["globex"], "two logs"
        async with (
            Bus.open(connect("acme", "worker")) as writing,
            Bus.open(connect("globex", "admin")) as other,
            Bus.open(connect("globex", "reader")) as reader,
            Bus.open(connect("acme", "reader")) as own_reader,
        ):
            heard: list[str] = []
            own: list[str] = []

            def take(into: list[str]) -> Callable[[Received], None]:
                def taken(message: Received) -> None:
                    into.append(message.subject)

                return taken

            await other.reading.subscribe_direct(">", take(heard))
            await reader.reading.subscribe_direct(subjects.ALL_EVENTS, take(heard))
            await own_reader.reading.subscribe_direct(subjects.ALL_EVENTS, take(own))
            for bus in (other, reader, own_reader):
                await bus.reading.flush()
            made = await session(writing, "of acme alone")
            async with asyncio.timeout(10):
                while len(own) < 3:  # noqa: ASYNC110 - the server's doing
                    await asyncio.sleep(0.01)
            assert [one for one in heard if made in one] == []
            assert await read_session(other, made) == []
            assert await read(other, subjects.EVENTS, [">"]) == []
            assert (await jsapi.request(other.js, "STREAM.INFO.EVENTS"))["state"]["messages"] == 0
            missing = await other.reading.request(f"$JS.API.DIRECT.GET.{subjects.EVENTS}", b'{"seq":1}', timeout=10)
            assert (missing.headers or {})["Status"] == "404"
            limits = (await jsapi.request(other.js, "INFO"))["limits"]
            assert limits["max_storage"] == 400 * MB
        seed = tmp_path / "globex" / "keys" / "admin.nk"
        code, said = await trunkline(shared.url, tmp_path, "verify", seed=seed)
        assert (code, said) == (0, "0 sessions, 0 events: all is well\n")
        code, said = await trunkline(shared.url, tmp_path, "verify", seed=tmp_path / "acme" / "keys" / "projector.nk")
        assert (code, said) == (0, "1 session, 3 events: all is well\n")


async def test_a_key_of_nobody_is_refused(tmp_path: Path) -> None:
    with server(tmp_path / "ours") as shared:
        options = ["--tenant", "acme"]
        init.main([str(tmp_path / "theirs"), *options], standalone_mode=False)
        stranger = tmp_path / "theirs" / "acme" / "keys" / "admin.nk"
        with pytest.raises(TrunklineError) as caught:
            await Bus.open(BusSettings(url=shared.url, seed_file=stranger, connect_within=5))
        assert caught.value.code == "unauthorized"

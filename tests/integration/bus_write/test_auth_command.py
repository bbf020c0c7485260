"""`trunkline auth init`: what it writes is what a nats-server needs, and the services' users with it."""

from pathlib import Path

import pytest

from trunkline_bus import topology
from trunkline_bus.connection import Bus, BusSettings
from trunkline_bus.server import EmbeddedServer, ServerSettings
from trunkline_cli.root import run
from trunkline_testkit.ports import free_port
from trunkline_wire import TrunklineError


async def test_a_server_of_ones_own_takes_the_users(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = tmp_path / "nats"
    assert run(["auth", "init", str(directory)]) == 0
    made = dict(line.split("\t")[:2] for line in capsys.readouterr().out.splitlines())
    accounts = (directory / "accounts.conf").read_text()
    assert all(key in accounts for key in made.values())
    token = (directory / "token").read_text()
    assert token.startswith("trk_")
    assert (directory / "token").stat().st_mode & 0o777 == 0o600
    assert run(["auth", "init", str(directory)]) == 0
    assert (directory / "token").read_text() == token
    again = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert {row[0]: row[1] for row in again} == made
    assert {row[2] for row in again} == {"kept"}
    assert {path.stat().st_mode & 0o777 for path in (directory / "keys").glob("*.nk")} == {0o600}

    settings = ServerSettings(directory=directory, port=free_port(), authorization=accounts)
    async with EmbeddedServer(settings) as server:
        for user in ("admin", "gateway"):
            mine = BusSettings(url=server.url, seed_file=directory / "keys" / f"{user}.nk", name=user)
            async with Bus.open(mine) as bus:
                if user == "admin":
                    await topology.apply(bus.js, max_bytes=64 * 1024 * 1024)
        strangers = tmp_path / "strangers"
        assert run(["auth", "init", str(strangers)]) == 0
        with pytest.raises(TrunklineError):
            async with Bus.open(
                BusSettings(url=server.url, seed_file=strangers / "keys/admin.nk", name="x", connect_within=1.0)
            ):
                pass


def test_rights_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["auth", "show", "reader"]) == 0
    assert "reader\tsubscribe\ttrunk.ev.>" in capsys.readouterr().out.splitlines()
    assert run(["auth", "show", "nobody"]) == 1

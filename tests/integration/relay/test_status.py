"""`trunkline relay status`: whether devices can come to this host, and if not, why."""

import json
from pathlib import Path

from tests.integration.gateway.rig import Rig
from tests.integration.relay.device import talk
from tests.integration.relay.stage import Served, pair
from tests.integration.relay.test_device_cli import Cli

from trunkline_relay.app import Host
from trunkline_testkit import eventually


async def test_a_host_that_is_connected_and_one_that_is_not(rig: Rig, relay: Served, host: Host) -> None:
    trunkline = Cli(rig.home)
    async with talk(await pair(rig.home)):
        code, out, err = await trunkline("relay", "status")
    assert (code, err) == (0, "")
    assert dict(line.split("\t") for line in out.splitlines()) == {
        "connected": "yes",
        "relay": f"{relay.url} (embedded)",
        "host": "box, Trunkline 0.1.0",
        "fingerprint": host.status()["fingerprint"],
        "devices": "1",
        "connections": "1",
    }
    await relay.stop()
    await eventually(lambda: not host.line.ready)
    code, out, _ = await trunkline("relay", "status", "--json")
    said = json.loads(out)
    assert (code, said["connected"], said["kind"], said["url"]) == (1, False, "embedded", relay.url)
    assert said["trouble"] == host.line.trouble
    code, out, _ = await trunkline("relay", "status")
    assert code == 1
    assert out.startswith("connected\tno: ")


async def test_where_no_relay_is_set_up(tmp_path: Path) -> None:
    code, out, err = await Cli(tmp_path)("relay", "status")
    assert (code, out) == (1, "")
    assert err.startswith("error: not_running: the relay's service does not run in ")
    assert "put a table [relay] into" in err

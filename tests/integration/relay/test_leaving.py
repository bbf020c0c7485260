"""`trunkline hosts forget`: the host revokes the device that leaves it, if it can be told."""

import asyncio
from pathlib import Path

from tests.integration.gateway.rig import Rig
from tests.integration.relay.stage import Served, offer
from tests.integration.relay.test_device_cli import Cli

from trunkline_relay.app import Host
from trunkline_testkit import eventually


async def joined(rig: Rig, trunkline: Cli, role: str) -> str:
    """A machine that is paired with the host as `box`; its device."""
    async with offer(rig.home, role=role) as asked:
        link = (await asked.next())["link"]
        joining = asyncio.create_task(trunkline("pair", "join", "--as", "box", given=f"{link}\n"))
        assert (await asked.next())["type"] == "arrived"
        asked.say({"agree": True})
        code, _, err = await joining
        assert code == 0, err
        return (await asked.next())["device"]


async def devices(rig: Rig) -> list[str]:
    async with await rig.client() as owner:
        return [one["id"] for one in (await owner.call("device.list"))["devices"]]


async def test_a_viewer_leaves_and_the_host_has_another_identity(rig: Rig, host: Host, tmp_path: Path) -> None:
    trunkline = Cli(tmp_path / "device")
    before = host.devices.host.newest.public
    device = await joined(rig, trunkline, "viewer")
    assert await devices(rig) == [device]
    assert await trunkline("hosts", "forget", "box") == (0, "forgotten, here and at box\n", "")
    assert await devices(rig) == []
    assert list((tmp_path / "device" / "hosts").iterdir()) == []
    await eventually(lambda: host.devices.host.newest.public != before)


async def test_a_device_that_the_host_has_revoked_before(rig: Rig, host: Host, tmp_path: Path) -> None:
    trunkline = Cli(tmp_path / "device")
    device = await joined(rig, trunkline, "owner")
    async with await rig.client() as owner:
        await owner.call("device.revoke", id=device)
    await eventually(lambda: not host.devices.known)
    assert await trunkline("hosts", "forget", "box") == (0, "forgotten, here and at box\n", "")


async def test_a_host_that_can_not_be_told(rig: Rig, host: Host, relay: Served, tmp_path: Path) -> None:
    trunkline = Cli(tmp_path / "device")
    device = await joined(rig, trunkline, "owner")
    await relay.stop()
    code, out, err = await trunkline("hosts", "forget", "box")
    assert (code, out) == (0, "")
    assert err.startswith("forgotten here, but box could not be told (")
    assert f"still lists this device: `trunkline devices revoke {device}` there ends that" in err
    assert list((tmp_path / "device" / "hosts").iterdir()) == []
    assert await devices(rig) == [device]
    assert list(host.devices.known) == [device]

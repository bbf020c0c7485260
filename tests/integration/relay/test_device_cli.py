"""The command line as a device: it pairs by a link, goes to a host by its name, and signs what it decides."""

import asyncio
import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

from tests.integration.gateway.rig import Rig, ask, begin_turn
from tests.integration.relay.scripted_host import ScriptedHost, gateway_at, relay_here


class Cli:
    """`trunkline` in a process of its own, on a machine where nothing else of Trunkline is."""

    def __init__(self, home: Path) -> None:
        self.home = home

    async def __call__(self, *arguments: str, given: str = "", **more: str) -> tuple[int, str, str]:
        hidden = ("TRUNKLINE_URL", "TRUNKLINE_TOKEN", "TRUNKLINE_HOST")
        environment = {name: value for name, value in os.environ.items() if name not in hidden}
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "trunkline_cli",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**environment, "TRUNKLINE_HOME": str(self.home), **more},
        )
        out, err = await process.communicate(given.encode())
        assert process.returncode is not None
        return process.returncode, out.decode(), err.decode()


def registers(rig: Rig) -> Any:
    """What the person at the host says: yes, and the gateway knows the device."""

    async def decide(about: dict[str, Any]) -> dict[str, Any]:
        async with await rig.client(token=rig.token) as client:
            made = await client.call("device.register", name=about["name"], key=about["key"])
        said = {"device": made["id"], "actor": "owner", "role": "owner", "token": rig.token, "host": "My Box"}
        return {"paired": said}

    return decide


async def test_a_machine_becomes_a_device_and_goes_to_the_host(rig: Rig, tmp_path: Path) -> None:
    home = tmp_path / "device"
    trunkline = Cli(home)
    await rig.decide_asks()
    async with (
        relay_here() as relay,
        ScriptedHost(relay, gateway_at(rig.running.url)) as host,
        await rig.session() as writer,
    ):
        wanted = ask(writer, "t1", begin_turn(writer))
        await rig.settled(writer)
        host.decide = registers(rig)
        link = await host.offer()
        code, out, err = await trunkline("pair", "join", "--name", "laptop", "--pad", "256", given=f"{link}\n")
        assert (code, out) == (0, "paired with My Box as owner: trunkline --host My-Box ls\n"), err
        assert host.code in err
        assert link.partition("#")[2] not in out + err

        path = home / "hosts" / "My-Box.json"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert [one.name for one in path.parent.iterdir()] == ["My-Box.json"]

        code, out, err = await trunkline("--host", "My-Box", "ls", "--json")
        assert code == 0, err
        assert json.loads(out)["session"] == writer.session
        assert host.opened[-1]["pad"] == 256

        code, out, err = await trunkline("approve", wanted, TRUNKLINE_HOST="My-Box")
        assert code == 0, err
        (given,) = rig.answers
        assert given.source is not None
        assert given.source.device == json.loads(path.read_bytes())["device"]

        code, out, err = await trunkline("hosts", "--json")
        assert json.loads(out)["relay"] == relay


async def test_what_can_not_be_done_elsewhere_says_so(tmp_path: Path) -> None:
    trunkline = Cli(tmp_path)
    code, _, err = await trunkline("--host", "box", "doctor")
    assert code == 2
    assert "`doctor` is about this machine: leave --host (TRUNKLINE_HOST) out" in err
    code, _, err = await trunkline("--host", "box", "events", "--nats")
    assert (code, err.startswith("error: unsupported: this needs the machine itself")) == (1, True), err
    code, _, err = await trunkline("--host", "box", "ls")
    assert (code, err) == (
        1,
        "error: unpaired: no host 'box' is paired with this device; there are: none yet: `trunkline pair join` makes one known\n",
    )
    code, _, err = await trunkline("--host", "../box", "ls")
    assert (code, err.startswith("error: bad_params: '../box' is no name of a host")) == (1, True)
    code, _, err = await trunkline("pair", "join", given="https://relay.example/pair#1.AAAA\n")
    assert (code, err.startswith("error: bad_params: this is no link of `trunkline pair`")) == (1, True)

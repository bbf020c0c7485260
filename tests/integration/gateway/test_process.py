"""The gateway as the process it is: uvloop, its own NATS user with no more rights than it needs, signals."""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path

from tests.integration.gateway.rig import AGENT, begin_turn

from trunkline_bus import topology
from trunkline_bus.connection import Bus, BusSettings
from trunkline_bus.credentials import ensure_keys, public_key, server_config
from trunkline_bus.writer import SessionWriter
from trunkline_testkit import eventually
from trunkline_testkit.nats import NatsServer
from trunkline_testkit.product import Client
from trunkline_wire.ids import new_session_id
from trunkline_wire.session import SessionCreated

ITEM = "itm_" + "a" * 32


async def start(home: Path, url: str, seed: Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "trunkline_gateway",
        "--port",
        "0",
        stdin=DEVNULL,
        stdout=DEVNULL,
        stderr=PIPE,
        env={
            "PATH": os.environ["PATH"],
            "TRUNKLINE_HOME": str(home),
            "TRUNKLINE_NATS_URL": url,
            "TRUNKLINE_NATS_SEED": str(seed),
            "TRUNKLINE_LOG_FORMAT": "json",
        },
    )


async def lines_until(process: asyncio.subprocess.Process, event: str) -> list[dict[str, object]]:
    assert process.stderr is not None
    lines: list[dict[str, object]] = []
    async with asyncio.timeout(20):
        while not lines or lines[-1]["event"] != event:
            line = await process.stderr.readline()
            assert line, f"it ended: {lines}"
            lines.append(json.loads(line))
    return lines


async def test_it_works_with_its_own_rights_alone(home: Path) -> None:
    seeds = ensure_keys(home / "keys")
    config = server_config({user: public_key(path) for user, path in seeds.items()})
    server = NatsServer(config=config)
    await asyncio.to_thread(server.start)
    try:
        async with Bus.open(BusSettings(url=server.url, seed_file=seeds["admin"])) as admin:
            await topology.apply(admin.js, max_bytes=64 * 1024 * 1024)
        process = await start(home, server.url, seeds["gateway"])
        try:
            said = await lines_until(process, "ready")
            async with Bus.open(BusSettings(url=server.url, seed_file=seeds["worker"])) as bus:
                await use(home, bus)
            # whatever NATS refused would have been said as an error of the bus
            assert [line for line in said if line["level"] in ("error", "warning")] == []
            process.send_signal(signal.SIGTERM)
            said = await lines_until(process, "stopped")
            assert [line for line in said if line["level"] in ("error", "warning")] == []
            assert await process.wait() == 0
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    finally:
        await asyncio.to_thread(server.stop)


async def use(home: Path, bus: Bus) -> None:
    created = SessionCreated(adapter="fake", cwd="/", host="hst_x", workspace="ws_x")
    async with (
        await SessionWriter.create(bus, created, session=new_session_id(), worker="w", agent=AGENT) as writer,
        await Client.connect("http://localhost", socket=str(home / "gateway.sock")) as client,
    ):
        await client.call("subscribe", session=writer.session)
        turn = begin_turn(writer)
        await writer.flush()
        writer.piece(ITEM, 0, "text", "so far", turn=turn)
        await client.wait("message.delta")
        cursor = client.cursor
        await client.call("subscribe", session=writer.session, cursor=cursor)
        assert (await client.call("session.history", session=writer.session))["total"] == 3
        await client.call("session.prompt", session=writer.session, text="x")
        made = await client.call("token.create", actor="guest", role="viewer")
        address = json.loads((home / "gateway.json").read_text())
        async with await Client.connect(address["url"], headers={"Authorization": f"Bearer {made['token']}"}) as guest:
            assert (await guest.call("session.list"))["total"] == 1
        await client.call("token.revoke", id=made["id"])
        assert (await client.call("ask.list"))["asks"] == []
        await eventually(lambda: guest.closed)

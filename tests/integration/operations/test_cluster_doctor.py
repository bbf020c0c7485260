"""`trunkline doctor --cluster` and `topology plan` on real servers."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.integration.operations.conftest import trunkline
from tests.integration.operations.sessions import session

from trunkline_bus import jsapi, topology
from trunkline_bus.connection import Bus, BusSettings
from trunkline_projector.app import Projector
from trunkline_testkit import eventually
from trunkline_testkit.nats_cluster import NatsCluster
from trunkline_wire import TrunklineError


def said_of(output: str) -> list[dict[str, Any]]:
    """The lines of JSON: beside them a client may tell of a server that went away."""
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_a_node_that_is_away_is_named(tmp_path: Path) -> None:
    cluster = NatsCluster()
    await asyncio.to_thread(cluster.start)
    try:
        async with Bus.open(BusSettings(url=cluster.url)) as bus:

            async def applied() -> bool:
                await topology.apply(bus.js, replicas=3, max_bytes=64 * 1024 * 1024)
                return True

            await eventually(applied, 45, ignore=(TrunklineError,))
            await session(bus, "hello")
            projector = Projector(bus, 4)
            projecting = asyncio.create_task(projector.run())
            try:
                await eventually(lambda: len(projector.sharing.held) == 5 and projector.behind() is None, 30)
                _code, said = await trunkline(cluster.url, tmp_path, "doctor", "--cluster", "--json")
                found = {one["check"]: one for one in said_of(said)}
                assert found["stream EVENTS"]["state"] == "ok", said
                assert "R3" in found["stream EVENTS"]["found"]
                assert found["projection sessions"]["found"].startswith("version 2, 4 parts, 0 events behind"), said
                assert found["topology"]["state"] == "ok"
                assert found["leases"]["found"] == "5 of projector, 1 of projector replicas"
                assert found["services"]["state"] == "fail", "none runs here"

                leader = await asyncio.to_thread(cluster.stream_leader, "EVENTS")
                away = next(node for node in cluster.nodes if node is not leader)
                await asyncio.to_thread(away.kill)

                async def named() -> bool:
                    code, said = await trunkline(leader.url, tmp_path, "doctor", "--cluster", "--json")
                    events = [one for one in said_of(said) if one["check"] == "stream EVENTS"]
                    return code == 1 and bool(events) and f"{away.name} away, 2 of 3 there" in events[0]["found"]

                await eventually(named, 120, interval=0.5)
            finally:
                projecting.cancel()
                await asyncio.gather(projecting, return_exceptions=True)
    finally:
        await asyncio.to_thread(cluster.stop)


async def test_a_plan_shows_changes_and_what_is_refused(bus: Bus, tmp_path: Path) -> None:
    url = bus.settings.url
    code, said = await trunkline(url, tmp_path, "topology", "plan")
    assert (code, said) == (0, "nothing to change\n")
    code, said = await trunkline(url, tmp_path, "topology", "plan", "--max-bytes", str(512 * 1024 * 1024))
    assert (code, said.splitlines()[0]) == (0, "~ EVENTS: max_bytes 268435456 -> 536870912")
    await session(bus, "x" * 10_000)
    await jsapi.request(bus.js, "STREAM.CREATE.THEIRS", {"name": "THEIRS", "subjects": ["theirs.>"]})
    code, said = await trunkline(url, tmp_path, "topology", "plan", "--max-bytes", "1000", "--json")
    lines = [json.loads(line) for line in said.splitlines()]
    assert code == 1
    assert [(one["stream"], one["verb"]) for one in lines] == [("EVENTS", "update"), ("THEIRS", "none")]
    assert lines[0]["refused"]["code"] == "topology_conflict"
    info = await jsapi.request(bus.js, "STREAM.INFO.EVENTS")
    assert info["config"]["max_bytes"] == 256 * 1024 * 1024, "a plan changes nothing"
    await jsapi.request(bus.js, "STREAM.DELETE.KV_trunk_teams")
    code, said = await trunkline(url, tmp_path, "topology", "plan")
    assert (code, said.splitlines()[0]) == (0, "+ KV_trunk_teams: created")
    code, said = await trunkline(url, tmp_path, "topology", "apply")
    assert (code, said) == (0, "KV_trunk_teams: created\n")

"""What can run agents, and where."""

from pathlib import Path

import pytest
from tests.integration.gateway.rig import Rig

from trunkline_bus import kv
from trunkline_testkit import eventually
from trunkline_wire import TrunklineError, encode, subjects


async def test_workers_and_their_adapters(rig: Rig) -> None:
    async with await rig.client() as client:
        assert (await client.call("worker.list"))["workers"] == []
        await rig.announce_worker("hst_a", 5, 12.5, "fake", "other")
        await eventually(rig.running.gateway.workers.all)
        (worker,) = (await client.call("worker.list"))["workers"]
        assert (worker["host"], worker["pid"], worker["started"]) == ("hst_a", 5, 12.5)
        adapters = (await client.call("adapter.list"))["adapters"]
        assert [(adapter["name"], adapter["title"]) for adapter in adapters] == [("fake", "Fake"), ("other", "Other")]
        assert adapters[0]["hosts"][0]["version"] == "1.0"
        assert (await client.call("agent.list"))["agents"] == []  # none of them is on the gateway's own host
        await kv.delete(rig.bus, subjects.KV_WORKERS, "wrk_announced")
        await eventually(lambda: not rig.running.gateway.workers.all())
        assert (await client.call("adapter.list"))["adapters"] == []


async def test_a_session_of_an_agent_is_given_the_best_way(rig: Rig, tmp_path: Path) -> None:
    host = rig.running.gateway.host
    missing = {"code": "agent_not_found", "message": "program 'talker' is not installed"}
    adapters = [
        {
            "name": "acp",
            "way": "acp",
            "protocol": "ACP",
            "agents": [{"name": "talker", "profile": "talk", "path": "/t"}],
        },
        {"name": "talker", "protocol": "its own", "agents": [{"name": "talker", "title": "Talker", "error": missing}]},
    ]
    record = {"worker": "wrk_announced", "host": host, "pid": 5, "started": 1.5, "adapters": adapters}
    async with await rig.client() as client:
        with pytest.raises(TrunklineError) as refused:
            await client.call("session.create", agent="talker", cwd=str(tmp_path))
        assert refused.value.code == "no_worker"
        await kv.put(rig.bus, subjects.KV_WORKERS, "wrk_announced", encode(record))
        await eventually(rig.running.gateway.workers.all)
        (talker,) = (await client.call("agent.list"))["agents"]
        assert talker["title"] == "Talker"
        assert [(way["adapter"], way["way"]) for way in talker["ways"]] == [("talker", "native"), ("acp", "acp")]
        created = await client.call("session.create", agent="talker", cwd=str(tmp_path), wait=False)
        assert created["notice"] == "program 'talker' is not installed; it runs through the adapter 'acp' (ACP)"
        spawn = await rig.next_spawn()
        assert (spawn.adapter, spawn.agent) == ("acp", "talk")
        for agent, code in (("nobody", "agent_not_found"), (None, "bad_params")):
            with pytest.raises(TrunklineError) as refused:
                await client.call("session.create", agent=agent, cwd=str(tmp_path))
            assert refused.value.code == code

"""What can run agents, and where."""

from pathlib import Path
from typing import Any, cast

import pytest
from tests.integration.gateway.rig import Rig

from trunkline_bus import kv
from trunkline_testkit import eventually
from trunkline_wire import TrunklineError, encode, subjects
from trunkline_wire.ids import new_session_id


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
        await kv.delete(rig.bus, subjects.KV_WORKERS, "wrk_announced")
        await eventually(lambda: not rig.running.gateway.workers.all())
        assert (await client.call("adapter.list"))["adapters"] == []


def installed(agent: str, *, works: bool = True) -> dict[str, object]:
    error = None if works else {"code": "agent_not_found", "message": f"program {agent!r} is not installed"}
    return {"name": agent, "agents": [{"name": agent, "error": error}], "error": error}


def a_worker(host: str, *adapters: dict[str, object]) -> dict[str, object]:
    return {"worker": f"wrk_{host}", "host": host, "pid": 5, "started": 1.5, "adapters": adapters}


async def test_a_session_without_a_host_goes_to_one_that_can_run_it(rig: Rig) -> None:
    """The gateway's own host has no worker: so it is where every service has a container of its own."""
    workers = (
        a_worker("hst_a", installed("talker", works=False), installed("other")),
        a_worker("hst_b", installed("talker"), installed("other")),
    )
    for worker in workers:
        await kv.put(rig.bus, subjects.KV_WORKERS, str(worker["worker"]), encode(worker))
    await eventually(lambda: len(rig.running.gateway.workers.all()) == 2)
    async with await rig.client() as client:
        for agent, adapter in (("talker", None), (None, "talker")):
            for _ in range(4):
                named = {"agent": agent, "adapter": adapter, "cwd": "/only/there"}
                made = await client.call("session.create", **cast("Any", named), wait=False)
                await eventually(lambda made=made: spawned(rig, made["session"], "hst_b"))
        # Not always the same, but the same again for the same session.
        sessions = [new_session_id() for _ in range(40)]
        places = [rig.running.gateway.workers.place("hst_gateway", None, session) for session in sessions]
        assert set(places) == {"hst_a", "hst_b"}
        assert places == [rig.running.gateway.workers.place("hst_gateway", None, session) for session in sessions]
        told = await client.call("agent.list")
        assert [one["name"] for one in told["agents"]] == ["other", "talker"]
        assert told["host"] in ("hst_a", "hst_b")
        (other, talker) = (await client.call("agent.list", host="hst_a"))["agents"]
        assert other["ways"][0]["error"] is None
        assert talker["ways"][0]["error"]["code"] == "agent_not_found"
        made = await client.call("session.create", agent="talker", cwd="/only/there", host="any", wait=False)
        await eventually(lambda: spawned(rig, made["session"], "any"))


async def test_a_session_without_a_host_stays_where_the_gateway_has_a_worker(rig: Rig, tmp_path: Path) -> None:
    own = rig.running.gateway.host
    for worker in (a_worker(own, installed("other")), a_worker("hst_b", installed("talker"), installed("other"))):
        await kv.put(rig.bus, subjects.KV_WORKERS, str(worker["worker"]), encode(worker))
    await eventually(lambda: len(rig.running.gateway.workers.all()) == 2)
    async with await rig.client() as client:
        made = await client.call("session.create", agent="other", cwd=str(tmp_path), wait=False)
        await eventually(lambda: spawned(rig, made["session"], own))
        with pytest.raises(TrunklineError, match="no agent 'talker' is known: installed here are other"):
            await client.call("session.create", agent="talker", cwd=str(tmp_path))
        assert (await client.call("agent.list"))["host"] == own


async def spawned(rig: Rig, session: str, host: str) -> bool:
    """Whether the last request is for this session, on this host."""
    spawn = await rig.next_spawn()
    return (spawn.session, spawn.host) == (session, host)


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

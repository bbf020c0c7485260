"""Streams and buckets: made as designed, changed where that loses nothing, refused where it would."""

import asyncio
from typing import Any

import nats.errors
import pytest
from nats.js.errors import NoStreamResponseError

from trunkline_bus import jsapi, topology
from trunkline_bus.connection import Bus, BusSettings
from trunkline_testkit import eventually
from trunkline_testkit.nats import NatsServer
from trunkline_testkit.nats_cluster import NatsCluster
from trunkline_wire import TrunklineError, subjects

HOUR = 3600 * 10**9


async def config(bus: Bus, stream: str) -> dict[str, Any]:
    info = await jsapi.stream_info(bus.js, stream)
    assert info is not None
    return info["config"]


async def test_the_log_is_as_section_3_says(bus: Bus) -> None:
    events = await config(bus, "EVENTS")
    wanted = {
        "subjects": ["trunk.ev.>"],
        "storage": "file",
        "retention": "limits",
        "discard": "new",
        "allow_direct": True,
        "deny_delete": True,
        "allow_msg_ttl": False,
        "max_age": 0,
        "num_replicas": 1,
        "max_bytes": topology.EVENTS_MAX_BYTES,
    }
    assert {key: events[key] for key in wanted} == wanted
    assert "persist_mode" not in events
    assert len(events["metadata"]["trunk-log-id"]) == 32
    assert events["metadata"]["trunk-schema"] == str(topology.SCHEMA)


@pytest.mark.parametrize(
    ("stream", "wanted"),
    [
        ("DELTAS", {"persist_mode": "async", "max_age": HOUR, "discard": "old", "subjects": ["trunk.delta.>"]}),
        ("COMMANDS", {"max_age": 7 * 24 * HOUR, "subjects": ["trunk.cmd.>", "trunk.answer.>"], "retention": "limits"}),
        ("SPAWN", {"retention": "workqueue", "max_age": 60 * 10**9}),
        ("OBSERVED", {"max_age": 7 * 24 * HOUR}),
        ("SYSTEM", {"max_age": 0, "deny_delete": True}),
        ("DEADLETTER", {"subjects": ["trunk.dlq.>"]}),
        ("KV_trunk_tokens", {"max_msgs_per_subject": 1, "max_age": 0, "allow_rollup_hdrs": True}),
        ("KV_trunk_sessions", {"max_msgs_per_subject": 1, "persist_mode": "async"}),
        ("KV_trunk_leases", {"max_age": 30 * 10**9, "allow_msg_ttl": True, "subject_delete_marker_ttl": 30 * 10**9}),
        ("OBJ_trunk_blobs", {"subjects": ["$O.trunk_blobs.C.>", "$O.trunk_blobs.M.>"]}),
    ],
)
async def test_every_other_stream_too(bus: Bus, stream: str, wanted: dict[str, Any]) -> None:
    found = await config(bus, stream)
    assert {key: found.get(key) for key in wanted} == wanted


async def test_truth_in_buckets_waits_for_the_disk(bus: Bus) -> None:
    for bucket in (subjects.KV_TOKENS, subjects.KV_DEVICES):
        assert "persist_mode" not in await config(bus, f"KV_{bucket}")


async def test_a_second_apply_changes_nothing(bus: Bus) -> None:
    before = await bus.read_log_id()
    assert await topology.apply(bus.js) == []
    assert await bus.read_log_id() == before


async def test_a_restored_log_gets_a_new_id_once(bus: Bus) -> None:
    before, settings = await bus.read_log_id(), await config(bus, "EVENTS")
    assert await topology.apply(bus.js, restored=True) == [
        "EVENTS: trunk-log-id is new, cursors from before end in a gap"
    ]
    after = await bus.read_log_id()
    assert after != before
    assert {**await config(bus, "EVENTS"), "metadata": None} == {**settings, "metadata": None}
    assert await topology.apply(bus.js) == []
    assert await bus.read_log_id() == after


async def test_what_loses_nothing_is_changed_and_told(bus: Bus) -> None:
    assert await topology.apply(bus.js, max_bytes=100_000_000) == [
        f"EVENTS: max_bytes {topology.EVENTS_MAX_BYTES} -> 100000000"
    ]
    # Without a word about it, the limit stays.
    assert await topology.apply(bus.js) == []
    spoiled = await config(bus, "COMMANDS")
    await jsapi.request(bus.js, "STREAM.UPDATE.COMMANDS", spoiled | {"description": "ours", "max_age": HOUR})
    changes = await topology.apply(bus.js)
    assert changes == [f"COMMANDS: max_age {HOUR} -> {7 * 24 * HOUR}"]
    assert (await config(bus, "COMMANDS"))["description"] == "ours"


async def refused(bus: Bus, **options: Any) -> TrunklineError:
    with pytest.raises(TrunklineError) as caught:
        await topology.apply(bus.js, **options)
    assert caught.value.code == "topology_conflict"
    return caught.value


async def test_a_limit_below_what_is_stored_is_refused(bus: Bus) -> None:
    for _ in range(3):
        await bus.js.publish("trunk.ev.1.ses_x.agent.fact", b"x" * 100_000)
    error = await refused(bus, max_bytes=200_000)
    assert error.details == {"stream": "EVENTS", "setting": "max_bytes"}
    assert (await config(bus, "EVENTS"))["max_bytes"] == topology.EVENTS_MAX_BYTES


@pytest.mark.parametrize(
    ("name", "present", "setting"),
    [
        ("SPAWN", {"subjects": ["trunk.spawn.>"], "retention": "limits"}, "retention"),
        ("COMMANDS", {"subjects": ["trunk.cmd.>", "trunk.answer.>"], "storage": "memory"}, "storage"),
        ("SYSTEM", {"subjects": ["trunk.sys.>", "trunk.older.>"]}, "subjects"),
        ("DELTAS", {"subjects": ["trunk.delta.>"]}, "persist_mode"),
    ],
)
async def test_what_would_lose_data_is_refused(
    fresh_nats: NatsServer, name: str, present: dict[str, Any], setting: str
) -> None:
    async with Bus.open(BusSettings(url=fresh_nats.url)) as bus:
        await jsapi.request(
            bus.js, f"STREAM.CREATE.{name}", {"name": name, "storage": "file", "num_replicas": 1} | present
        )
        assert (await refused(bus)).details == {"stream": name, "setting": setting}


async def test_a_shorter_age_is_refused_only_where_messages_are_older(fresh_nats: NatsServer) -> None:
    async with Bus.open(BusSettings(url=fresh_nats.url)) as bus:
        await topology.apply(bus.js)
        await jsapi.request(bus.js, "STREAM.UPDATE.OBSERVED", await config(bus, "OBSERVED") | {"max_age": 0})
        await bus.js.publish("trunk.obs.host", b"young")
        assert await topology.apply(bus.js) == [f"OBSERVED: max_age 0 -> {7 * 24 * HOUR}"]


async def test_a_log_of_a_newer_schema_is_left_alone(bus: Bus) -> None:
    present = await config(bus, "EVENTS")
    newer = present["metadata"] | {"trunk-schema": str(topology.SCHEMA + 1)}
    await jsapi.request(bus.js, "STREAM.UPDATE.EVENTS", present | {"metadata": newer})
    assert (await refused(bus)).details["log_schema"] == topology.SCHEMA + 1


async def test_a_store_too_small_for_the_log_is_named(small_nats: NatsServer) -> None:
    async with Bus.open(BusSettings(url=small_nats.url)) as bus:
        with pytest.raises(TrunklineError, match="log_full"):
            await topology.apply(bus.js)
        assert "EVENTS: created" in await topology.apply(bus.js, max_bytes=200_000_000)


async def test_on_a_small_store_deltas_have_a_quarter_of_the_logs_room(fresh_nats: NatsServer) -> None:
    async with Bus.open(BusSettings(url=fresh_nats.url)) as bus:
        await topology.apply(bus.js, max_bytes=40_000_000)
        assert (await config(bus, "DELTAS"))["max_bytes"] == 10_000_000
        assert await topology.apply(bus.js) == []
        await bus.js.delete_stream("DELTAS")
        assert await topology.apply(bus.js) == ["DELTAS: created"]
        assert (await config(bus, "DELTAS"))["max_bytes"] == 10_000_000


async def test_a_server_without_a_log_says_what_to_do(fresh_nats: NatsServer) -> None:
    async with Bus.open(BusSettings(url=fresh_nats.url)) as bus:
        with pytest.raises(TrunklineError, match="topology apply"):
            assert bus.log_id
        await topology.apply(bus.js)
        assert await bus.read_log_id() == bus.log_id


@pytest.mark.slow
async def test_in_a_cluster_truth_has_three_replicas_and_deltas_one(cluster: NatsCluster) -> None:
    async with Bus.open(BusSettings(url=cluster.url)) as bus:
        await topology.apply(bus.js, replicas=3)
        assert (await config(bus, "EVENTS"))["num_replicas"] == 3
        assert (await config(bus, "DELTAS"))["num_replicas"] == 1
        sessions = await config(bus, "KV_trunk_sessions")
        assert sessions["num_replicas"] == 3
        assert "persist_mode" not in sessions
        assert await topology.apply(bus.js, replicas=3) == []


@pytest.mark.chaos
@pytest.mark.slow
async def test_deltas_whose_server_is_gone_are_made_anew(cluster: NatsCluster) -> None:
    async with Bus.open(BusSettings(url=cluster.url)) as bus:
        await topology.apply(bus.js, replicas=3, max_bytes=100_000_000)
        gone = await asyncio.to_thread(cluster.stream_leader, "DELTAS")
        gone.kill()
        await asyncio.to_thread(cluster.wait_ready)
        # It takes 11 s; a request that meets an election, or a connection on its way to another server, 5 s more each.
        changes = await eventually(lambda: topology.apply(bus.js_cmd, replicas=3), 45, ignore=(TrunklineError,))
        assert changes == ["DELTAS: created"]

        async def takes_pieces() -> bool:
            return (await bus.js_cmd.publish("trunk.delta.1.x", b"piece")).stream == "DELTAS"

        await eventually(takes_pieces, ignore=(NoStreamResponseError, nats.errors.Error))
        await asyncio.to_thread(gone.start)
        await asyncio.to_thread(cluster.wait_ready)
        assert await topology.apply(bus.js_cmd, replicas=3) == []
        assert (await bus.js_cmd.stream_info("DELTAS")).state.messages > 0

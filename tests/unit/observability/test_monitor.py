"""What the monitor makes of a NATS server's words, and of certificates."""

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY
from tests.unit.observability.certified import certified

from trunkline_monitor.certificates import expiry
from trunkline_monitor.server import Server


def varz(name: str, **changed: Any) -> dict[str, Any]:
    """The fields of nats-server 2.15.1's `/varz` that are read."""
    told = {"server_name": name, "connections": 3, "mem": 17612800, "cpu": 150, "slow_consumers": 0}
    return told | {"in_msgs": 9, "out_msgs": 14, "in_bytes": 669, "out_bytes": 1939} | changed


def jsz(stream: dict[str, Any], meta: dict[str, Any] | None = None) -> dict[str, Any]:
    """Of its `/jsz?consumers=true&config=true`."""
    told: dict[str, Any] = {
        "storage": 215,
        "api": {"total": 4, "errors": 1},
        "config": {"max_storage": 104857600},
        "account_details": [{"name": "$G", "stream_detail": [stream]}],
    }
    return told if meta is None else {**told, "meta_cluster": meta}


def events(**cluster: Any) -> dict[str, Any]:
    consumers = [{"num_pending": 3, "num_ack_pending": 5}, {"num_pending": 8, "num_ack_pending": 1}]
    return {
        "name": "EVENTS",
        "cluster": cluster,
        "config": {"max_bytes": 1000000},
        "state": {"messages": 5, "bytes": 215, "last_seq": 5},
        "consumer_detail": consumers,
    }


def value(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(f"trunkline_nats_{name}", labels)


def test_a_lone_server_is_its_own_leader() -> None:
    Server("http://one").saw(varz("one"), jsz(events(leader="one")), healthy=True)
    assert value("up", server="one") == 1
    assert value("up", server="http://one") is None
    assert value("cpu_cores", server="one") == pytest.approx(1.5)
    assert value("stream_bytes", server="one", stream="EVENTS") == 215
    assert value("stream_limit_bytes", server="one", stream="EVENTS") == 1000000
    assert value("stream_pending", server="one", stream="EVENTS") == 8
    assert value("stream_unacknowledged", server="one", stream="EVENTS") == 6
    assert value("has_leader", server="one", stream="EVENTS") == 1
    assert value("has_leader", server="one", stream="meta") == 1


def test_copies_that_are_gone_and_a_stream_without_a_leader_show() -> None:
    replicas = [{"name": "b", "current": False, "offline": True}, {"name": "c", "current": True}]
    Server("http://a").saw(varz("a"), jsz(events(leader="a", replicas=replicas), {"leader": "a"}), healthy=True)
    assert value("stream_replicas_behind", server="a", stream="EVENTS") == 1
    Server("http://b").saw(varz("b"), jsz(events(leader=""), {"leader": ""}), healthy=False)
    assert value("up", server="b") == 0
    assert value("has_leader", server="b", stream="EVENTS") == 0
    assert value("has_leader", server="b", stream="meta") == 0


def test_what_grows_goes_on_over_a_restart_of_the_server() -> None:
    server = Server("http://g")
    for told in (9, 30, 4):  # the last after its restart
        server.saw(varz("g", in_msgs=told), jsz(events()), healthy=True)
    assert value("messages_total", server="g", direction="in") == 34
    server.silent()
    assert value("up", server="g") == 0


async def test_a_certificate_says_when_it_ends_whoever_signed_it(tmp_path: Path) -> None:
    ends = dt.datetime(2031, 5, 6, 7, 8, 9, tzinfo=dt.UTC)
    async with certified(tmp_path, ends) as endpoint:
        assert await expiry(endpoint, 5) == ends.timestamp()
    with pytest.raises(ValueError, match="host:port"):
        await expiry("localhost", 5)

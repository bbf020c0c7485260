"""One NATS server's words (`/varz`, `/jsz`) as metrics."""

from collections.abc import Iterator
from typing import Any, Final

from prometheus_client import Counter

from trunkline_bus import metrics

_UNLIMITED: Final = -1


class Server:
    """`saw` takes what the server at `url` said; what grows there grows here, also over its restarts."""

    def __init__(self, url: str) -> None:
        self._name = url
        self._before: dict[str, float] = {}

    def silent(self) -> None:
        """It did not answer."""
        metrics.NATS_UP.labels(self._name).set(0)

    def saw(self, varz: dict[str, Any], jsz: dict[str, Any], *, healthy: bool) -> None:
        if varz["server_name"] != self._name:
            # By its own name from now on, and its URL is no second server.
            metrics.NATS_UP.labels(self._name).set(0)
            metrics.NATS_UP.remove(self._name)
            self._name = varz["server_name"]
        name = self._name
        metrics.NATS_UP.labels(name).set(int(healthy))
        metrics.NATS_CONNECTIONS.labels(name).set(varz["connections"])
        metrics.NATS_MEMORY.labels(name).set(varz["mem"])
        metrics.NATS_CPU.labels(name).set(varz["cpu"] / 100)
        self._grow(metrics.NATS_SLOW_CONSUMERS, varz["slow_consumers"])
        for direction in ("in", "out"):
            self._grow(metrics.NATS_MESSAGES, varz[f"{direction}_msgs"], direction)
            self._grow(metrics.NATS_BYTES, varz[f"{direction}_bytes"], direction)
        self._grow(metrics.NATS_API, jsz["api"]["total"], "all")
        self._grow(metrics.NATS_API, jsz["api"]["errors"], "refused")
        metrics.NATS_STORAGE.labels(name).set(jsz["storage"])
        metrics.NATS_STORAGE_LIMIT.labels(name).set(jsz["config"]["max_storage"])
        metrics.NATS_HAS_LEADER.labels(name, "meta").set(_led(jsz.get("meta_cluster")))
        for stream in _streams(jsz):
            self._stream(name, stream)

    def _stream(self, name: str, stream: dict[str, Any]) -> None:
        title, state, cluster = stream["name"], stream["state"], stream.get("cluster")
        metrics.NATS_STREAM_MESSAGES.labels(name, title).set(state["messages"])
        metrics.NATS_STREAM_BYTES.labels(name, title).set(state["bytes"])
        metrics.NATS_STREAM_LAST.labels(name, title).set(state["last_seq"])
        limit = stream["config"]["max_bytes"]
        if limit != _UNLIMITED:
            metrics.NATS_STREAM_LIMIT.labels(name, title).set(limit)
        metrics.NATS_HAS_LEADER.labels(name, title).set(_led(cluster))
        replicas: list[dict[str, Any]] = (cluster or {}).get("replicas") or []
        metrics.NATS_STREAM_BEHIND.labels(name, title).set(
            sum(bool(one.get("offline")) or not one.get("current", False) for one in replicas)
        )
        consumers: list[dict[str, Any]] = stream.get("consumer_detail") or []
        metrics.NATS_CONSUMERS.labels(name, title).set(len(consumers))
        metrics.NATS_PENDING.labels(name, title).set(max((one["num_pending"] for one in consumers), default=0))
        metrics.NATS_UNACKNOWLEDGED.labels(name, title).set(sum(one["num_ack_pending"] for one in consumers))

    def _grow(self, counter: Counter, value: float, *labels: str) -> None:
        key = "\0".join((next(iter(counter.describe())).name, *labels))
        before = self._before.get(key, 0.0)
        self._before[key] = value
        counter.labels(self._name, *labels).inc(value - before if value >= before else value)


def _led(cluster: dict[str, Any] | None) -> int:
    """1 where there is a leader, or no election at all."""
    return int(cluster is None or bool(cluster.get("leader")))


def _streams(jsz: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for account in jsz.get("account_details") or []:
        yield from account.get("stream_detail") or []

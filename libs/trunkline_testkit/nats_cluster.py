"""Three real nats-servers on loopback with a JetStream meta group: R3 streams, leader kills, elections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from trunkline_testkit.nats import NatsServer
from trunkline_testkit.ports import free_port
from trunkline_testkit.waiting import eventually_sync

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType


class NatsCluster:
    """`nodes` are NatsServers that tests may kill, pause and restart one by one."""

    def __init__(
        self,
        size: int = 3,
        *,
        sync_interval: str | None = None,
        config: str = "",
        hosts: Sequence[tuple[str, Sequence[str]]] = (),
    ) -> None:
        """`hosts` are the address of each node and the command that its own is given to; by default all on loopback."""
        places = hosts or [("127.0.0.1", ())] * size
        routes = [(host, free_port()) for host, _ in places]
        self.nodes = [
            NatsServer(
                name=f"n{index + 1}",
                sync_interval=sync_interval,
                config=_cluster_block(*routes[index], routes) + config,
                host=host,
                within=within,
            )
            for index, (host, within) in enumerate(places)
        ]

    @property
    def urls(self) -> list[str]:
        """The client URL of every node, running or not."""
        return [node.url for node in self.nodes]

    @property
    def url(self) -> str:
        """All client URLs, comma separated, as most NATS clients and settings take them."""
        return ",".join(self.urls)

    def start(self) -> None:
        """Start every node and wait for a meta leader that sees all of them. Raises NatsError, AssertionError."""
        for node in self.nodes:
            node.start()
        self.wait_ready()

    def stop(self) -> None:
        """Stop every node and delete the stores."""
        for node in self.nodes:
            node.stop()

    def wait_ready(self, timeout: float = 30.0) -> None:
        """Wait until every running node is healthy and agrees on a meta leader. Raises AssertionError."""
        eventually_sync(self._ready, timeout, ignore=(OSError,))

    def meta_leader(self) -> NatsServer:
        """The node that leads the meta group. Raises AssertionError if none does within 30 s."""
        return eventually_sync(lambda: self._node(self._meta_leader_name()), 30.0, ignore=(OSError,))

    def stream_leader(self, stream: str) -> NatsServer:
        """The node that leads `stream` of the global account. Raises AssertionError if none does within 30 s."""
        return eventually_sync(lambda: self._node(self._stream_leader_name(stream)), 30.0, ignore=(OSError,))

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def _running(self) -> list[NatsServer]:
        return [node for node in self.nodes if node.running]

    def _ready(self) -> bool:
        leaders = {self._meta_leader_name(node) for node in self._running}
        healthy = all(node.monitor("/healthz")["status"] == "ok" for node in self._running)
        # A dead leader stays in the survivors' answers until they elect another.
        return healthy and len(leaders) == 1 and self._node(leaders.pop()) is not None

    def _meta_leader_name(self, node: NatsServer | None = None) -> str:
        answer = (node or self._running[0]).monitor("/jsz")
        cluster: dict[str, Any] = answer.get("meta_cluster") or {}
        return str(cluster.get("leader", ""))

    def _stream_leader_name(self, stream: str) -> str:
        for node in self._running:
            answer = node.monitor("/jsz?streams=true")
            for account in answer.get("account_details") or []:
                for detail in account.get("stream_detail") or []:
                    if detail["name"] == stream and (leader := (detail.get("cluster") or {}).get("leader")):
                        return str(leader)
        return ""

    def _node(self, name: str) -> NatsServer | None:
        return next((node for node in self._running if node.name == name), None)


def _cluster_block(host: str, port: int, routes: list[tuple[str, int]]) -> str:
    others = ", ".join(f'"nats-route://{other}:{route}"' for other, route in routes)
    return f"cluster {{ name: test, listen: {host}:{port}, routes: [{others}] }}\n"

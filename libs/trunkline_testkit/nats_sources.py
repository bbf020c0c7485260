"""Where the shared test server comes from: the wheel (default), Docker through testcontainers, or a URL.

`TRUNKLINE_TEST_NATS` says which: unset or `wheel`, `docker`, or the URL of a server that runs already
(`nats://…`; it needs JetStream, and its streams are the tests' to delete).
"""

from __future__ import annotations

import os
from typing import Any

from trunkline_testkit.nats import NatsError, NatsLike, NatsServer

VARIABLE = "TRUNKLINE_TEST_NATS"
IMAGE_VARIABLE = "TRUNKLINE_TEST_NATS_IMAGE"
DEFAULT_IMAGE = "nats:2.15"
_SCHEMES = ("nats://", "tls://", "ws://", "wss://")


def shared_nats(source: str | None = None) -> NatsLike:
    """The server, not started, that `source` (default: the environment) names. Raises NatsError for an unknown one."""
    source = os.environ.get(VARIABLE, "wheel") if source is None else source
    if source in {"", "wheel"}:
        return NatsServer()
    if source == "docker":
        return DockerNats(os.environ.get(IMAGE_VARIABLE, DEFAULT_IMAGE))
    if source.startswith(_SCHEMES):
        return ExternalNats(source)
    raise NatsError(f"{VARIABLE}={source!r} is unknown: use wheel, docker or a URL such as nats://127.0.0.1:4222")


class ExternalNats:
    """A server that somebody else runs; starting and stopping it is not ours."""

    def __init__(self, url: str) -> None:
        self._url = url

    @property
    def url(self) -> str:
        return self._url

    def start(self) -> None:
        """Nothing to do."""

    def stop(self) -> None:
        """Nothing to do."""


class DockerNats:
    """nats-server in a container; the port stays the container's for its life."""

    def __init__(self, image: str) -> None:
        self._image = image
        self._container: Any = None

    @property
    def url(self) -> str:
        """`nats://<docker host>:<mapped port>`. Raises NatsError before `start`."""
        if self._container is None:
            raise NatsError("the nats container is not running: call start() first")
        return f"nats://{self._container.get_container_host_ip()}:{self._container.get_exposed_port(4222)}"

    def start(self) -> None:
        """Start the container and wait for its server. Raises what testcontainers and Docker raise."""
        from testcontainers.core.container import DockerContainer
        from testcontainers.core.wait_strategies import LogMessageWaitStrategy

        container = DockerContainer(self._image).with_exposed_ports(4222).with_command("-js")
        self._container = container.waiting_for(LogMessageWaitStrategy("Server is ready")).start()

    def stop(self) -> None:
        """Remove the container. May be called twice."""
        if self._container is not None:
            self._container.stop()
            self._container = None

"""Ways to cut a part off: a line that holds everything back, a real interface that goes down, a leader that stands still."""

import asyncio
import contextlib
import os
import shutil
import subprocess
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass

from trunkline_testkit.nats_cluster import NatsCluster
from trunkline_testkit.proxy import NatsProxy
from trunkline_wire import subjects


@dataclass(frozen=True)
class Cut:
    """`via` is what the part reaches NATS by, `within` the command that it is started with."""

    down: Callable[[], None]
    up: Callable[[], None]
    via: NatsProxy | None = None
    within: Sequence[str] = ()


@contextlib.asynccontextmanager
async def line(target: str) -> AsyncGenerator[Cut]:
    """A proxy in front of `target`: connections stay open and nothing passes."""
    async with NatsProxy(target) as proxy:
        yield Cut(proxy.cut, proxy.heal, proxy)


def frozen_leader(cluster: NatsCluster) -> Cut:
    """The leader of the log stands still, as the others see it behind a dead link."""
    leader = cluster.stream_leader(subjects.EVENTS)
    return Cut(leader.pause, leader.resume)


def namespaces_allowed() -> bool:
    """Whether this process may make network namespaces and interfaces."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    name = f"tl{os.getpid()}"
    made = _try("ip", "netns", "add", name) and _try(
        "ip", "link", "add", f"{name}x", "type", "veth", "peer", f"{name}y"
    )
    _try("ip", "link", "del", f"{name}x")
    _try("ip", "netns", "del", name)
    return made


@contextlib.asynccontextmanager
async def namespace(target: str) -> AsyncGenerator[Cut]:
    """A network namespace whose only way out is one interface, at whose other end `target` is reached."""
    name = f"tl{os.getpid()}"
    outer, inner = f"{name}o", f"{name}i"
    net = f"10.{77 + os.getpid() % 100}.{os.getpid() // 100 % 250}"
    try:
        for command in (
            f"ip netns add {name}",
            f"ip link add {outer} type veth peer name {inner}",
            f"ip link set {inner} netns {name}",
            f"ip addr add {net}.1/24 dev {outer}",
            f"ip link set {outer} up",
            f"ip netns exec {name} ip addr add {net}.2/24 dev {inner}",
            f"ip netns exec {name} ip link set {inner} up",
            f"ip netns exec {name} ip link set lo up",
        ):
            await asyncio.to_thread(_do, command)
        async with NatsProxy(target, f"{net}.1") as way:
            yield Cut(
                lambda: _do(f"ip link set {outer} down"),
                lambda: _do(f"ip link set {outer} up"),
                way,
                ("ip", "netns", "exec", name),
            )
    finally:
        await asyncio.to_thread(_try, "ip", "link", "del", outer)
        await asyncio.to_thread(_try, "ip", "netns", "del", name)


def _do(command: str) -> None:
    subprocess.run(command.split(), check=True, capture_output=True)


def _try(*command: str) -> bool:
    return subprocess.run(command, check=False, capture_output=True).returncode == 0

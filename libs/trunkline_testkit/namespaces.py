"""Several hosts on one machine: network namespaces on a bridge, each of which can be cut off. Needs root and `ip`.

The bridge is in a namespace too: on this machine's own a firewall (of Docker, for one) may drop what it forwards.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType


def namespaces_allowed() -> bool:
    """Whether this process may make network namespaces, bridges and interfaces."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    name = f"tlt{os.getpid()}"
    made = _try(f"ip netns add {name}") and _try(f"ip link add {name} type bridge")
    _try(f"ip link del {name}")
    _try(f"ip netns del {name}")
    return made


class Namespaces:
    """`count` namespaces, each with one interface at a bridge that this machine is at too. A context manager."""

    def __init__(self, count: int) -> None:
        # Interface names have 15 characters at most.
        self._mark = f"tl{os.getpid()}"
        self._hub = f"{self._mark}-0"
        self._net = f"10.{180 + os.getpid() % 60}.{os.getpid() // 60 % 250}"
        self._numbers = range(1, count + 1)

    @property
    def hosts(self) -> list[tuple[str, tuple[str, ...]]]:
        """The address of each, and the command that starts another in it."""
        return [(f"{self._net}.{n}", ("ip", "netns", "exec", f"{self._mark}-{n}")) for n in self._numbers]

    @property
    def here(self) -> str:
        """The address of this machine itself."""
        return f"{self._net}.254"

    def isolate(self, host: str) -> None:
        """From now on the namespace of this address reaches no other that is isolated."""
        _do(f"ip -n {self._hub} link set {self._mark}o{_number(host)} type bridge_slave isolated on")

    def readdress(self, host: str) -> None:
        """The namespace of this address gets another one, as a phone that changes its network."""
        number = _number(host)
        there, inner = f"{self._mark}-{number}", f"{self._mark}i{number}"
        _do(f"ip -n {there} addr del {host}/24 dev {inner}")
        _do(f"ip -n {there} addr add {self._net}.{number + 100}/24 dev {inner}")

    def cut(self, host: str) -> None:
        """Nothing reaches the namespace of this address, and nothing leaves it."""
        _do(f"ip -n {self._hub} link set {self._mark}o{_number(host)} down")

    def heal(self, host: str) -> None:
        """Ends a cut."""
        _do(f"ip -n {self._hub} link set {self._mark}o{_number(host)} up")

    def __enter__(self) -> Self:
        try:
            _do(f"ip netns add {self._hub}")
            _do(f"ip -n {self._hub} link add {self._mark} type bridge")
            _do(f"ip -n {self._hub} link set {self._mark} up")
            self._plug("h")
            _do(f"ip addr add {self._net}.254/24 dev {self._mark}ih")
            _do(f"ip link set {self._mark}ih up")
            for n in self._numbers:
                self._add(n)
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._remove()

    def _plug(self, end: object) -> None:
        """An interface `i<end>` whose other end is at the bridge."""
        _do(f"ip link add {self._mark}o{end} type veth peer name {self._mark}i{end}")
        _do(f"ip link set {self._mark}o{end} netns {self._hub}")
        _do(f"ip -n {self._hub} link set {self._mark}o{end} master {self._mark} up")

    def _add(self, n: int) -> None:
        name, inner = f"{self._mark}-{n}", f"{self._mark}i{n}"
        _do(f"ip netns add {name}")
        self._plug(n)
        _do(f"ip link set {inner} netns {name}")
        _do(f"ip -n {name} addr add {self._net}.{n}/24 dev {inner}")
        _do(f"ip -n {name} link set {inner} up")
        _do(f"ip -n {name} link set lo up")

    def _remove(self) -> None:
        _try(f"ip link del {self._mark}ih")
        for n in (*self._numbers, 0):
            _try(f"ip netns del {self._mark}-{n}")


def _number(host: str) -> int:
    return int(host.rpartition(".")[2])


def _do(command: str) -> None:
    subprocess.run(command.split(), check=True, capture_output=True)


def _try(command: str) -> bool:
    return subprocess.run(command.split(), check=False, capture_output=True).returncode == 0

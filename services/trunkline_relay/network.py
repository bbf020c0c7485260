"""Whether the machine's network is still the same one."""

from typing import Final

import psutil

_FAMILIES: Final = ("AF_INET", "AF_INET6")


class Network:
    """The addresses of the machine, as of the last look."""

    def __init__(self) -> None:
        self._known = _addresses()

    def changed(self) -> bool:
        """Whether they are others than at the last look."""
        before, self._known = self._known, _addresses()
        return self._known != before

    def has(self, address: str) -> bool:
        """Whether `address` is still one of them; loopback always is."""
        return address.startswith(("127.", "::1")) or address in {one for _, one in _addresses()}


def _addresses() -> frozenset[tuple[str, str]]:
    """Of the interfaces that are up, but loopback. Link-local ones have their interface behind `%`."""
    up = {name for name, stats in psutil.net_if_stats().items() if stats.isup}
    return frozenset(
        (name, one.address.partition("%")[0])
        for name, addresses in psutil.net_if_addrs().items()
        for one in addresses
        if name in up and one.family.name in _FAMILIES and not one.address.startswith(("127.", "::1"))
    )


def local_address() -> str:
    """An address of this machine in its network: IPv4 if there is one; loopback without any network."""
    found = sorted((":" in one, one) for _, one in _addresses() if not one.startswith("fe80:"))
    return found[0][1] if found else "127.0.0.1"

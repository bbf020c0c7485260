"""Who may speak to a relay at all, before any key is proven: Host and Origin, tokens of hosts, and how often an address may try."""

import hashlib
import hmac
from collections import OrderedDict
from collections.abc import Callable, Collection
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Final

from aiohttp import web

from trunkline_service.web import LOOPBACK, host_of, same_origin
from trunkline_wire import TrunklineError

MAX_ADDRESSES: Final = 10_000
MAX_TOKEN: Final = 512
MAX_TOKENS_FILE: Final = 1024 * 1024
_NET6: Final = 64
"""Bits of an IPv6 address that belong to one place."""


class Attempts:
    """How often each address may come: `rate` a second on the average, `burst` at once. The table is bounded; who came longest ago leaves it."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._left)

    def take(self, address: str) -> None:
        """Raises TrunklineError `rate_limited`. A rate of 0 lets everybody come."""
        if not self._rate:
            return
        now = self._clock()
        left, then = self._left.pop(address, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._rate)
        self._left[address] = (max(0.0, left - 1), now)
        if len(self._left) > MAX_ADDRESSES:
            self._left.popitem(last=False)
        if left < 1:
            raise TrunklineError("rate_limited", "too many connections from this address: wait a moment")


class Gate:
    """`hosts` are the names by which the relay is reached, besides loopback; `origins` of pages besides its own may connect.

    `tokens` is a file of what hosts have to show, as `digest` writes it, one a line; it is read at each host that comes. `proxies`
    are the networks whose `X-Forwarded-For` is believed.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        hosts: Collection[str] = (),
        origins: Collection[str] = (),
        tokens: Path | None = None,
        proxies: Collection[str] = (),
        rate: float = 5.0,
        burst: float = 200.0,
    ) -> None:
        self._hosts = LOOPBACK | {host.lower() for host in hosts}
        self._origins = frozenset(origins)
        self._tokens = tokens
        self._proxies = _networks(proxies)
        self._attempts = Attempts(rate, burst, clock)

    def add_host(self, name: str) -> None:
        """The relay is reached by this name, too: one that became known only when it ran."""
        self._hosts |= {name.lower()}

    def check(self, request: web.Request) -> None:
        """Raises TrunklineError `bad_origin`."""
        host = request.headers.get("Host", "")
        if host_of(host) not in self._hosts:
            raise TrunklineError(
                "bad_origin", f"the relay is not called {host[:128]!r}: add the name to `hosts` if it is"
            )
        origin = request.headers.get("Origin")
        if origin is not None and origin not in self._origins and not same_origin(origin, host):
            raise TrunklineError(
                "bad_origin", f"pages of {origin[:128]!r} may not connect: add it to `origins` if they should"
            )

    def count(self, request: web.Request) -> None:
        """Raises TrunklineError `rate_limited`."""
        self._attempts.take(self.address(request))

    def address(self, request: web.Request) -> str:
        """Whom a request counts for: who connected, or whom the proxies say that they speak for."""
        found = request.remote or ""
        for one in reversed(",".join(request.headers.getall("X-Forwarded-For", [])).split(",")):
            if not self._is_proxy(found) or not one.strip():
                break
            found = one.strip()
        return _place(found)

    def check_token(self, header: str | None) -> None:
        """Whether a host may come, by its Authorization header; it reads a file. Raises TrunklineError `unauthorized`."""
        if self._tokens is None:
            return
        scheme, _, token = (header or "").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not 0 < len(token) <= MAX_TOKEN:
            raise TrunklineError("unauthorized", "this relay lets in hosts that it gave a token: set `token`")
        shown = digest(token)
        if not any([hmac.compare_digest(shown, known) for known in _known(self._tokens)]):  # noqa: C419 - all of them
            raise TrunklineError("unauthorized", "the relay does not know this token, or no more")

    def _is_proxy(self, address: str) -> bool:
        if not self._proxies:
            return False
        try:
            found = ip_address(address)
        except ValueError:
            return False
        return any(found in network for network in self._proxies)


def digest(token: str) -> str:
    """What the relay keeps of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def _known(path: Path) -> list[str]:
    """Nobody is let in where the file can't be read."""
    try:
        with path.open(encoding="utf-8") as file:
            lines = file.read(MAX_TOKENS_FILE).splitlines()
    except (OSError, UnicodeError) as error:
        raise TrunklineError("unauthorized", "the relay can't read its tokens, and lets no host in") from error
    words = (line.partition("#")[0].strip().lower() for line in lines)
    return [word for word in words if word and word.isascii()]


def _networks(texts: Collection[str]) -> list[IPv4Network | IPv6Network]:
    try:
        return [ip_network(text) for text in texts]
    except ValueError as error:
        raise TrunklineError("bad_settings", f"`proxies` are networks like 10.0.0.0/8: {error}") from error


def _place(address: str) -> str:
    """IPv6 addresses count by their network: everybody has billions of them."""
    try:
        found = ip_address(address)
    except ValueError:
        return address[:64]
    if isinstance(found, IPv6Address) and found.ipv4_mapped is None:
        return str(ip_network((found.packed, _NET6), strict=False))
    return str(found.ipv4_mapped if isinstance(found, IPv6Address) else found)

"""The devices of this host, as the gateway has them, and the keys that change with them."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final, NoReturn, Protocol

from trunkline_bus.tasks import uncut
from trunkline_relay import keys
from trunkline_relay.gateway import NewDevice, Paired
from trunkline_relay.keys import HostKeys
from trunkline_seal.control import b64
from trunkline_wire import TrunklineError

log = logging.getLogger(__name__)

LOOK_S: Final = 2.0
FIRST_LOOK_S: Final = 0.2
"""Likewise, until the gateway has answered once: at a start it is not there yet."""
SEEN_S: Final = 60.0


class Registry(Protocol):
    """What keeps the devices: the gateway."""

    async def devices(self) -> list[Paired]: ...
    async def pair(self, device: NewDevice) -> tuple[Paired, str]: ...
    async def revoke(self, device: str) -> None: ...
    async def seen(self, devices: list[str]) -> None: ...
    async def leave(self) -> None: ...


class Devices:
    """Run `run` as a task: it looks every LOOK_S, and at once when told to. `on_change` is told who is gone."""

    def __init__(self, home: Path, host: HostKeys, registry: Registry) -> None:
        self._home = home
        self._registry = registry
        self._changing = asyncio.Lock()
        self._now = asyncio.Event()
        self._told_seen: dict[str, float] = {}
        self._written = host
        self.host = host
        self.known: dict[str, Paired] = {}
        self.ready = asyncio.Event()
        self.on_change: Callable[[Collection[str]], None] = lambda _: None
        self.here: Callable[[], Collection[str]] = list
        """The devices that are connected."""

    @property
    def identity(self) -> bytes:
        """The newest that devices may be told: one that is not written down would lock them out once this process is gone."""
        return self._written.newest.public

    def told(self) -> dict[str, str | int]:
        """What devices are told of it."""
        return self._written.told(self.identity)

    def look(self) -> None:
        """Look at once."""
        self._now.set()

    def routes(self) -> list[str]:
        return sorted(one.route for one in self.known.values())

    def find(self, identity: bytes) -> Paired | None:
        text = b64(identity)
        return next((one for one in self.known.values() if one.identity == text), None)

    async def run(self) -> NoReturn:
        trouble = ""
        while True:
            self._now.clear()
            try:
                await self._look()
                await self._tell_seen()
                trouble = ""
            except (TrunklineError, ConnectionError) as error:
                if trouble != str(error):
                    trouble = str(error)
                    log.warning("devices_unknown", extra={"reason": trouble})
                with contextlib.suppress(ConnectionError):
                    await self._registry.leave()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S if self.ready.is_set() else FIRST_LOOK_S):
                    await self._now.wait()

    async def pair(self, wanted: NewDevice, identity: bytes) -> tuple[Paired, str]:
        """Register a device that knows this identity of the host's; from now on it may come. Raises TrunklineError, ConnectionError."""
        async with self._changing:
            if identity != self.host.newest.public:
                raise TrunklineError("bad_pairing", "the host has a new identity since the link was made: pair again")
            device, token = await self._registry.pair(wanted)
            await self._keep(self.host.joined(device.id))
            self.known[device.id] = device
        self.on_change(())
        return device, token

    async def revoke(self, device: str) -> None:
        """Raises as `pair`."""
        await self._registry.revoke(device)
        self.look()

    async def came(self, device: str, identity: bytes) -> None:
        """A device has come by this identity of the host's."""
        if self.host.came(device, identity) != self.host:
            async with self._changing:
                await self._keep(self.host.came(device, identity))

    async def _look(self) -> None:
        async with self._changing:
            found = {one.id: one for one in await self._registry.devices()}
            gone = (self.known.keys() | self.host.paired) - found.keys()
            changed = found != self.known or not self.ready.is_set() or self.host != self._written
            self.known = found
            try:
                await self._keep(self.host.seen(frozenset(found)))
            finally:  # a disk that takes nothing keeps no revoked device in
                if gone:
                    log.info("devices_revoked", extra={"devices": sorted(gone)})
                self.ready.set()
                if changed or gone:
                    self.on_change(gone)

    async def _tell_seen(self) -> None:
        now = time.monotonic()
        due = [one for one in self.here() if now - self._told_seen.get(one, -SEEN_S) >= SEEN_S]
        if due:
            await self._registry.seen(due)
            self._told_seen = {one: at for one, at in self._told_seen.items() if one in self.known}
            self._told_seen.update(dict.fromkeys(due, now))

    async def _keep(self, host: HostKeys) -> None:
        self.host = host
        if host != self._written:
            await uncut(asyncio.to_thread(keys.save, self._home, host))  # the next write must not begin before
            self._written = host

"""The nats-server that the services use: one of our own, kept running on the same port and store, or somebody else's."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from trunkline_bus import guests, topology
from trunkline_bus.connection import Bus, BusSettings
from trunkline_bus.credentials import ACCOUNT, Grants, Tenant, accounts_block, accounts_of, ensure_keys, public_key
from trunkline_bus.leaf import Leaf, with_leaf
from trunkline_bus.server import EmbeddedServer, ServerSettings
from trunkline_bus.store import is_full, takes_writes
from trunkline_supervisor.backoff import Restarts
from trunkline_wire import TrunklineError

log = logging.getLogger(__name__)

OLD_SERVER_S = 12.0
"""Seconds that the nats-server of a killed instance may take to end and let go of the store."""

LOOK_EVERY_S = 2.0
"""Seconds between two looks at the room of the store."""

OneLine = Callable[[str], None]
"""Takes a line for the person in front of the terminal."""


class Broker(Protocol):
    """Where the log is. `seeds` are key files by NATS user; `pid` is None where the server is not ours."""

    @property
    def url(self) -> str: ...
    @property
    def pid(self) -> int | None: ...
    @property
    def seeds(self) -> Mapping[str, Path]: ...
    async def start(self) -> None:
        """Return once clients can connect. Raises `already_running`, `log_unavailable`."""
        ...

    async def make_topology(self) -> list[str]:
        """Create what the log lacks; returns what changed. Raises `topology_conflict`, `log_full`."""
        ...

    async def keep(self, changed: Callable[[], None]) -> None:
        """Keep it running until cancelled; `changed` is called after each restart."""
        ...

    async def stop(self) -> None: ...


class OwnBroker:
    """An embedded nats-server in `directory`, with a key for each service. `tell` hears of its deaths. `store_key` is the file
    whose content encrypts its store.
    """

    def __init__(
        self,
        directory: Path,
        log_file: Path,
        tell: OneLine,
        *,
        store_key: Path | None = None,
        leaf: Leaf | None = None,
    ) -> None:
        self._seeds = ensure_keys(directory / "keys")
        self._users = {user: public_key(file) for user, file in self._seeds.items()}
        self._directory = directory
        self._guests = guests.read(directory)
        self._leaf = leaf
        self.server = EmbeddedServer(
            ServerSettings(
                directory=directory,
                log_file=log_file,
                authorization=self._authorization(self._guests),
                store_key=store_key,
                leaf=leaf,
            )
        )
        self._tell = tell
        self._restarts = Restarts()

    def _authorization(self, extensions: Mapping[str, tuple[str, Grants]]) -> str:
        accounts = accounts_of(Tenant(keys=self._users, extensions=extensions))
        return accounts_block(with_leaf(accounts, ACCOUNT, self._leaf.name) if self._leaf is not None else accounts)

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def pid(self) -> int | None:
        return self.server.pid if self.server.running else None

    @property
    def seeds(self) -> Mapping[str, Path]:
        return {**self._seeds, **{user: self._directory / "keys" / f"{user}.nk" for user in self._guests}}

    async def start(self) -> None:
        deadline = time.monotonic() + OLD_SERVER_S
        while True:
            try:
                return await self.server.start()
            except TrunklineError as error:
                # The server of an instance that was killed ends by itself, but not at once.
                if error.code != "already_running" or "directory" not in error.details or time.monotonic() > deadline:
                    raise
            await asyncio.sleep(0.1)

    async def make_topology(self) -> list[str]:
        async with Bus.open(BusSettings(url=self.url, seed_file=self._seeds["admin"], name="supervisor")) as bus:
            limit = self.server.limit
            try:
                return await topology.apply(bus.js, store=limit)
            except TrunklineError as error:
                if error.code != "log_full":
                    raise
            # A small disk: the log gets half of what the store may have, the rest is for blobs and projections.
            return await topology.apply(bus.js, max_bytes=limit // 2, store=limit)

    async def keep(self, changed: Callable[[], None]) -> None:
        while True:
            begun = time.monotonic()
            if self.server.running:
                ended = asyncio.create_task(self.server.wait())
                starved = asyncio.create_task(self._starved())
                try:
                    await asyncio.wait({ended, starved}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    ended.cancel()
                    starved.cancel()
                    await asyncio.gather(ended, starved, return_exceptions=True)
                if not ended.cancelled():
                    status = ended.result()
                    self._tell(f"nats-server ended with status {status}; starting it again on the same port and store")
                else:
                    self._tell(
                        "there is room for the log again; starting nats-server anew, which takes no writes before"
                    )
                    await self.server.stop()
            self._restarts = self._restarts.died(time.monotonic() - begun)
            await asyncio.sleep(self._restarts.delay)
            try:
                await self.server.start()
            except TrunklineError as error:
                log.exception("nats_start_failed", extra={"code": error.code})
                self._tell(str(error))
            else:
                changed()

    async def _starved(self) -> None:
        """Return once the store has room again after the server met a full disk: it takes no writes until it is restarted.

        Meanwhile it lets in the extensions that are added.
        """
        store = self.server.store
        full = False
        while True:
            await asyncio.to_thread(self._admit_guests)
            if not full and (is_full(store) or await asyncio.to_thread(self.server.gave_up_writing)):
                full = True
                log.warning("store_unwritable", extra={"store": str(store)})
                self._tell(f"the log takes no writes: free some space on the disk of {str(store)!r}; sessions wait")
            if full and await asyncio.to_thread(takes_writes, store):
                return
            await asyncio.sleep(LOOK_EVERY_S)

    def _admit_guests(self) -> None:
        try:
            present = guests.read(self._directory)
        except TrunklineError as error:
            log.warning("guests_not_read", extra={"error": error.message})
            return
        if present != self._guests:
            self._guests = present
            self.server.admit(self._authorization(present))
            log.info("guests_changed", extra={"users": sorted(present)})

    async def stop(self) -> None:
        with contextlib.suppress(TrunklineError):
            await self.server.stop()


class OtherBroker:
    """A server that somebody else runs, named by a URL. `seed` is the key file of an administrator there."""

    def __init__(self, url: str, seed: Path | None, users: Mapping[str, Path]) -> None:
        self._url = url
        self._seed = seed
        self._users = {**users, **({"admin": seed} if seed is not None else {})}

    @property
    def url(self) -> str:
        return self._url

    @property
    def pid(self) -> int | None:
        return None

    @property
    def seeds(self) -> Mapping[str, Path]:
        return self._users

    async def start(self) -> None:
        settings = BusSettings(url=self._url, seed_file=self._seed, name="supervisor", connect_within=10.0)
        async with Bus.open(settings):
            return

    async def make_topology(self) -> list[str]:
        async with Bus.open(BusSettings(url=self._url, seed_file=self._seed, name="supervisor")) as bus:
            return await topology.apply(bus.js)

    async def keep(self, changed: Callable[[], None]) -> None:
        del changed
        await asyncio.Event().wait()

    async def stop(self) -> None:
        """Not ours to stop."""

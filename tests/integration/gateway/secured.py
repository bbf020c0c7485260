"""A gateway on a nats-server with users: what extensions may is the server's to say."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import nats
from nats.aio.client import Client as Nats

from trunkline_bus import guests, topology
from trunkline_bus.connection import Bus, BusSettings
from trunkline_bus.credentials import ensure_keys, public_key, server_config
from trunkline_bus.server import EmbeddedServer, ServerSettings
from trunkline_gateway.app import Running, serving
from trunkline_gateway.settings import GatewaySettings
from trunkline_testkit.ports import free_port


class Secured:
    """A server, a gateway, and extensions that are let in by `admit`."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.directory = home / "nats"
        self.keys = ensure_keys(self.directory / "keys")
        self.running: Running
        settings = ServerSettings(directory=self.directory, port=free_port(), authorization=self._authorization())
        self.server = EmbeddedServer(settings)

    def _authorization(self) -> str:
        users = {user: public_key(file) for user, file in self.keys.items()}
        return server_config(users, guests.read(self.directory))

    def settings(self, user: str) -> BusSettings:
        return BusSettings(url=self.server.url, seed_file=self.keys[user], name=user, connect_within=5)

    def admit(self, name: str, *rights: str) -> dict[str, str]:
        """Let an extension in; the environment that its program needs."""
        seed = guests.add(self.directory, name, rights)
        self.server.admit(self._authorization())
        return {
            "NATS_URL": self.server.url,
            "NATS_NKEY_SEED_FILE": str(seed),
            "NATS_INBOX_PREFIX": f"_INBOX_ext-{name}",
            "SERVICE_NAME": f"ext-{name}",
        }

    async def connect(self, name: str, errors: list[str] | None = None) -> Nats:
        async def on_error(error: Exception) -> None:
            if errors is not None:
                errors.append(str(error))

        seed = self.directory / "keys" / f"ext-{name}.nk"
        return await nats.connect(
            self.server.url, nkeys_seed=str(seed), inbox_prefix=f"_INBOX_ext-{name}", error_cb=on_error
        )

    async def post(self, method: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """A method over HTTP, as the owner."""
        token = (self.home / "token").read_text().strip()
        url = f"{self.running.url}/api/v1/{method}"
        headers = {"Authorization": f"Bearer {token}"}
        async with aiohttp.ClientSession() as http, http.post(url, json=body, headers=headers) as answer:
            return answer.status, await answer.json(content_type=None)

    async def get(self, path: str) -> tuple[int, str, bytes]:
        """What a browser without any credential gets: status, media type, body."""
        async with aiohttp.ClientSession() as http, http.get(f"{self.running.url}{path}") as answer:
            return answer.status, answer.content_type, await answer.read()


@asynccontextmanager
async def secured(home: Path) -> AsyncGenerator[Secured]:
    made = Secured(home)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(made.server)
        async with Bus.open(made.settings("admin")) as admin:
            await topology.apply(admin.js, max_bytes=256 * 1024 * 1024)
        bus = await stack.enter_async_context(Bus.open(made.settings("gateway")))
        made.running = await stack.enter_async_context(serving(bus, GatewaySettings(home=home, port=0)))
        yield made

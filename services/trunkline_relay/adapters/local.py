"""A relay in this process, for the adapters that bring devices to one here."""

import time
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web

from trunkline_relay.gate import Gate
from trunkline_relay.server import relay_app
from trunkline_relay.switch import Switch
from trunkline_wire import TrunklineError

PROXIES: Final = ("127.0.0.0/8", "::1/128")
"""Tunnels and proxies on this machine are believed for whom they speak."""


class LocalRelay:
    """Listens at `bind` and `port` (0: any free one) from `start` to `stop`. It has the app's files for browsers, too."""

    def __init__(self, bind: str, port: int) -> None:
        self.bind = bind
        self.port = port
        self._gate = Gate(time.monotonic, proxies=PROXIES)
        self._runner: web.AppRunner | None = None

    def called(self, url: str) -> None:
        """Devices reach it at this address, too: no other name is taken for its own."""
        self._gate.add_host(urlsplit(url).hostname or "")

    @property
    def url(self) -> str:
        """As the host reaches it."""
        return self.url_at("127.0.0.1" if self.everywhere else self.bind)

    @property
    def everywhere(self) -> bool:
        """Whether it listens at all addresses of the machine."""
        return self.bind in {"0.0.0.0", "::"}  # noqa: S104 - it is looked for

    def url_at(self, address: str) -> str:
        return f"http://{f'[{address}]' if ':' in address else address}:{self.port}"

    async def start(self) -> None:
        """Raises TrunklineError `already_running` for an address that is taken."""
        app = relay_app(Switch(time.monotonic), self._gate)
        runner = self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, self.bind, self.port).start()
        except OSError as error:
            await self.stop()
            raise TrunklineError(
                "already_running", f"the relay can't listen at {self.bind}:{self.port}: {error.strerror}"
            ) from error
        self.port = int(runner.addresses[0][1])

    async def stop(self) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

"""The composition root of the host's side: keys, devices, the line to the relay, visits, pairing, and the door for programs here."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager
from typing import Any, Final, assert_never

from trunkline_bus import metrics
from trunkline_relay import keys
from trunkline_relay.adapters.base import Adapter
from trunkline_relay.adapters.cloudflared import cloudflared
from trunkline_relay.adapters.direct import Direct
from trunkline_relay.adapters.embedded import Embedded
from trunkline_relay.adapters.local import LocalRelay
from trunkline_relay.adapters.ngrok import ngrok
from trunkline_relay.adapters.ssh import ssh
from trunkline_relay.devices import LOOK_S, Devices
from trunkline_relay.door import open_door
from trunkline_relay.gateway import Gateway
from trunkline_relay.host import HostLine
from trunkline_relay.pairing import Offer, Pairing
from trunkline_relay.settings import RelaySettings
from trunkline_relay.visits import Visits
from trunkline_seal import control, fingerprint, host_name
from trunkline_service import Health
from trunkline_service.run import ExitCode, version
from trunkline_wire import TrunklineError

log = logging.getLogger(__name__)

NAME: Final = "relay"
LOOPBACK: Final = "127.0.0.1"
WAIT_S: Final = 5.0
"""Seconds that a pairing waits for a relay that is not there yet."""
APP_S: Final = 30.0
"""Seconds between two looks at the app that the gateway has."""


async def run_app(settings: RelaySettings, health: Health, stopping: asyncio.Event) -> None:
    """The host's side as a service. It is ready where it works here: a relay that is away is told by /health, and tried again."""
    try:
        async with hosting(settings) as host:
            health.facts["relay"] = host.status
            metrics.RELAY_HOST_CONNECTED.labels(host.adapter.type).set_function(lambda: host.line.ready)
            metrics.RELAY_HOST_VISITS.set_function(lambda: len(host.visits))
            health.set_ready()
            stop = asyncio.create_task(stopping.wait())
            try:
                await asyncio.wait({stop, host.running}, return_when=asyncio.FIRST_COMPLETED)
                if host.running.done():
                    host.running.result()
            finally:
                stop.cancel()
    except TrunklineError as error:
        log.error("failed", extra={"code": error.code, "reason": error.message})  # noqa: TRY400 - its words say all
        bad = error.code == "bad_settings"
        raise SystemExit(ExitCode.BAD_SETTINGS if bad else ExitCode.NOT_STARTED) from error


@asynccontextmanager
async def hosting(settings: RelaySettings) -> AsyncGenerator["Host"]:
    """The host's side, until the block ends. Tests use it as it is. Raises TrunklineError `bad_settings`, `already_running`."""
    own = await asyncio.to_thread(keys.load, settings.home)
    token = await asyncio.to_thread(settings.secret)
    adapter = make_adapter(settings, token)
    async with contextlib.AsyncExitStack() as stack:
        gateway = await stack.enter_async_context(Gateway(settings.home))
        devices = Devices(settings.home, own, gateway)
        host = Host(settings, adapter, devices, gateway, token)
        stack.push_async_callback(adapter.disconnect)
        host.running = asyncio.create_task(host.run())
        stack.push_async_callback(_ended, host.running)
        await stack.enter_async_context(host.visits)  # they end first, and are told
        await stack.enter_async_context(open_door(settings.home / "relay.sock", host))
        yield host


def make_adapter(settings: RelaySettings, token: str) -> Adapter:
    """Raises TrunklineError `bad_settings`."""
    relay = LocalRelay(settings.bind if settings.kind == "direct" else LOOPBACK, settings.port)
    match settings.kind:
        case "embedded":
            return Embedded(settings.url, token)
        case "direct":
            return Direct(relay, settings.url)
        case "cloudflared":
            return cloudflared(relay, program=settings.program, token=token, url=settings.url)
        case "ngrok":
            return ngrok(relay, program=settings.program, token=token, url=settings.url)
        case "ssh":
            return ssh(relay, settings)
        case _:
            assert_never(settings.kind)


class Host:
    """The parts, together."""

    running: "asyncio.Task[None]"

    def __init__(
        self, settings: RelaySettings, adapter: Adapter, devices: Devices, gateway: Gateway, token: str
    ) -> None:
        self._settings = settings
        self._news = asyncio.Event()
        self._gone: set[str] = set()
        self._gateway = gateway
        self._app = b""
        self._known_identity = devices.identity
        self.adapter = adapter
        self.devices = devices
        self.pairing = Pairing(devices, self, self.about)
        self.visits = Visits(devices, gateway, self.pairing, self.about)
        # Only a relay elsewhere has a token that is for hosts.
        self.line = HostLine(
            devices.host.route, self.visits, self._greeting, token=token if settings.kind == "embedded" else ""
        )
        devices.here = self.visits.here
        devices.on_change = self._changed

    async def run(self) -> None:
        """Raises TrunklineError where the adapter does."""
        url = await self.adapter.connect()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.devices.run())
            group.create_task(self._tell())
            group.create_task(self._vouch())
            await self.devices.ready.wait()
            group.create_task(self.line.run(url))

    def about(self) -> dict[str, str | int]:
        """What devices are told of this host; `app` is the digest of the app that it vouches for, `pad` what it wants of them."""
        said: dict[str, str | int] = {"host": self._settings.called, "version": version()}
        if self._app:
            said["app"] = control.b64(self._app)
        if self._settings.pad:
            said["pad"] = self._settings.pad
        return said

    async def _vouch(self) -> None:
        """Knows the app that this host's own gateway has: another build may come with another version."""
        while True:
            self._app = await self._gateway.app() or self._app
            await asyncio.sleep(APP_S if self._app else LOOK_S)

    def status(self) -> dict[str, Any]:
        """For people; no secret is in it."""
        host = self.devices.host
        return {
            "kind": self.adapter.type,
            "url": self.public_url,
            "connected": self.reachable,
            "trouble": self.trouble,
            "host": host_name(host.route.public),
            "name": self._settings.called,
            "version": version(),
            "fingerprint": fingerprint(host.newest.public),
            "devices": len(self.devices.known),
            "visits": len(self.visits),
        }

    @property
    def reachable(self) -> bool:
        """Whether a device could come now, as far as is known here."""
        return self.line.ready and self.adapter.connected and bool(self.public_url)

    @property
    def trouble(self) -> str:
        """Why no device could come, as far as is known here."""
        return self.adapter.trouble or self.line.trouble

    @property
    def public_url(self) -> str:
        return self.line.public_url or self.adapter.public_url

    def hurry(self) -> None:
        self.line.hurry()

    async def say(self, message: control.Base) -> None:
        await self.line.say(message)

    @asynccontextmanager
    async def offered(self, invitation: str) -> AsyncGenerator[Offer]:
        """Raises TrunklineError `host_away` while no device could come by the link."""
        if not self.reachable:
            self.line.hurry()
            for _ in range(50):
                await asyncio.sleep(WAIT_S / 50)
                if self.reachable:
                    break
        if not self.reachable:
            raise TrunklineError("host_away", f"no device can come by the relay at the moment: {self.trouble}")
        async with self.pairing.offered(self.public_url, invitation) as offer:
            yield offer

    def _greeting(self) -> list[control.Base]:
        return [control.Admit(devices=self.devices.routes()), *self.pairing.offers()]

    def _changed(self, gone: Collection[str]) -> None:
        self._gone |= set(gone)
        self._news.set()

    async def _tell(self) -> None:
        """Tells the relay and the devices what has changed of the devices and the host's identity."""
        while True:
            await self._news.wait()
            self._news.clear()
            gone, self._gone = self._gone, set()
            await self.visits.end_devices(gone)
            identity = self.devices.identity
            if identity != self._known_identity:
                self._known_identity = identity
                log.info("identity_changed", extra={"fingerprint": fingerprint(identity)})
                await self.visits.tell_identity()
            await self.line.say(control.Admit(devices=self.devices.routes()))


async def _ended(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

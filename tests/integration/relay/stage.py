"""A relay in this process, a gateway on real NATS, and the host's side between them."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.integration.relay.device import Keys, meet

from trunkline_relay.app import Host, hosting
from trunkline_relay.serve import Relay
from trunkline_relay.settings import RelaySettings
from trunkline_relay.switch import HostPlace, Switch, Visit
from trunkline_testkit import eventually
from trunkline_testkit.product import Client


class Served:
    """A relay that can be stopped and comes back at the same address."""

    def __init__(self) -> None:
        self.port = 0
        self.switch = Switch(time.monotonic)
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        self.switch = Switch(time.monotonic)
        app = web.Application()
        Relay(self.switch).add(app)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True).start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None


@asynccontextmanager
async def relay() -> AsyncGenerator[Served]:
    served = Served()
    await served.start()
    try:
        yield served
    finally:
        await served.stop()


@asynccontextmanager
async def host(home: Path, url: str, **settings: Any) -> AsyncGenerator[Host]:
    """The host's side, connected."""
    async with hosting(RelaySettings(home=home, url=url, name="box", **settings)) as made:
        await eventually(lambda: made.line.ready or made.running.done())
        yield made


class Asked:
    """A program of this machine at the host's door."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def next(self) -> dict[str, Any]:
        async with asyncio.timeout(20):
            return json.loads(await self._reader.readline())

    def say(self, value: Any) -> None:
        self._writer.write(json.dumps(value).encode() + b"\n")


@asynccontextmanager
async def ask(home: Path, **request: Any) -> AsyncGenerator[Asked]:
    reader, writer = await asyncio.open_unix_connection(home / "relay.sock")
    writer.write(json.dumps(request).encode() + b"\n")
    try:
        yield Asked(reader, writer)
    finally:
        writer.close()
        await writer.wait_closed()


@asynccontextmanager
async def offer(home: Path, **wanted: str) -> AsyncGenerator[Asked]:
    """A pairing that a person has begun: the link comes first."""
    async with await Client.connect("http://localhost", socket=str(home / "gateway.sock")) as person:
        full: dict[str, Any] = {"actor": "ann", "role": "owner", **wanted}
        invited = await person.call("device.invite", **full)
    async with ask(home, do="pair", invitation=invited["invitation"]) as asked:
        yield asked


async def pair(home: Path, keys: Keys | None = None, **wanted: str) -> Keys:
    """A device that is paired as people do it: the codes are compared."""
    async with offer(home, **wanted) as asked:
        link = await asked.next()
        assert link["type"] == "link", link
        async with meet(link["link"], keys) as meeting:
            arrived = await asked.next()
            assert (arrived["type"], arrived["code"]) == ("arrived", meeting.code)
            asked.say({"agree": True})
            paired = await meeting.outcome()
            done = await asked.next()
            assert (done["type"], done["device"]) == ("paired", paired.device)
            assert done["name"] == wanted.get("name", arrived["name"])
            return paired


def noted(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """All that the relay has seen, both ways."""
    seen: list[bytes] = []
    up, down = Visit.up, HostPlace.down

    def noted_up(self: Visit, envelope: bytes) -> None:
        seen.append(envelope)
        up(self, envelope)

    def noted_down(self: HostPlace, sid: bytes, envelope: bytes) -> None:
        seen.append(envelope)
        down(self, sid, envelope)

    monkeypatch.setattr(Visit, "up", noted_up)
    monkeypatch.setattr(HostPlace, "down", noted_down)
    return seen
